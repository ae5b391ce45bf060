"""Commands that show what there is: `longsumbench list`, `status` and `cache`."""

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir, print_choices, results_of
from longsumbench.errors import UsageError
from longsumbench.formatting import for_stdout, plain_table, print_text

LISTED_KINDS = {
    "models": "systems, also those of other installed packages",
    "datasets": "texts with a name, also your own (longsumbench dataset add)",
    "scales": "sizes of models, budgets and texts (scale=NAME)",
    "experiments": "settings that belong together (experiment=NAME)",
    "recipes": "settings of a model for a dataset (model/recipe=NAME)",
    "metrics": "measures of summaries (score.metrics=[NAME])",
    "rankers": "what orders the parts of a source (rank=NAME)",
    "settings": "every setting, its default and what it means; with a model's name also those of the model",
    "runs": "the runs in the results folder, the newest first",
}
FILTERS = ("dataset", "model", "state")  # of runs
STATES = ("finished", "running", "interrupted")

_LIST_HELP = """\
List the names that the command line accepts, with a line about each, or the runs in the results folder.

  longsumbench list                             the kinds of names
  longsumbench list models                      the suite's models and those of other installed packages
  longsumbench list datasets                    also your own (longsumbench dataset add)
  longsumbench list recipes                     settings of a model for a dataset (model/recipe=NAME)
  longsumbench list settings trunc              every setting, its default and what it means
  longsumbench list runs                        all runs, the newest first
  longsumbench list runs dataset=pydoc model=seal state=interrupted         some of them

A run is finished, running or interrupted. Its score is the one that ranks it. Interrupted runs are followed by the
command that continues them.
"""


def _add_list_arguments(command: Parser) -> None:
    command.add_argument(
        "what", nargs="?", metavar="KIND", choices=[*LISTED_KINDS], help=", ".join(LISTED_KINDS)
    )
    command.add_argument(
        "filters",
        nargs="*",
        metavar="MODEL | KEY=VALUE",
        help=f"settings: also those of this model; runs: dataset=NAME, model=NAME, state={'|'.join(STATES)}",
    )
    add_results_dir(command)


def _execute_list(options: argparse.Namespace, words: Sequence[str]) -> None:
    if options.what is None:
        print_choices("longsumbench list", LISTED_KINDS)
        return
    if options.what == "runs":
        print_text(_render_runs(options))
        return
    from longsumbench.core import catalogue, registry

    allowed = 1 if options.what == "settings" else 0
    if extra := options.filters[allowed:]:
        raise UsageError(f"'{extra[0]}' is an extra argument: longsumbench list {options.what}")
    if options.what != "settings":
        rows = dict(catalogue.name_rows(options.what))
        rows |= dict(catalogue.own_dataset_rows()) if options.what == "datasets" else {}
        print_text(plain_table(sorted(rows.items())))
        return
    settings = [
        row
        for model in options.filters
        for row in catalogue.setting_rows(registry.config_of(model), "model.")
    ]
    print_text(
        plain_table([*settings, *catalogue.all_setting_rows()], ["setting", "default", "meaning"])
    )


def _render_runs(options: argparse.Namespace) -> str:
    from longsumbench.core import check_choice
    from longsumbench.runs.run_list import list_runs, render_runs

    filters = dict(word.partition("=")[::2] for word in options.filters)
    for key, value in filters.items():
        if key not in FILTERS or not value:
            raise UsageError(
                f"'{key}' is not a filter: write {', '.join(f'{name}=…' for name in FILTERS)}"
            )
    if "state" in filters:
        check_choice("state", filters["state"], STATES)
    return render_runs(list_runs(results_of(options), **filters))


list_command = Command(
    "list",
    "list models, datasets, settings, runs …",
    _LIST_HELP,
    _add_list_arguments,
    _execute_list,
)


_LONGEST_PAUSE = 86_400.0  # most seconds between two updates: larger values can overflow `sleep`
_STATUS_HELP = """\
Show the progress of a sweep: which points are done, running, failed or waiting, and the time left.

  longsumbench status                           the sweeps that are running, or the last one
  longsumbench status 3fa2 --watch              one sweep, updated every 5 seconds
  longsumbench status --results-dir /shared/results            sweeps in another results folder

The command only reads the sweep's files. It works in any shell, on any machine that can read the folder.
"""


def _add_status_arguments(command: Parser) -> None:
    command.add_argument(
        "sweep",
        nargs="?",
        metavar="SWEEP",
        help="its id, or the beginning of it (default: running sweeps)",
    )
    command.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=5.0,
        metavar="SECONDS",
        help="update every SECONDS (default: 5)",
    )
    add_results_dir(command)


def _execute_status(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.sweeps.state import render_status

    results, seconds = Path(options.results_dir).expanduser(), options.watch
    if seconds is None:
        print_text(render_status(results, options.sweep))
        return
    if not seconds > 0:
        raise UsageError(f"--watch {seconds:g}: the number of seconds must be above 0")
    while True:
        print("\x1b[2J\x1b[H" + for_stdout(render_status(results, options.sweep)), flush=True)
        time.sleep(min(seconds, _LONGEST_PAUSE))


status_command = Command(
    "status",
    "show the progress of a sweep",
    _STATUS_HELP,
    _add_status_arguments,
    _execute_status,
    "a running sweep continues",
)


_TIME_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "w": 604_800.0, "d": 86_400.0}  # unit → seconds
_CACHE_HELP = """\
Show or delete the contents of the cache.

  longsumbench cache                            for each kind: number, size, last use
  longsumbench cache list                       each stage with its key
  longsumbench cache prune                      delete what was not used for 30 days
  longsumbench cache prune --unused-for 12h --dry-run
  longsumbench cache prune 3f2a91               delete one stage, by the beginning of its key
  longsumbench cache prune --all                delete everything

Runs share the stages in the cache: read corpora, tokenizers, units, labels, rankers, checkpoints. A run builds a
deleted stage again when it needs it. Runs and tables do not change. prune keeps and reports a stage that is being
built. What an interrupted or killed process left over can be continued by the same command; prune deletes it after a
day.
A run checks the sizes of the files it uses, and the content of what decides scores. A damaged stage is named, with the
command that deletes it.
The cache is the user's cache folder, or the folder in the environment variable LONGSUMBENCH_CACHE
(docs/how-to/cache.md). Its file requests.sqlite has the answers of language models' servers; prune leaves it.
"""


def _add_cache_arguments(command: Parser) -> None:
    command.add_argument(
        "words", nargs="*", metavar="[list|prune] [KEY]", help="beginnings of stages' keys"
    )
    command.add_argument("--unused-for", metavar="TIME", help="prune: 30d (default), 12h, 2w")
    command.add_argument("--all", action="store_true", help="prune: delete everything")
    command.add_argument(
        "--dry-run", action="store_true", help="prune: print what would be deleted"
    )


def _execute_cache(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.cache import prune
    from longsumbench.cache.artifacts import cache_folder

    action, *keys = options.words or ["kinds"]
    selected = {"KEY": keys, "--all": options.all, "--unused-for": options.unused_for}
    flags = [
        flag
        for flag, value in {**selected, "--dry-run": options.dry_run}.items()
        if value and flag != "KEY"
    ]
    if action not in ("kinds", "list", "prune"):
        raise UsageError(f"longsumbench cache {action}: write list or prune before the key")
    if flags and action != "prune":
        raise UsageError(f"{flags[0]} needs `longsumbench cache prune`")
    if (
        len(together := [name for name, value in selected.items() if value]) > 1
        and action == "prune"
    ):
        raise UsageError(
            f"{' and '.join(together)} cannot be combined: each selects what to delete"
        )
    root = cache_folder()
    stages = prune.select_artifacts(prune.artifacts_in(root), keys)
    if action == "prune":
        if not (options.all or keys):
            span = _parse_time("--unused-for", options.unused_for or "30d")
            stages = prune.outdated_artifacts(stages, span)
        print_text(prune.delete_artifacts(stages, options.dry_run))
    else:
        print_text(
            prune.list_kinds(root, stages)
            if action == "kinds"
            else prune.list_artifacts(root, stages)
        )


def _parse_time(flag: str, text: str) -> float:
    """Parse a number with a unit ("30d") as seconds."""
    if (match := re.fullmatch(rf"(\d{{1,9}}(?:\.\d+)?)({'|'.join(_TIME_UNITS)})", text)) is None:
        raise UsageError(
            f"{flag} {text}: write a number followed by {', '.join(_TIME_UNITS)}, as in 30d"
        )
    return float(match[1]) * _TIME_UNITS[match[2]]


cache_command = Command(
    "cache",
    "show or delete the contents of the cache",
    _CACHE_HELP,
    _add_cache_arguments,
    _execute_cache,
)
