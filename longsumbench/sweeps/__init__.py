"""Sweeps: many points of one command, in this process, by joblib or on SLURM.

Start with `sweep`, which runs a sweep. `state` reads and writes its files, `status` shows its progress.
"""
