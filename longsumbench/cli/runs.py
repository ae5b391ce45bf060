"""`longsumbench runs`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir, results_of
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_ACTIONS = ("delete", "move", "pack")
_HELP = """\
Delete runs, or move them to another results folder, and make their tables again; or pack all finished runs.

  longsumbench runs delete 85f3139c 19c1        by their ids, the beginnings of their ids, or their folders
  longsumbench runs move 85f3139c trials        into the results folder trials
  longsumbench runs pack                        all finished runs into one file for each dataset

Packed runs are in bundles/<dataset>.tar.xz of the results folder, and bundles/<dataset>.csv lists them. Tables and all
commands read them there; no command changes them. What is in the folder `work` of a run (logs, links to the cache, the
changes of the code) is not packed, and is deleted. To unpack: tar -xf results/bundles/pubmed.tar.xz -C results

`longsumbench list runs` shows the ids, also of interrupted runs. Stages in the cache stay (longsumbench cache prune).
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("action", metavar="ACTION", choices=_ACTIONS, help=", ".join(_ACTIONS))
    command.add_argument("runs", nargs="*", metavar="RUN", help="runs; move: then the other results folder")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.leaderboards.table import update_or_delete_table
    from longsumbench.runs.results import Results, pack_runs, remove_run

    results = results_of(options)
    if options.action == "pack":
        if options.runs:
            raise UsageError(f"'{options.runs[0]}' is an extra argument: longsumbench runs pack")
        print_text(*pack_runs(results))
        return
    if not options.runs:
        raise UsageError(f"which runs? longsumbench runs {options.action} RUN…")
    *names, last = options.runs
    moves = options.action == "move"
    if moves and not names:
        raise UsageError("the other results folder is missing: longsumbench runs move RUN… FOLDER")
    folders = [results.find(name, begun=True).resolve() for name in (names if moves else options.runs)]
    for folder in folders:
        results.check_not_packed(folder)
    destination = Results.writable(last, "its last word") if moves else None
    changed: set[tuple[Path, str]] = set()
    try:
        for folder in dict.fromkeys(folders):
            target = destination.root.joinpath("runs", *folder.parts[-3:]) if destination else None
            remove_run(folder, target)
            print_text(f"moved: {folder} → {target}" if target else f"deleted: {folder}")
            roots = [folder.parents[3], *([destination.root] if destination else [])]
            changed |= {(root, folder.parents[1].name) for root in roots}
    finally:  # also if the next run is running
        for root, dataset in sorted(changed):
            update_or_delete_table(Results(root), dataset)


runs_command = Command("runs", "delete, move or pack runs", _HELP, _add_arguments, _execute)
