"""The time of a finished sweep of 100 points that is run again: it plans, finds every run, and rebuilds the tables.

    OMP_NUM_THREADS=1 python benchmarks/finished_sweep.py [--profile FILE]

The points are 10 lengths and 10 seeds of the baseline `random`, on the built-in dataset. Prints seconds of the wall and
of the processor for both runs of the command; on a machine with other work, only those of the processor tell its cost.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from longsumbench.cache.artifacts import CACHE_VARIABLE

ASKED = 10.0  # seconds of the second run
WORDS = [
    "run",
    "-m",
    "model=random",
    "model.length=range(10,20)",
    "seed=range(1,11)",
    "dataset=pydoc",
]
WORDS += ["decode.limit=20", "score.resamples=100", "baselines=false"]


def seconds_of(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command with its own cache; return the seconds of the wall, and of the processor."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache")}
    subprocess.run(
        command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        time.monotonic() - began,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def main() -> None:
    """Run the sweep twice and print the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--profile", metavar="FILE", help="write a profile of the second run (cProfile)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        words = [*WORDS, f"results_dir={name}/results"]
        for run in ("first", "second"):
            profile = (
                ["-m", "cProfile", "-o", options.profile]
                if options.profile and run == "second"
                else []
            )
            wall, processor = seconds_of(
                [sys.executable, *profile, "-m", "longsumbench", *words], Path(name)
            )
            print(
                f"{run} run: {wall:.1f} s, {processor:.1f} s of the processor (asked: {ASKED:.0f} s for the second)"
            )


if __name__ == "__main__":
    main()
