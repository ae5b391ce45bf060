"""Commands on texts: `longsumbench dataset`, `stats` and `recommend`."""

import shlex
from argparse import Namespace
from pathlib import Path

from longsumbench.cli.parser import (
    OVERRIDES,
    Argument,
    Command,
    output_file,
    output_folder,
)
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_DATASET_ACTIONS = ("add", "remove")
_DATASET_HELP = """\
Give your own texts a name, so that dataset=NAME chooses them.

  longsumbench dataset add scisumm my_texts                 a folder or file of texts: JSON, CSV, Parquet …
  longsumbench dataset add my_arxiv FOLDER dataset=arxiv    texts in the format of another dataset
  longsumbench dataset add notes notes.jsonl dataset.split_by_hash=true
  longsumbench run dataset=scisumm scale=tiny               in any folder
  longsumbench dataset remove scisumm

add reads the texts once, prints how many there are, and writes NAME.yaml with the settings and the absolute path. The
file is in dataset/ of your configuration folder: ~/.config/longsumbench, or the folder in the environment variable
LONGSUMBENCH_CONFIG. You may edit it; its first comment is the line in `longsumbench list datasets`. remove deletes this
file only: texts and runs stay.
"""


_DATASET_ARGUMENTS = (
    Argument("action", " or ".join(_DATASET_ACTIONS), "ACTION", choices=_DATASET_ACTIONS),
    Argument("name", "the name in tables, records and folders", "NAME"),
    Argument("path", "add: a folder or a file", "PATH", nargs="?"),
    Argument("overrides", "add: dataset=FORMAT, dataset.*", "KEY=VALUE", nargs="*", default=[]),
)


def _execute_dataset(options: Namespace) -> None:
    from longsumbench.runs.own_datasets import add_dataset, describe_sizes, remove_dataset

    if options.action == "remove":
        if options.path is not None:
            raise UsageError(
                f"'{options.path}' is an extra argument: longsumbench dataset remove NAME"
            )
        print_text(f"removed: {remove_dataset(options.name)}")
        return
    if options.path is None:
        raise UsageError("the path is missing: longsumbench dataset add NAME PATH")
    texts, file = add_dataset(options.name, options.path, options.overrides)
    print_text(f"{texts.name}: {describe_sizes(texts)}, fingerprint {texts.fingerprint[:8]}")
    # One file without splits can be scored, but nothing can learn from it.
    if list(texts.splits) == ["test"] and texts.way_to_splits:
        print_text(
            "all are the test split: dataset.split_by_hash=true divides one file into three, to train on"
        )
    print_text(f"written: {file}", f"use it: longsumbench run dataset={texts.name}")


dataset_command = Command(
    "dataset",
    "give your own texts a name",
    _DATASET_HELP,
    _DATASET_ARGUMENTS,
    _execute_dataset,
    "nothing was added or removed",
)


_STATS_HELP = """\
Print statistics of a dataset. With rank=, print how much of the references the best paragraphs contain.

  longsumbench stats                                              the built-in text
  longsumbench stats dataset=elife dataset.path=FOLDER --output elife_stats      also as CSV and Markdown
  longsumbench stats dataset=wiki_sections dataset.path=FOLDER rank=tfidf,lexrank,lstm

Counts examples, documents, sections, paragraphs and sentences. Measures lengths in words. Then: how much of the source
the references repeat, and the score of the best extract. Slow statistics use a sample.

settings:  dataset=NAME  dataset.*  sample=1000|null (all)  seed=1
           score.tokenizer=default|unicode  score.*
ranking:   rank=NAME[,NAME...]  unit=paragraph|section  seed=1  device=auto|cpu|cuda  score.*
           rank_checkpoint=FOLDER (of embedding rankers)  ranker.{dimension,steps,batch_size,vocabulary_size}
           (longsumbench list rankers|datasets)
More: docs/how-to/stats.md

rank= joins the best 5, 10, 20 and 40 paragraphs of every example in the ranker's order. It scores them against the
first reference by ROUGE-L recall (0-100). "in order" takes the first paragraphs of the text (Hierarchical Transformer,
Table 1). A ranker that learns (lstm) is trained on the training split, once for the same texts and settings. The cache
keeps the result; an interrupted training continues.

Only --csv FILE (all numbers) and --output FOLDER (numbers and Markdown) write files.
"""


_STATS_ARGUMENTS = (
    OVERRIDES,
    Argument("--csv", "also write all numbers, one per row", "FILE"),
    Argument("--output", "write stats.csv and stats.md there", "FOLDER"),
)


def _execute_stats(options: Namespace) -> None:
    from longsumbench.analysis.dataset.report import DatasetReport
    from longsumbench.analysis.plan import plugged_statistic, stats
    from longsumbench.files import write_atomically

    if options.output and (name := plugged_statistic(options.overrides)):
        raise UsageError(f"--output cannot be combined with {name}=: write the numbers with --csv")
    table = output_file(options.csv, "--csv")
    folder = output_folder(options.output, Path()) if options.output else None
    report = stats(options.overrides)
    if table is not None:
        write_atomically(table, report.csv())
    files = report.write(folder) if folder and isinstance(report, DatasetReport) else []
    print_text(report.render(), *([""] if files else []), *files)


stats_command = Command(
    "stats", "print statistics of a dataset", _STATS_HELP, _STATS_ARGUMENTS, _execute_stats
)


_RECOMMEND_HELP = """\
Compare systems on a sample of your texts, and say which to choose. It takes minutes on one core.

  longsumbench recommend my_texts               a folder with train, validation and test .jsonl
  longsumbench recommend my_texts.jsonl         one file, which is split by id
  longsumbench recommend dataset=pubmed dataset.path=FOLDER decode.limit=200
  longsumbench recommend my_texts --also "model=seq2seq model.checkpoint=facebook/bart-large-cnn"
  longsumbench recommend my_texts --command "my_tool --words {words} {file}"

Runs Lead, Random, LexRank, two scorers that are trained here (ea, seal) and an oracle on 100 texts of the test split.
--also adds a checkpoint or a language model as it is, --command a program (model=command); both may be repeated. Prints
a table, and three sentences: what to choose, what that system never reads, and what it costs.

settings:  dataset=NAME  dataset.*  decode.limit=100  train.* (of the scorers)  seed=1  results_dir=results
More: docs/how-to/recommend.md
"""


_RECOMMEND_ARGUMENTS = (
    Argument("overrides", "a file or folder of texts, or settings", "TEXTS", nargs="*"),
    Argument(
        "--also",
        "one more system, its settings in one text",
        "SETTINGS",
        action="append",
        default=[],
    ),
    Argument(
        "--command",
        "one more system: a program, as in model.command",
        "COMMAND",
        dest="programs",
        action="append",
        default=[],
    ),
)


def _execute_recommend(options: Namespace) -> None:
    from longsumbench.progress import phase

    if not options.overrides:
        raise UsageError("name the TEXTS: a file or folder, or dataset=NAME (see --help)")
    with phase("loading the libraries"):
        from longsumbench.analysis.recommend import recommend
        from longsumbench.runs.overrides import format_overrides

    # Each further system is one text of several words.
    more = [shlex.split(settings) for settings in options.also]
    for command in options.programs:
        more.append(format_overrides({"model": "command", "model.command": command}))
    recommend(options.overrides, more, options.command_line, print_text)


recommend_command = Command(
    "recommend",
    "say which system to choose for some texts",
    _RECOMMEND_HELP,
    _RECOMMEND_ARGUMENTS,
    _execute_recommend,
)
