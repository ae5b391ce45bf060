"""`longsumbench repro`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser, add_results_dir, results_of
from longsumbench.formatting import print_text

_HELP = """\
Print the facts of a finished run, what differs here, and the commands that repeat it.

  longsumbench repro 85f3139c                    facts, differences in machine and versions, commands
  longsumbench repro 85f3139c --check            repeat the run here, and compare the outputs

--check trains, summarizes and scores again in a new folder; it may reuse texts that were read before. It compares the
predictions or, if they are missing, the scores. If an output differs, it keeps the repeated run and exits with code 1.
Of imported outputs it only computes the scores again.
More: docs/how-to/reproduce.md
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("--check", action="store_true", help="repeat it now, and compare the outputs")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.outputs.reproduce import reproduction_page
    from longsumbench.runs.record import RunRecord

    folder = results_of(options).find(options.run)
    record = RunRecord.read(folder)
    if not options.check:
        print_text(reproduction_page(folder, record))
        return
    from longsumbench.outputs.import_outputs import score_again
    from longsumbench.outputs.reproduce import check_repeat

    print_text(check_repeat(folder, record, score_again if record.imported else None))


_INTERRUPTED = "the run is unchanged; the same command starts again"
repro_command = Command("repro", "repeat a finished run", _HELP, _add_arguments, _execute, _INTERRUPTED)
