"""`longsumbench recommend`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_HELP = """\
Compare systems on a sample of your texts, and say which to choose. It takes minutes on one core.

  longsumbench recommend my_texts               a folder with train, validation and test .jsonl
  longsumbench recommend my_texts.jsonl         one file, which is split by id
  longsumbench recommend dataset=pubmed dataset.path=FOLDER decode.limit=200
  longsumbench recommend my_texts --also "model=seq2seq model.checkpoint=facebook/bart-large-cnn"

Runs Lead, Random, LexRank, two scorers that are trained here (ea, seal) and an oracle on 100 texts of the test split.
--also adds a checkpoint or a language model as it is; it may be repeated. Prints a table, and three sentences: what to
choose, what that system never reads, and what it costs.

settings:  dataset=NAME  dataset.*  decode.limit=100  train.* (of the scorers)  seed=1  results_dir=results
More: docs/how-to/recommend.md
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("overrides", nargs="*", metavar="TEXTS", help="a file or folder of JSON lines, or settings")
    command.add_argument(
        "--also", action="append", default=[], metavar="SETTINGS", help="one more system, its settings in one text"
    )


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    import shlex

    from longsumbench.progress import phase

    if not options.overrides:
        raise UsageError("name the TEXTS: a file or folder of JSON lines, or dataset=NAME (see --help)")
    with phase("loading the libraries"):
        from longsumbench.analysis.recommend import recommend

    more = [shlex.split(settings) for settings in options.also]
    recommend(options.overrides, more, ("longsumbench", *words), print_text)


recommend_command = Command("recommend", "say which system to choose for some texts", _HELP, _add_arguments, _execute)
