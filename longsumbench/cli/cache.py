"""`longsumbench cache`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_HELP = """\
Show, verify or delete the contents of the cache.

  longsumbench cache                            for each kind: number, size, last use, which process builds one
  longsumbench cache --all --kind checkpoint    each checkpoint with its key
  longsumbench cache verify                     read every file and compare it with its checksum
  longsumbench cache prune                      delete what was not used for 30 days, and what is left over
  longsumbench cache prune --unused-for 12h --kind units ranker-rows --dry-run
  longsumbench cache prune 3f2a91               delete one stage, by the beginning of its key
  longsumbench cache prune --all                delete everything

Runs share the stages in the cache: read corpora, tokenizers, units, labels, rankers, checkpoints. A run builds a
deleted stage again when it needs it. Runs and tables do not change. prune keeps and reports a stage that is in use or
being built.
A run checks sizes and times of the files it uses. verify also compares their contents. The next run that needs a
damaged stage builds it again and keeps the damaged files.
A killed process leaves an unfinished stage, which the same command continues. prune deletes unfinished and damaged
stages after a day; --left-over deletes them at once, and nothing else. The cache is the user's cache folder, or the
folder in the environment variable LONGSUMBENCH_CACHE (docs/how-to/cache.md).
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("keys", nargs="*", metavar="[verify|prune] [KEY]", help="beginnings of stages' keys")
    command.add_argument("--all", action="store_true", help="list every stage; with prune: delete all")
    command.add_argument("--kind", nargs="+", default=[], metavar="NAME", help="only stages of these kinds")
    command.add_argument("--unused-for", metavar="TIME", help="prune: 30d (default), 12h, 2w")
    command.add_argument("--left-over", action="store_true", help="prune: delete only what is left over, at once")
    command.add_argument("--dry-run", action="store_true", help="prune: print what would be deleted")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.cache import prune as cache
    from longsumbench.cache.artifacts import cache_folder, check_layout

    root = cache_folder()
    prune_flags = {"--unused-for": options.unused_for, "--left-over": options.left_over, "--dry-run": options.dry_run}
    given = [flag for flag, value in prune_flags.items() if value]
    if options.keys[:1] == ["prune"]:
        _prune_command(options, root, options.keys[1:])
        return
    if given:
        raise UsageError(f"{given[0]} needs `longsumbench cache prune`")
    if root.is_dir():
        check_layout(root)
    there = cache.artifacts_in(root)
    if options.keys[:1] == ["verify"]:
        print(cache.verify_artifacts(cache.select_artifacts(there, options.kind, options.keys[1:])))
        return
    wanted = cache.select_artifacts(there, options.kind, options.keys)
    one_by_one = options.all or options.keys
    print_text(cache.list_artifacts(root, wanted, there) if one_by_one else cache.list_kinds(root, wanted))


def _prune_command(options: argparse.Namespace, root: Path, keys: Sequence[str]) -> None:
    from longsumbench.cache import prune as cache

    asked = {"KEY": keys, "--all": options.all, "--left-over": options.left_over, "--unused-for": options.unused_for}
    if len(together := [name for name, value in asked.items() if value]) > 1:
        raise UsageError(f"{' and '.join(together)} cannot be combined: each selects what to delete")
    unused_for = cache.UNUSED_FOR if options.unused_for is None else cache.parse_seconds(options.unused_for)
    pruning = cache.Pruning(options.dry_run)
    try:
        cache.prune(root, pruning, options.kind, keys, unused_for, options.left_over, options.all)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{pruning.describe()}; the same command deletes the rest") from None
    print_text(pruning.describe())


cache_command = Command("cache", "show, verify or delete the contents of the cache", _HELP, _add_arguments, _execute)
