"""`longsumbench dataset`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_DATASET_ACTIONS = ("add", "remove")
_HELP = """\
Give your own texts a name, so that dataset=NAME chooses them.

  longsumbench dataset add scisumm my_texts                 a folder or file of JSON lines, CSV or Parquet
  longsumbench dataset add my_arxiv FOLDER dataset=arxiv    texts in the format of another dataset
  longsumbench dataset add notes notes.jsonl dataset.split_by_hash=true
  longsumbench run dataset=scisumm scale=tiny               in any folder
  longsumbench dataset remove scisumm

add reads the texts once, prints how many there are, and writes NAME.yaml with the settings and the absolute path. The
file is in dataset/ of your configuration folder: ~/.config/longsumbench, or the folder in the environment variable
LONGSUMBENCH_CONFIG. You may edit it; its first comment is the line in `longsumbench list datasets`. remove deletes this
file only: texts and runs stay.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("action", metavar="ACTION", choices=_DATASET_ACTIONS, help=" or ".join(_DATASET_ACTIONS))
    command.add_argument("name", metavar="NAME", help="the name in tables, records and folders")
    command.add_argument("path", metavar="PATH", nargs="?", help="add: a folder or a file")
    command.add_argument("overrides", metavar="KEY=VALUE", nargs="*", default=[], help="add: dataset=FORMAT, dataset.*")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.runs.own_datasets import add_dataset, describe_sizes, remove_dataset

    if options.action == "remove":
        if options.path is not None:
            raise UsageError(f"'{options.path}' is an extra argument: longsumbench dataset remove NAME")
        print_text(f"removed: {remove_dataset(options.name)}")
        return
    if options.path is None:
        raise UsageError("the path is missing: longsumbench dataset add NAME PATH")
    texts, file = add_dataset(options.name, options.path, options.overrides)
    print_text(f"{texts.name}: {describe_sizes(texts)}, fingerprint {texts.fingerprint[:8]}")
    if list(texts.splits) == ["test"] and texts.way_to_splits:
        print_text("all are the test split: dataset.split_by_hash=true divides one file into three, to train on")
    print_text(f"written: {file}", f"use it: longsumbench run dataset={texts.name}")


dataset_command = Command(
    "dataset", "give your own texts a name", _HELP, _add_arguments, _execute, "nothing was added or removed"
)
