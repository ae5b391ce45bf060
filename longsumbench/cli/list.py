"""`longsumbench list`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_KINDS = ("models", "datasets", "scales", "experiments", "metrics", "rankers", "settings")

_HELP = """\
Print what can be named on the command line, with a line about each.

  longsumbench list models                      also those that other installed packages add
  longsumbench list settings trunc              every setting, its default and what it means
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("what", metavar="KIND", choices=_KINDS, help=", ".join(_KINDS))
    command.add_argument("model", nargs="?", help="with settings: those of this model too")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.api import catalogue

    if options.model and options.what != "settings":
        raise UsageError(f"'{options.model}' is one word too many: longsumbench list {options.what}")
    print_text(
        catalogue.list_settings(options.model) if options.what == "settings" else catalogue.list_names(options.what)
    )


list_command = Command("list", "list what can be named", _HELP, _add_arguments, _execute)
