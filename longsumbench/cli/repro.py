"""`longsumbench repro`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir
from longsumbench.formatting import print_text

_HELP = """\
Say what it takes to repeat a finished run: code, packages, texts, and the command of its own point.

  longsumbench repro 85f3139c                    a page to follow; of a sweep's point, the command for it alone
  longsumbench repro 85f3139c --output again     also as again/repro.sh, with patch, constraints and configuration
  longsumbench repro 85f3139c --check            repeat it here and now, and compare what is written

The command is found from the run's record, under today's settings; what these cannot say is named. --check trains,
summarizes and scores from nothing, in a folder of its own, on texts that may have been read before. It compares with
the run's predictions or, where it came without them, with its scores. What differs from the machine and the versions
of the run is said first; where a prediction differs, the repeat is kept, and the exit code is 1.
More: docs/how-to/reproduce.md
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("--check", action="store_true", help="repeat it now, and compare what is written")
    command.add_argument("--output", metavar="FOLDER", help="also write repro.sh there, and what it needs")
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
            raise KeyboardInterrupt("the run is as it was; the same command repeats it anew") from None


repro_command = Command("repro", "repeat a finished run", _HELP, _add_arguments, _execute)
