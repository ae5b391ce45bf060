"""Commands that show what there is: `longsumbench list`, `status` and `cache`."""

import pkgutil
import re
from argparse import Namespace
from pathlib import Path

from longsumbench.cli.parser import RESULTS_DIR, Argument, Command, open_results, print_choices
from longsumbench.errors import UsageError
from longsumbench.formatting import plain_table, print_text

LISTED_KINDS = {
    "models": "systems, also those of other installed packages",
    "datasets": "texts with a name, also your own (docs/get-started/own-texts.md)",
    "scales": "sizes of models, budgets and texts (scale=NAME)",
    "experiments": "settings that belong together (experiment=NAME)",
    "recipes": "settings of a model for a dataset (model/recipe=NAME)",
    "metrics": "measures of summaries (score.metrics=[NAME])",
    "rankers": "what orders the parts of a source (rank=NAME)",
    "readings": "how a language model reads a long text, and what that costs (model.reading=NAME)",
    "settings": "every setting, its default and what it means; with a model's name also those of the model",
    "runs": "the runs in the results folder, the newest first",
}
FILTERS = ("dataset", "model", "state")  # of runs
STATES = ("finished", "running", "interrupted")

_LIST_HELP = """\
List the names that the command line accepts, with a line about each, or the runs in the results folder.

  longsumbench list                             the kinds of names
  longsumbench list models                      the suite's models and those of other installed packages
  longsumbench list datasets                    also your own
  longsumbench list recipes                     settings of a model for a dataset (model/recipe=NAME)
  longsumbench list settings trunc              every setting, its default and what it means
  longsumbench list runs                        all runs, the newest first
  longsumbench list runs dataset=aclsum model=seal state=interrupted         some of them

A run is finished, running or interrupted. Its score is the one that ranks it. Interrupted runs are followed by the
command that continues them.
"""


_LIST_ARGUMENTS = (
    Argument("what", ", ".join(LISTED_KINDS), "KIND", nargs="?", choices=[*LISTED_KINDS]),
    Argument(
        "filters",
        f"settings: also those of this model; runs: dataset=NAME, model=NAME, state={'|'.join(STATES)}",
        "MODEL | KEY=VALUE",
        nargs="*",
    ),
    RESULTS_DIR,
)


def _execute_list(options: Namespace) -> None:
    if options.what is None:
        print_choices("longsumbench list", LISTED_KINDS)
        return
    if options.what == "runs":
        print_text(_render_runs(options))
        return
    from longsumbench.core import catalogue, registry

    # A model's name may follow `settings`, and nothing the others.
    allowed = 1 if options.what == "settings" else 0
    if extra := options.filters[allowed:]:
        raise UsageError(f"'{extra[0]}' is an extra argument: longsumbench list {options.what}")
    if options.what == "readings":
        describe = pkgutil.resolve_name(registry.load_config_class("prompt").described_by)
        print_text(describe())
        return
    if options.what != "settings":
        rows = dict(catalogue.name_rows(options.what))
        rows |= dict(catalogue.own_dataset_rows()) if options.what == "datasets" else {}
        print_text(plain_table(sorted(rows.items())))
        return
    settings = []
    for model in options.filters:
        settings += catalogue.setting_rows(registry.load_config_class(model), "model.")
    settings += catalogue.all_setting_rows()
    print_text(plain_table(settings, ["setting", "default", "meaning"]))


def _render_runs(options: Namespace) -> str:
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
    return render_runs(list_runs(open_results(options), **filters))


list_command = Command(
    "list",
    "list models, datasets, settings, runs …",
    _LIST_HELP,
    _LIST_ARGUMENTS,
    _execute_list,
)


_STATUS_HELP = """\
Show the progress of a sweep: which runs are done, running, failed or waiting, and the time left.

  longsumbench status                           the sweeps that are running, or the last one
  longsumbench status 3fa2                      one sweep, by the beginning of its id
  longsumbench status --results-dir /shared/results            sweeps in another results folder

The command only reads the sweep's files. It works in any shell, on any machine that can read the folder.
"""


_STATUS_ARGUMENTS = (
    Argument(
        "sweep", "its id, or the beginning of it (default: running sweeps)", "SWEEP", nargs="?"
    ),
    RESULTS_DIR,
)


def _execute_status(options: Namespace) -> None:
    from longsumbench.sweeps.state import render_status

    print_text(render_status(Path(options.results_dir).expanduser(), options.sweep))


status_command = Command(
    "status",
    "show the progress of a sweep",
    _STATUS_HELP,
    _STATUS_ARGUMENTS,
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
  longsumbench cache prune --unused-for 0s      delete everything

Runs share the stages in the cache: read corpora, tokenizers, units, labels, rankers, checkpoints. A run builds a
deleted stage again when it needs it. Runs and tables do not change. prune keeps a stage that is being built. What an
interrupted or killed process left over can be continued by the same command; prune deletes it after a day.
A run checks the sizes of the files it uses, and the content of what decides scores. A damaged stage is named: delete
its folder.
The cache is the user's cache folder, or the folder in the environment variable LONGSUMBENCH_CACHE
(docs/how-to/cache.md). Its file requests.sqlite has the answers of language models' servers; prune leaves it.
"""


_CACHE_ARGUMENTS = (
    Argument("action", "list or prune", "ACTION", nargs="?", choices=("list", "prune")),
    Argument("--unused-for", "prune: 30d (default), 12h, 2w; 0s: everything", "TIME"),
    Argument("--dry-run", "prune: print what would be deleted"),
)


def _execute_cache(options: Namespace) -> None:
    from longsumbench.cache import prune
    from longsumbench.cache.artifacts import cache_folder

    root = cache_folder()
    stages = prune.artifacts_in(root)
    if options.action == "prune":
        span = _parse_time("--unused-for", options.unused_for or "30d")
        print_text(prune.delete_outdated(stages, span, options.dry_run))
    elif options.unused_for or options.dry_run:
        raise UsageError("--unused-for and --dry-run need `longsumbench cache prune`")
    elif options.action == "list":
        print_text(prune.list_artifacts(root, stages))
    else:
        print_text(prune.list_kinds(root, stages))


def _parse_time(flag: str, text: str) -> float:
    """Parse a number with a unit ("30d") as seconds."""
    match = re.fullmatch(rf"(\d{{1,9}}(?:\.\d+)?)({'|'.join(_TIME_UNITS)})", text)
    if match is None:
        raise UsageError(
            f"{flag} {text}: write a number followed by {', '.join(_TIME_UNITS)}, as in 30d"
        )
    return float(match[1]) * _TIME_UNITS[match[2]]


cache_command = Command(
    "cache",
    "show or delete the contents of the cache",
    _CACHE_HELP,
    _CACHE_ARGUMENTS,
    _execute_cache,
)
