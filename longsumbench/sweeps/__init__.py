"""Many runs: in this process, by joblib or on SLURM; their state and status."""
