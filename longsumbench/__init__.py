"""A unified benchmark suite for long-input summarizers."""

import os

__version__ = "0.1.0"

# Threads of OpenMP wait asleep, not spinning: where other processes use the cores, training takes a fraction of the
# time. OpenMP reads this once, when torch is imported. The user's own choice goes first.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & os.environ.keys():
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
