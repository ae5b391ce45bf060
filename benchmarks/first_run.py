"""The main job as a new user meets it: time and memory of `longsumbench run`, of the same command again, of `--help`.

python benchmarks/first_run.py
python benchmarks/first_run.py --one-process   the same points one after the other, with all cores for each
python benchmarks/first_run.py --seeds 1,2,3   do repetitions on `probe` agree on the order of the systems?
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pandas as pd
import psutil
from tabulate import tabulate

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.run import FIRST_COMPARISON

COMMAND = [sys.executable, "-m", "longsumbench"]
EXPERIMENTS, LAUNCHER = FIRST_COMPARISON
MEASURE = "fact_recall_single"


def measure(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Run a command in a folder with a separate cache; return its seconds and its peak memory in 1e9 bytes.

    The memory is that of all its processes; what they share counts once.
    """
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache"), "COLUMNS": "80"}
    started, peak = time.monotonic(), 0
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            [*COMMAND, *arguments], cwd=folder, env=environment, stdout=log, stderr=log
        )
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            if "run" in arguments:
                peak = max(peak, memory_of_tree(watched))
            time.sleep(0.2 if "run" in arguments else 0.001)
    if process.wait():
        sys.exit((folder / "log").read_text())
    return time.monotonic() - started, peak / 1e9


def memory_of_tree(process: psutil.Process) -> int:
    """Return the bytes that a process and those it started occupy; shared pages are divided among them (PSS)."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += one.memory_full_info().pss
    return total


def order_of_systems(folder: Path) -> dict[int, list[str]]:
    """Return seed → the systems, the best first, with the sign between those whose intervals do not overlap."""
    table = pd.read_csv(folder / "results" / "leaderboard" / "probe.csv")
    orders = {}
    for seed, runs in table.groupby("seed"):
        rows = [row for _, row in runs.sort_values(MEASURE, ascending=False).iterrows()]
        words = [str(rows[0]["model"])]
        for better, worse in pairwise(rows):
            words += [
                ">" if better[f"{MEASURE}_lo"] > worse[f"{MEASURE}_hi"] else "≈",
                str(worse["model"]),
            ]
        orders[int(str(seed))] = words
    return orders


def check_order(seeds: str, folder: Path) -> None:
    """Run the part on `probe` with several seeds; exit with 1 if the order differs, or two systems do not separate."""
    measure(["run", "-m", "experiment=first-probe", LAUNCHER, f"seed={seeds}"], folder)
    orders = order_of_systems(folder)
    for seed, words in orders.items():
        print(f"seed {seed}: {' '.join(words)}")
    sys.exit(
        len({tuple(words) for words in orders.values()}) > 1
        or any("≈" in words for words in orders.values())
    )


def main() -> None:
    """Print what was measured, and what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one-process", action="store_true", help="one process for all points")
    parser.add_argument("--seeds", help="check the order of the systems with these seeds")
    options = parser.parse_args()
    words = ["run", "-m", EXPERIMENTS] if options.one_process else ["run"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.seeds:
            check_order(options.seeds, folder)
        first, memory = measure(words, folder)
        again, _ = measure(words, folder)
        helped = min(measure(["--help"], folder)[0] for _ in range(5))
        print((folder / "log").read_text().partition("usage:")[0])
    rows = [
        [
            f"longsumbench {' '.join(words)}, nothing cached",
            f"{first:.0f} s",
            "300 s",
            f"{first / 300:.2f}",
        ],
        ["its peak memory, all processes", f"{memory:.2f} GB", "2 GB", f"{memory / 2:.2f}"],
        ["the same command again", f"{again:.1f} s", f"{first:.0f} s", f"{again / first:.3f}"],
        ["longsumbench --help", f"{helped:.3f} s", "0.3 s", f"{helped / 0.3:.2f}"],
    ]
    print(tabulate(rows, headers=["what", "measured", "compared with", "ratio"]))


if __name__ == "__main__":
    main()
