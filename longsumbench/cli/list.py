"""`longsumbench list`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_KINDS = ("models", "datasets", "scales", "experiments", "metrics", "rankers", "settings")

_HELP = """\
List the names that the command line accepts, with a line about each.

  longsumbench list models                      the suite's models and those of other installed packages
  longsumbench list settings trunc              every setting, its default and what it means
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("what", metavar="KIND", choices=_KINDS, help=", ".join(_KINDS))
    command.add_argument("model", nargs="?", help="with settings: also those of this model")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.api import catalogue

    if options.model and options.what != "settings":
        raise UsageError(f"'{options.model}' is an extra argument: longsumbench list {options.what}")
    print_text(
        catalogue.list_settings(options.model) if options.what == "settings" else catalogue.list_names(options.what)
    )


list_command = Command("list", "list models, datasets, settings and other names", _HELP, _add_arguments, _execute)
