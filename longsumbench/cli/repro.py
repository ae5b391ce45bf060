"""`longsumbench repro`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir
from longsumbench.formatting import print_text

_HELP = """\
Print how to repeat a finished run: code, packages, texts and the command.

  longsumbench repro 85f3139c                    instructions; for a point of a sweep, the command for this point only
  longsumbench repro 85f3139c --output again     also write again/repro.sh, patch, constraints and configuration
  longsumbench repro 85f3139c --check            repeat the run here, and compare the outputs

The command is derived from the run's record and the present settings. It names everything that these cannot express.
--check trains, summarizes and scores again in a new folder; it may reuse texts that were read before. It compares the
predictions or, if they are missing, the scores. It first reports differences in machine and versions. If a prediction
differs, it keeps the repeated run and exits with code 1.
More: docs/how-to/reproduce.md
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("--check", action="store_true", help="repeat it now, and compare the outputs")
    command.add_argument("--output", metavar="FOLDER", help="also write repro.sh and its files there")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.analysis.runs.reproduce import reproduce, reproduction_page, write_reproduction
    from longsumbench.files import writable_folder
    from longsumbench.runs.record import Results

    found = reproduce(options.run, Results(Path(options.results_dir).expanduser()))
    folder = writable_folder(Path(options.output).expanduser(), "--output") if options.output else None
    print_text(reproduction_page(found))
    if folder is not None:
        print_text("", *write_reproduction(found, folder))
    if options.check:
        from longsumbench.analysis.runs.repeat import check_repeat

        try:
            print_text("", check_repeat(found))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("the run is unchanged; the same command starts again") from None


repro_command = Command("repro", "repeat a finished run", _HELP, _add_arguments, _execute)
