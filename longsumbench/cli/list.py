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
    from tabulate import tabulate

    from longsumbench.api import catalogue, registry

    if options.model and options.what != "settings":
        raise UsageError(f"'{options.model}' is an extra argument: longsumbench list {options.what}")
    if options.what != "settings":
        print_text(tabulate(catalogue.name_rows(options.what), tablefmt="plain"))
        return
    own = catalogue.setting_rows(registry.config_of(options.model), "model.") if options.model else []
    rows, header = [*own, *catalogue.all_setting_rows()], ["setting", "default", "meaning"]
    print_text(tabulate(rows, headers=header, tablefmt="plain", disable_numparse=True))


list_command = Command("list", "list models, datasets, settings and other names", _HELP, _add_arguments, _execute)
