"""`longsumbench status`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir
from longsumbench.formatting import print_text

_HELP = """\
Show what a sweep is at: which points are done, running, failed or waiting, and how long it will take.

  longsumbench status                           the sweeps that are running, or the last one
  longsumbench status 3fa2 --watch              one of them, again and again
  longsumbench status --results-dir /shared/results            of another folder

It reads the sweep's files alone, so it may be asked from another shell, or another machine that sees the folder.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument(
        "sweep", nargs="?", metavar="SWEEP", help="its id, or the beginning of it (default: what runs)"
    )
    command.add_argument("--watch", nargs="?", type=float, const=5.0, metavar="SECONDS", help="again and again")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.sweeps.status import render_status, watch

    results = Path(options.results_dir).expanduser()
    if options.watch is not None:
        try:
            watch(results, options.sweep, options.watch)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("a sweep that is running goes on") from None
    print_text(render_status(results, options.sweep))


status_command = Command("status", "show what a sweep is at", _HELP, _add_arguments, _execute)
