"""`longsumbench runs`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir, results_of
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_ACTIONS = ("delete", "move")
_HELP = """\
Delete runs, or move them to another results folder, and make their tables again.

  longsumbench runs delete 85f3139c 19c1        by their ids, the beginnings of their ids, or their folders
  longsumbench runs move 85f3139c trials        into the results folder trials

`longsumbench list runs` shows the ids, also of interrupted runs. Stages in the cache stay (longsumbench cache prune).
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("action", metavar="ACTION", choices=_ACTIONS, help=" or ".join(_ACTIONS))
    command.add_argument("runs", nargs="+", metavar="RUN", help="runs; move: then the other results folder")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.leaderboards.table import update_or_delete_table
    from longsumbench.runs.results import Results, remove_run

    *names, last = options.runs
    moves = options.action == "move"
    if moves and not names:
        raise UsageError("the other results folder is missing: longsumbench runs move RUN… FOLDER")
    folders = [results_of(options).find(name, begun=True).resolve() for name in (names if moves else options.runs)]
    other = Results.writable(last, "its last word") if moves else None
    changed: set[tuple[Path, str]] = set()
    try:
        for folder in dict.fromkeys(folders):
            target = other.root.joinpath("runs", *folder.parts[-3:]) if other else None
            remove_run(folder, target)
            print_text(f"moved: {folder} → {target}" if target else f"deleted: {folder}")
            roots = [folder.parents[3], *([other.root] if other else [])]
            changed |= {(root, folder.parents[1].name) for root in roots}
    finally:  # also if the next run is running
        for root, dataset in sorted(changed):
            update_or_delete_table(Results(root), dataset)


runs_command = Command("runs", "delete runs, or move them to another results folder", _HELP, _add_arguments, _execute)
