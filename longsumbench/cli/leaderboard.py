"""`longsumbench leaderboard`."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.cli.parser import (
    RESULTS_DIR,
    Argument,
    Command,
    open_results,
    output_file,
    split_names,
)
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import print_text

if TYPE_CHECKING:
    from longsumbench.runs.record import RunRecord
    from longsumbench.runs.results import Results
    from longsumbench.views.leaderboard import TableView


_HELP = """\
Rebuild and print the tables of finished runs.

  longsumbench leaderboard                      every dataset with results
  longsumbench leaderboard aclsum --by-run       a row for each run, instead of the mean over the seeds of a system
  longsumbench leaderboard aclsum --columns rouge1,rougeLsum,length,seconds,train.learning_rate
  longsumbench leaderboard aclsum --columns help           all columns that the runs have
  longsumbench leaderboard aclsum --output table.tex --block 1       LaTeX for a paper; --columns chooses its columns
  longsumbench leaderboard --matrix             systems × datasets, with ranks; --matrix rouge1: of that number
  longsumbench leaderboard aclsum --measure recall          ROUGE recall (or precision) instead of F1
  longsumbench leaderboard mine --published seal,pagesum     with numbers as printed in papers, or those of a .csv file
  longsumbench leaderboard aclsum --ledger       what was not read (by which setting), learned or finished
  longsumbench leaderboard aclsum --against segment_length          also plot scores against a setting
  longsumbench leaderboard aclsum --against page_size --against decode.num_beams --kind rouge2        … or two settings

The table is as wide as the terminal (COLUMNS=200 longsumbench … sets its width). Where columns do not fit, the line
below it names those left out. Writes each table to results/leaderboard/ as .csv (a row for each run, all columns), .md
and .tex. The files always contain F1 and the default columns. For a dataset with planted facts, it also draws which
facts the systems found; a picture is drawn again when its numbers change. --against writes <dataset>-<setting>.csv,
.png and .svg.
"""


_ARGUMENTS = (
    Argument("dataset", "one dataset (default: all)", nargs="?"),
    Argument(
        "--columns", "columns to print, separated by commas; help lists them", "NAMES", default=""
    ),
    Argument("--block", "print this block of the table, from 1", "NUMBER", type=int),
    Argument("--by-run", "a row for each run (default: for each system)"),
    Argument(
        "--latex", "print LaTeX (booktabs, siunitx), or write it", "FILE.tex", nargs="?", const=True
    ),
    Argument(
        "--output",
        "write LaTeX there; results/leaderboard has .md and .csv",
        "FILE.tex",
        dest="latex",
    ),
    Argument(
        "--published",
        "also published numbers: words of systems, sources, datasets; or files of yours (.csv)",
        "NAMES",
        default="",
    ),
    Argument("--ledger", "print what was not read, learned or finished"),
    Argument("--measure", "ROUGE f1 (default), precision or recall", "MEASURE", default="f1"),
    Argument(
        "--against",
        "also plot scores against a setting, or two",
        "SETTING",
        action="append",
        default=[],
    ),
    Argument(
        "--kind",
        "the score that --against plots, such as rouge2 (default: the ranking score)",
        "NAME",
    ),
    Argument(
        "--matrix",
        "systems × datasets (default: each ranking score)",
        "METRIC",
        nargs="?",
        const="",
    ),
    RESULTS_DIR,
)


def _execute(options: Namespace) -> None:
    from longsumbench.core.bounds import check_choice
    from longsumbench.leaderboards.comparability import ROUGE_STATISTICS
    from longsumbench.leaderboards.published import find_published
    from longsumbench.leaderboards.table import find_datasets, read_table
    from longsumbench.views.column_list import choose_columns, collect_columns, list_columns
    from longsumbench.views.leaderboard import TableView, update_table

    statistics = {name.lower(): statistic for statistic, name in ROUGE_STATISTICS.items()}
    check_choice("--measure", options.measure, tuple(statistics))
    statistic = statistics[options.measure]
    results = open_results(options)
    if options.matrix is not None:
        print_text(*_matrix(options, results))
        return
    names = find_datasets(results, options.dataset)
    columns = split_names(options.columns)
    if columns:
        records: list[RunRecord] = []
        for name in names:
            records += results.records(name)
        all_columns = collect_columns(records, statistic)
        if columns == ["help"]:
            print_text(list_columns(all_columns))
            return
        columns = [column.name for column in choose_columns(columns, all_columns)]
    published = find_published(split_names(options.published), statistic)
    # Errors of --against come before any table is printed.
    curve_files = _draw_against(options, results, names)
    for name in names:
        # The files have the usual table; what is printed may be another one.
        try:
            table = update_table(results, name)
        except DataError as error:  # no readable record of this dataset
            if len(names) == 1:
                raise
            results.leave_out(error)
            continue
        if statistic != table.statistic or options.by_run:
            table = read_table(results, name, statistic, options.by_run)
        view = TableView(table, tuple(columns), options.block, published)
        _print_table(options, view, len(names))
    print_text(*curve_files)


def _print_table(options: Namespace, view: "TableView", num_tables: int) -> None:
    """Print the blocks of a table that are asked for, or its ledger, and the paths of its pictures."""
    from longsumbench.core import Between, check_value
    from longsumbench.views import tables

    table = view.table
    if options.block is not None:
        check_value("--block", options.block, Between(1, len(table.comparable)))
    if options.ledger:
        print_text(tables.terminal(table.dataset, [view.ledger()]), "")
    elif options.latex:
        print_text(_put_latex(options, view.latex(), num_tables), "")
    else:
        print_text(view.render(), "")
        if table.statistic == "f":
            for file in view.picture_files():
                print_text(open_results(options).root / "leaderboard" / file, "")


def _matrix(options: Namespace, results: "Results") -> list[object]:
    """Write the matrix of systems × datasets; return its text."""
    # The matrix has its own columns and blocks.
    foreign_options = (
        "dataset",
        "columns",
        "block",
        "by_run",
        "ledger",
        "against",
        "kind",
        "published",
    )
    if options.measure != "f1" or any(vars(options)[name] for name in foreign_options):
        raise UsageError(
            "--matrix shows F1 or METRIC of all datasets: leave out DATASET and other options than --latex"
        )
    from longsumbench.views import tables
    from longsumbench.views.matrix import MATRIX_HEADING, matrix_blocks, update_matrix

    matrices = update_matrix(results, options.matrix or None)
    heading, blocks = MATRIX_HEADING, matrix_blocks(matrices, brief=not options.latex)
    latex = options.latex and _put_latex(options, tables.latex(heading, blocks))
    text = latex or tables.terminal(heading, blocks)
    return [text]


def _put_latex(options: Namespace, text: str, num_tables: int = 1) -> str:
    """Write LaTeX to the file that `--latex` names, and return its name; without a file, return the LaTeX."""
    from longsumbench.files import write_atomically

    if options.latex is True:
        return text
    if not options.latex.endswith(".tex") or num_tables > 1:
        raise UsageError(
            f"{options.latex}: name one DATASET first, then a file that ends in .tex (.md and .csv are in"
            " results/leaderboard)"
        )
    file = output_file(options.latex, "--output")
    assert file is not None
    write_atomically(file, text)
    return str(file)


def _draw_against(options: Namespace, results: "Results", names: Sequence[str]) -> list[Path]:
    """Write the plots of `--against`; return the files."""
    if options.kind is not None and not options.against:
        raise UsageError("--kind needs --against SETTING: it selects the plotted score")
    if options.against and len(names) > 1:
        raise UsageError(
            f"--against plots the runs on one dataset: choose one of {', '.join(names)}"
        )
    if options.against and options.measure != "f1":
        raise UsageError(
            "--measure is for the printed table: --against plots F1, or the score of --kind"
        )
    if not options.against:
        return []
    from longsumbench.views.curves import update_curves

    return update_curves(results, names[0], options.against, options.kind)


leaderboard_command = Command(
    "leaderboard", "rebuild and print tables from results/", _HELP, _ARGUMENTS, _execute
)
