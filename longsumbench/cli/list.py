"""`longsumbench list`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser, add_results_dir, results_of
from longsumbench.errors import UsageError
from longsumbench.formatting import plain_table, print_text

_LISTED_KINDS = ("models", "datasets", "scales", "experiments", "recipes", "metrics", "rankers", "settings", "runs")
FILTERS = ("dataset", "model", "state")  # of runs
STATES = ("finished", "running", "interrupted")

_HELP = """\
List the names that the command line accepts, with a line about each, or the runs in the results folder.

  longsumbench list models                      the suite's models and those of other installed packages
  longsumbench list datasets                    also your own (longsumbench dataset add)
  longsumbench list recipes                     settings of a model for a dataset (model/recipe=NAME)
  longsumbench list settings trunc              every setting, its default and what it means
  longsumbench list runs                        all runs, the newest first
  longsumbench list runs dataset=pydoc model=seal state=interrupted         some of them

A run is finished, running or interrupted. Its score is the one that ranks it. Interrupted runs are followed by the
command that continues them.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("what", metavar="KIND", choices=_LISTED_KINDS, help=", ".join(_LISTED_KINDS))
    command.add_argument(
        "filters",
        nargs="*",
        metavar="MODEL | KEY=VALUE",
        help=f"settings: also those of this model; runs: dataset=NAME, model=NAME, state={'|'.join(STATES)}",
    )
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.core import catalogue, registry

    if options.what == "runs":
        print_text(_render_runs(options))
        return
    allowed = 1 if options.what == "settings" else 0
    if extra := options.filters[allowed:]:
        raise UsageError(f"'{extra[0]}' is an extra argument: longsumbench list {options.what}")
    if options.what != "settings":
        rows = dict(catalogue.name_rows(options.what))
        rows |= dict(catalogue.own_dataset_rows()) if options.what == "datasets" else {}
        print_text(plain_table(sorted(rows.items())))
        return
    settings = [row for model in options.filters for row in catalogue.setting_rows(registry.config_of(model), "model.")]
    print_text(plain_table([*settings, *catalogue.all_setting_rows()], ["setting", "default", "meaning"]))


def _render_runs(options: argparse.Namespace) -> str:
    from longsumbench.core import check_choice
    from longsumbench.runs.run_list import list_runs, render_runs

    filters = dict(word.partition("=")[::2] for word in options.filters)
    for key, value in filters.items():
        if key not in FILTERS or not value:
            raise UsageError(f"'{key}' is not a filter: write {', '.join(f'{name}=…' for name in FILTERS)}")
    if "state" in filters:
        check_choice("state", filters["state"], STATES)
    return render_runs(list_runs(results_of(options), **filters))


list_command = Command("list", "list models, datasets, settings, runs …", _HELP, _add_arguments, _execute)
