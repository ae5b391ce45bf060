"""Sweeps: many points of one command, in this process, by joblib or on SLURM.

Start with `sweep.Launch`, which runs the points of a command. `run` has the Python functions `run` and `sweep`, and
updates the tables. `launchers` decides where points run, and `worker` runs one. `state` reads and writes a sweep's
files, and shows its progress.
"""
