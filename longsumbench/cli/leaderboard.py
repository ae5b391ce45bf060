"""`longsumbench leaderboard`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.cli.parser import Command, Parser, add_results_dir
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import print_text

if TYPE_CHECKING:
    from longsumbench.runs.record import Results


_HELP = """\
Rebuild and print the tables of finished runs.

  longsumbench leaderboard                      every dataset with results
  longsumbench leaderboard --matrix             systems × datasets, with ranks; --matrix rouge1: of that number
  longsumbench leaderboard pydoc --latex        one dataset, as LaTeX
  longsumbench leaderboard pydoc --measure recall          ROUGE recall (or precision) instead of F1
  longsumbench leaderboard pydoc --ledger       what was not read (by which setting), learned or finished
  longsumbench leaderboard pydoc --against segment_length          also plot scores against a setting
  longsumbench leaderboard pydoc --against page_size --against decode.num_beams --kind rouge2        … or two settings

Writes each table to results/leaderboard/ as .csv (all columns), .md and .tex. The files always contain F1. For a
dataset with planted facts, it also draws which facts the systems found. --against writes <dataset>-<setting>.csv, .png
and .svg.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("dataset", nargs="?", help="one dataset (default: all)")
    command.add_argument("--latex", action="store_true", help="print LaTeX (booktabs)")
    command.add_argument("--ledger", action="store_true", help="print what was not read, learned or finished")
    command.add_argument("--measure", default="f1", help="ROUGE f1 (default), precision or recall")
    command.add_argument(
        "--against", action="append", default=[], metavar="SETTING", help="also plot scores against a setting, or two"
    )
    command.add_argument(
        "--kind", metavar="NAME", help="the score that --against plots, such as rouge2 (default: the ranking score)"
    )
    command.add_argument(
        "--matrix", nargs="?", const="", metavar="METRIC", help="systems × datasets (default: each ranking score)"
    )
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.api.config import check_choice
    from longsumbench.leaderboards import table as leaderboard
    from longsumbench.leaderboards.comparability import ROUGE_PARTS
    from longsumbench.report import tables
    from longsumbench.runs.record import Results

    parts = {name.lower(): part for part, name in ROUGE_PARTS.items()}
    check_choice("--measure", options.measure, tuple(parts))
    part = parts[options.measure]
    results = Results(Path(options.results_dir).expanduser())
    if options.matrix is not None:
        print_text(*_matrix(options, results))
        return
    names = leaderboard.find_datasets(results, options.dataset)
    drawn = _draw_against(options, results, names)
    for name in names:
        try:
            table = leaderboard.update_table(results, name)
        except DataError as error:  # no readable record of this dataset
            if len(names) == 1:
                raise
            results.leave_out(error)
            continue
        shown = table if part == table.part else leaderboard.read_table(results, name, part)
        if options.ledger:
            print_text(tables.terminal(f"longsumbench: {name}", [shown.ledger()]), "")
            continue
        print_text(shown.latex() if options.latex else shown.render(), "")
        for file in table.pictures() if shown is table and not options.latex else ():
            print_text(results.root / "leaderboard" / file, "")
    if drawn:
        print_text(*drawn)


def _matrix(options: argparse.Namespace, results: "Results") -> list[object]:
    """Write the matrix of systems × datasets; return its text and the path of its picture."""
    if options.dataset or options.against or options.measure != "f1":
        raise UsageError("--matrix shows F1 or METRIC of all datasets: leave out DATASET, --measure and --against")
    from longsumbench.leaderboards.figures.matrix import MATRIX_HEADING, update_matrix
    from longsumbench.leaderboards.matrix import matrix_block
    from longsumbench.report import tables

    matrix = update_matrix(results, options.matrix or None)
    render = tables.latex if options.latex else tables.terminal
    picture = [results.root / "leaderboard" / "matrix.png"] if matrix.tested and not options.latex else []
    return [render(MATRIX_HEADING, [matrix_block(matrix)]), "", *picture]


def _draw_against(options: argparse.Namespace, results: "Results", names: Sequence[str]) -> list[Path]:
    """Write the plots of `--against`; return the files."""
    if options.kind is not None and not options.against:
        raise UsageError("--kind needs --against SETTING: it selects the plotted score")
    if options.against and len(names) > 1:
        raise UsageError(f"--against plots the runs on one dataset: choose one of {', '.join(names)}")
    if options.against and options.measure != "f1":
        raise UsageError("--measure is for the printed table: --against plots F1, or the score of --kind")
    if not options.against:
        return []
    from longsumbench.leaderboards.figures import curves as sweep

    return sweep.update_curves(results, names[0], options.against, options.kind)


leaderboard_command = Command("leaderboard", "rebuild and print tables from results/", _HELP, _add_arguments, _execute)
