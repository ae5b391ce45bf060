"""`longsumbench compare`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser, add_results_dir, output_folder, results_of
from longsumbench.formatting import print_text

_HELP = """\
Compare finished runs, example by example. The first run is the baseline.

  longsumbench compare 85f3139c 36e2dc94                  runs by their ids, or the beginnings of these
  longsumbench compare 85f3139c 36e2 c6f0 --all-pairs     every pair of runs, corrected together
  longsumbench compare 85f3139c results/runs/pydoc/lead/c6f0ec26c16b --output lead_or_not --examples 30

For every measure: both means, their difference with its 95 % interval, p by approximate randomization, p corrected for
the whole table (Holm), and the smallest difference that the test could detect. All runs must have the same texts and
the same scoring. If they have different examples, --intersect compares the examples in common.
Prints the table and writes it as .csv, .md and .html. The .md and .html files also show the examples that changed
most, with both outputs. The page is one file without other dependencies.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("runs", nargs="*", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("--all-pairs", action="store_true", help="compare every pair, not only with the first run")
    command.add_argument("--intersect", action="store_true", help="compare the examples that all runs have")
    command.add_argument(
        "--examples", type=int, default=10, metavar="N", help="show the N largest gains and losses (default: 10)"
    )
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: comparisons/IDS in the results)")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.outputs.compare import compare
    from longsumbench.outputs.compare_page import comparison_folder, write_comparison

    settings = {name: getattr(options, name) for name in ("results_dir", "examples", "intersect", "all_pairs")}
    comparison = compare(*options.runs, **settings)
    folder = output_folder(options.output, comparison_folder(results_of(options), comparison.runs))
    files = write_comparison(comparison, folder)
    print_text(comparison.render(), "", *files)


_INTERRUPTED = "the runs are unchanged; the same command starts again"
compare_command = Command("compare", "compare finished runs", _HELP, _add_arguments, _execute, _INTERRUPTED)
