"""`longsumbench cache`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_HELP = """\
Show what the cache holds, verify it, or delete of it.

  longsumbench cache                            each kind of stage: how many, how large, last used, who builds one
  longsumbench cache --all --kind checkpoint    one by one, with their keys
  longsumbench cache verify                     read every file and compare it with its checksum
  longsumbench cache prune                      delete what was not used for 30 days, and what was left over
  longsumbench cache prune --unused-for 12h --kind units ranker-rows --dry-run
  longsumbench cache prune 3f2a91               one stage, by the beginning of its key
  longsumbench cache prune --all                everything

Runs share the stages in it: read corpora, tokenizers, units, labels, rankers, checkpoints. What is deleted is made
again when it is asked for; runs and tables do not change. What is in use or being built is kept, and said.
A run compares sizes and times of the files it uses; verify also compares their contents. The next run that needs a
damaged stage builds it anew; the damaged one is kept as left over.
Left over is what killed processes began. The same command would continue it, so prune deletes it after a day, or with
--left-over at once (and nothing else). The folder is the user's cache folder, or what the environment variable
LONGSUMBENCH_CACHE names (docs/how-to/cache.md).
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("keys", nargs="*", metavar="[verify|prune] [KEY]", help="the beginnings of stages' keys")
    command.add_argument("--all", action="store_true", help="every stage in a row of its own; with prune: delete all")
    command.add_argument("--kind", nargs="+", default=[], metavar="NAME", help="only these kinds of stages")
    command.add_argument("--unused-for", metavar="TIME", help="of prune: 30d (default), 12h, 2w")
    command.add_argument("--left-over", action="store_true", help="of prune: only what killed processes began, at once")
    command.add_argument("--dry-run", action="store_true", help="of prune: say what would be deleted")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.cache import prune as cache
    from longsumbench.cache.artifacts import cache_folder, check_layout

    root = cache_folder()
    of_prune = {"--unused-for": options.unused_for, "--left-over": options.left_over, "--dry-run": options.dry_run}
    given = [flag for flag, value in of_prune.items() if value]
    if options.keys[:1] == ["prune"]:
        _prune_command(options, root, options.keys[1:])
        return
    if given:
        raise UsageError(f"{given[0]} goes with `longsumbench cache prune`")
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
    """`longsumbench cache prune`."""
    from longsumbench.cache import prune as cache

    asked = {"KEY": keys, "--all": options.all, "--left-over": options.left_over, "--unused-for": options.unused_for}
    if len(together := [name for name, value in asked.items() if value]) > 1:
        raise UsageError(f"{' and '.join(together)} do not go together: each says what to delete")
    unused_for = cache.UNUSED_FOR if options.unused_for is None else cache.parse_seconds(options.unused_for)
    pruning = cache.Pruning(options.dry_run)
    try:
        cache.prune(root, pruning, options.kind, keys, unused_for, options.left_over, options.all)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{pruning.told()}; the same command deletes the rest") from None
    print_text(pruning.told())


cache_command = Command(
    "cache", "show what is kept between runs, verify it, or delete of it", _HELP, _add_arguments, _execute
)
