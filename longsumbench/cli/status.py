"""`longsumbench status`."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir
from longsumbench.errors import UsageError
from longsumbench.formatting import for_stdout, print_text

_LONGEST_PAUSE = 86_400.0  # most seconds between two updates: larger values can overflow `sleep`
_HELP = """\
Show the progress of a sweep: which points are done, running, failed or waiting, and the time left.

  longsumbench status                           the sweeps that are running, or the last one
  longsumbench status 3fa2 --watch              one sweep, updated every 5 seconds
  longsumbench status --results-dir /shared/results            sweeps in another results folder

The command only reads the sweep's files. It works in any shell, on any machine that can read the folder.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument(
        "sweep", nargs="?", metavar="SWEEP", help="its id, or the beginning of it (default: running sweeps)"
    )
    command.add_argument(
        "--watch", nargs="?", type=float, const=5.0, metavar="SECONDS", help="update every SECONDS (default: 5)"
    )
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.sweeps.state import render_status

    results, seconds = Path(options.results_dir).expanduser(), options.watch
    if seconds is None:
        print_text(render_status(results, options.sweep))
        return
    if not seconds > 0:
        raise UsageError(f"--watch {seconds:g}: the number of seconds must be above 0")
    while True:
        print("\x1b[2J\x1b[H" + for_stdout(render_status(results, options.sweep)), flush=True)
        time.sleep(min(seconds, _LONGEST_PAUSE))


status_command = Command(
    "status", "show the progress of a sweep", _HELP, _add_arguments, _execute, "a running sweep continues"
)
