"""`longsumbench inspect`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from longsumbench.cli.parser import Command, Parser, add_results_dir, output_folder, results_of
from longsumbench.formatting import escape_line, print_text

_HELP = """\
Show what a system looked at while it wrote summaries of a finished run.

  longsumbench inspect 85f3139c 0                         the first example of the run's split
  longsumbench inspect 85f3139c journal.pone.0163477      an example by its id
  longsumbench inspect 85f3139c 0 1 2 3                   four pages, each with links to the previous and the next
  longsumbench inspect results/runs/pydoc/seal/693c8b750af2 3 --output figures

Writes NUMBER.html, a page in one file, and NUMBER.png, a figure for a paper. They show the evidence that the run
stored: the weight of each source unit at each step of the summary, the units selected for each segment, and any other
array as a heat map, together with the texts of the units.
A run stores evidence of its first 20 examples. Run the same `run` command with decode.evidence=all to add the others.
With decode.keep_inputs=all it also stores the text as the system read it, and the page shows it.
Without evidence the page shows what the output shares with the source and the references.
What the views mean: docs/how-to/inspect.md.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument(
        "examples", nargs="+", metavar="EXAMPLE", help="examples by their ids, or their numbers in the split, from 0"
    )
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: inspections/ID in results)")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.outputs.inspect_page import write_inspection
    from longsumbench.outputs.inspect_run import inspection_folder
    from longsumbench.outputs.overlap_page import inspect
    from longsumbench.render.figures import write_pictures

    inspections = [inspect(options.run, example, options.results_dir) for example in options.examples]
    folder = output_folder(options.output, inspection_folder(results_of(options), inspections[0].record))
    for inspection in inspections:
        linked = replace(inspection, pages=sorted(item.number for item in inspections))
        if linked.evidence is None:
            print_text(*write_pictures(folder, {f"{linked.number}.html": linked.page()}))
            print(escape_line(linked.no_evidence), file=sys.stderr)
        else:
            print_text(*write_inspection(linked, folder))


_INTERRUPTED = "the run is unchanged; the same command starts again"
inspect_command = Command("inspect", "show what a system looked at", _HELP, _add_arguments, _execute, _INTERRUPTED)
