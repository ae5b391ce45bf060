"""The main job as a new user meets it: time and memory of `longsumbench run`, of the same command again, of `--help`.

python benchmarks/first_run.py [OVERRIDES …]
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from tabulate import tabulate

from longsumbench.cache.artifacts import CACHE_VARIABLE

COMMAND = [sys.executable, "-m", "longsumbench"]


def measure(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Run a command in a folder with a cache of its own; return its seconds and its peak memory in 1e9 bytes."""
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache")}
    started, peak = time.monotonic(), 0
    with (folder / "log").open("a") as log:
        process = subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment, stdout=log, stderr=log)
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                peak = max(peak, watched.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            time.sleep(0.05 if "run" in arguments else 0.001)
    if process.wait():
        sys.exit((folder / "log").read_text())
    return time.monotonic() - started, peak / 1e9


def main() -> None:
    """Print what was measured beside what is asked for."""
    overrides = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, memory = measure(["run", *overrides], folder)
        again, _ = measure(["run", *overrides], folder)
        helped = min(measure(["--help"], folder)[0] for _ in range(5))
        print((folder / "log").read_text().partition("longsumbench: ")[2].partition("usage:")[0])
    rows = [
        ["longsumbench run, nothing cached", f"{first:.0f} s", "300 s", f"{first / 300:.2f}"],
        ["its peak memory", f"{memory:.2f} GB", "2 GB", f"{memory / 2:.2f}"],
        ["the same command again", f"{again:.1f} s", f"{first:.0f} s", f"{again / first:.3f}"],
        ["longsumbench --help", f"{helped:.3f} s", "0.3 s", f"{helped / 0.3:.2f}"],
    ]
    print(tabulate(rows, headers=["what", "measured", "beside", "ratio"]))


if __name__ == "__main__":
    main()
