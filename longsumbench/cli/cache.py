"""`longsumbench cache`."""

import argparse
import re
from collections.abc import Mapping, Sequence

from longsumbench.cli.parser import Command, Parser
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_TIME_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "w": 604_800.0, "d": 86_400.0}  # unit → seconds
_SIZE_UNITS = {"MB": 1e6, "TB": 1e12, "GB": 1e9}  # unit → bytes
_HELP = """\
Show, verify or delete the contents of the cache.

  longsumbench cache                            for each kind: number, size, last use
  longsumbench cache list                       each stage with its key
  longsumbench cache verify                     read every file and compare it with its checksum
  longsumbench cache prune                      delete what was not used for 30 days
  longsumbench cache prune --unused-for 12h --dry-run
  longsumbench cache prune --max-size 20GB      delete the longest unused until the rest fits
  longsumbench cache prune 3f2a91               delete one stage, by the beginning of its key
  longsumbench cache prune --all                delete everything

Runs share the stages in the cache: read corpora, tokenizers, units, labels, rankers, checkpoints. A run builds a
deleted stage again when it needs it. Runs and tables do not change. prune keeps and reports a stage that is being
built. What an interrupted or killed process left over can be continued by the same command; prune deletes it after a
day.
A run checks sizes and times of the files it uses. verify also compares their contents. The next run that needs a
damaged stage builds it again and keeps the damaged files.
The cache is the user's cache folder, or the folder in the environment variable LONGSUMBENCH_CACHE
(docs/how-to/cache.md). Its file requests.sqlite has the answers of language models' servers; prune leaves it.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("words", nargs="*", metavar="[list|verify|prune] [KEY]", help="beginnings of stages' keys")
    command.add_argument("--unused-for", metavar="TIME", help="prune: 30d (default), 12h, 2w")
    command.add_argument("--max-size", metavar="SIZE", help="prune: 500MB, 20GB")
    command.add_argument("--all", action="store_true", help="prune: delete everything")
    command.add_argument("--dry-run", action="store_true", help="prune: print what would be deleted")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.cache import prune
    from longsumbench.cache.artifacts import cache_folder

    action, *keys = options.words or ["kinds"]
    selected = {"KEY": keys, "--all": options.all, "--unused-for": options.unused_for, "--max-size": options.max_size}
    flags = [flag for flag, value in {**selected, "--dry-run": options.dry_run}.items() if value and flag != "KEY"]
    if action not in ("kinds", "list", "verify", "prune"):
        raise UsageError(f"longsumbench cache {action}: write list, verify or prune before the key")
    if flags and action != "prune":
        raise UsageError(f"{flags[0]} needs `longsumbench cache prune`")
    if len(together := [name for name, value in selected.items() if value]) > 1 and action == "prune":
        raise UsageError(f"{' and '.join(together)} cannot be combined: each selects what to delete")
    root = cache_folder()
    stages = prune.select_artifacts(prune.artifacts_in(root), keys)
    if action == "prune":
        if options.max_size:
            stages = prune.surplus_artifacts(stages, _parse_amount("--max-size", options.max_size, _SIZE_UNITS))
        elif not (options.all or keys):
            span = _parse_amount("--unused-for", options.unused_for or "30d", _TIME_UNITS)
            stages = prune.outdated_artifacts(stages, span)
        print_text(prune.delete_artifacts(stages, options.dry_run))
    elif action == "verify":
        print_text(prune.verify_artifacts(stages))
    else:
        print_text(prune.list_kinds(root, stages) if action == "kinds" else prune.list_artifacts(root, stages))


def _parse_amount(flag: str, text: str, units: Mapping[str, float]) -> float:
    """Parse a number with a unit: "30d", "20GB".

    Raises:
        UsageError: the text is something else.
    """
    if (match := re.fullmatch(rf"(\d{{1,9}}(?:\.\d+)?)({'|'.join(units)})", text)) is None:
        form = f"a number followed by {', '.join(units)}, as in 30{[*units][-1]}"
        raise UsageError(f"{flag} {text}: write {form}")
    return float(match[1]) * units[match[2]]


cache_command = Command("cache", "show, verify or delete the contents of the cache", _HELP, _add_arguments, _execute)
