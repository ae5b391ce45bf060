"""Runs that are lost when `runs pack` and `merge` are killed and repeated.

    python benchmarks/killed_exchange.py [--moments 60]

Published runs are packed and merged in a temporary folder. At every moment a fresh copy of it is used: a forked process
carries out the command and kills itself, by SIGKILL and by SIGINT in turn, before one of its uses of a file; the
moments are spread evenly over these. Then the same command is repeated. Both times all runs must be there with all
their files. Exits with 1 if any is lost. One minute on two cores.
"""

import argparse
import hashlib
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main as run_command
from longsumbench.exchange import merge
from longsumbench.runs import results
from longsumbench.runs.record import RunRecord
from longsumbench.views import leaderboard

BUNDLES = Path(__file__).parents[1] / "results" / "reference" / "bundles"
DATASETS = ("arxiv", "pubmed")
CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir"}  # audit events
LOADED = (merge, results, leaderboard)  # before the processes are forked
Contents = dict[str, dict[str, str]]  # run id → name → SHA-256 of its files


def run_contents(folder: Path) -> Contents:
    """Return the files of all finished runs in a results folder, also of packed ones."""
    contents = {}
    for run in results.finished_folders(folder):
        paths = (path for path in run.rglob("*") if path.is_file() and path.name != "origin.json")
        contents[run.name] = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
        }
        # A bundle has of each path only the last name, so these are compared by what stays
        contents[run.name] |= {"record.json": RunRecord.read(run).run_id, "config.yaml": "is there"}
    return contents


@contextmanager
def quietly() -> Iterator[None]:
    """Print nothing inside."""
    logging.getLogger("longsumbench").setLevel(logging.CRITICAL)
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        yield


def in_fork(work: Callable[[], object]) -> int:
    """Do something in a forked process; return its exit code."""
    child = os.fork()
    if child == 0:
        with quietly():
            code = work()
        os._exit(code if isinstance(code, int) else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def watch_files(folder: Path, use: Callable[[], None]) -> None:
    """Call a function before this process uses a file in a folder."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        is_change = event in CHANGES  # of names that may be relative to an open folder
        is_use = event == "open" and str(arguments[0]).startswith(str(folder))
        if is_change or is_use:
            use()

    sys.addaudithook(hook)


def count_uses(folder: Path, words: list[str]) -> int:
    """Return how often a command uses a file in a folder."""
    uses = list[None]()

    def work() -> None:
        watch_files(folder, lambda: uses.append(None))
        run_command(words)
        count = len(uses)
        (folder / "uses").write_text(f"{count}", encoding="ascii")

    in_fork(work)
    return int((folder / "uses").read_text(encoding="ascii"))


def killed(folder: Path, words: list[str], moment: int, number: signal.Signals) -> int:
    """Carry out a command that is killed at its n-th use of a file; return the exit code of its process."""
    left = [moment]

    def use() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), number)

    def work() -> int:
        watch_files(folder, use)
        return run_command(words)

    return in_fork(work)


def lost_runs(whole: Contents, present: Contents) -> set[str]:
    """Return the runs that are missing, or lack a file, or have another one."""
    return {
        run for run, files in whole.items() if not files.items() <= present.get(run, {}).items()
    }


def prepare(folder: Path) -> Contents:
    """Make `start`: some runs are packed and have no folder, others have one; return the files of all."""
    start = folder / "start"
    run_command(
        [
            "merge",
            *(str(BUNDLES / f"{name}.tar.xz") for name in DATASETS),
            "--results-dir",
            str(start),
        ]
    )
    runs = sorted(start.glob("runs/*/*/*"))
    whole = run_contents(start)
    for run in runs[1::2]:
        run.rename(folder / run.name)
    run_command(["runs", "pack", "--results-dir", str(start)])
    for run in runs[::2]:
        shutil.rmtree(run)
    for run in runs[1::2]:
        (folder / run.name).rename(run)
    return whole


def kill_at_moments(name: str, folder: Path, whole: Contents, moments: int) -> int:
    """Kill a command at some moments, and repeat it each time; print and return how many runs were lost."""
    copy = folder / "copy"
    target = copy / ("target" if name == "merge" else "start")
    words = ["merge", str(copy / "start")] if name == "merge" else ["runs", "pack"]
    words += ["--results-dir", str(target)]
    lost, num_killed = 0, 0
    shutil.copytree(folder / "start", copy / "start")
    uses = count_uses(copy, words)
    for moment in range(1, moments + 1):
        shutil.rmtree(copy)
        shutil.copytree(folder / "start", copy / "start")
        number = (signal.SIGKILL, signal.SIGINT)[moment % 2]
        num_killed += killed(copy, words, 1 + (moment - 1) * uses // moments, number) != 0
        lost += len(lost_runs(whole, run_contents(copy / "start")))
        if name == "merge" and target.joinpath("runs").is_dir():  # those that are there are whole
            present = run_contents(target)
            lost += len(lost_runs({run: whole[run] for run in present}, present))
        if in_fork(lambda: run_command(words)) != 0:
            lost += len(whole)
            continue
        shutil.rmtree(
            copy / "start" / "runs", ignore_errors=True
        )  # packed and merged runs need them no more
        lost += len(lost_runs(whole, run_contents(target)))
    shutil.rmtree(copy)
    print(
        f"{name}: lost {lost} of {len(whole)} runs at {moments} moments of {uses} uses of files ({num_killed} killed)"
    )
    return lost


def main() -> None:
    """Kill both commands, and print what was lost."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--moments", type=int, default=60, help="moments at which each command is killed"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.environ[CACHE_VARIABLE] = str(folder / "copy" / "cache")
        with quietly():
            whole = prepare(folder)
        lost = sum(
            kill_at_moments(name, folder, whole, options.moments) for name in ("pack", "merge")
        )
    sys.exit(lost > 0)


if __name__ == "__main__":
    main()
