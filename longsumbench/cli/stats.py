"""`longsumbench stats`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, output_file
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_HELP = """\
Print statistics of a dataset. With rank=, print how much of the references the best paragraphs contain.

  longsumbench stats                                              the built-in text
  longsumbench stats dataset=elife dataset.path=FOLDER --output elife_stats      also as CSV, Markdown and a page
  longsumbench stats dataset=probe model=trunc,seal,pagesum model.init=random    what each model would read
  longsumbench stats model=trunc scale=small model.input_length=512,1024         one model with several settings
  longsumbench stats run=all                                      also what finished runs on these texts did not read
  longsumbench stats dataset=wiki_sections dataset.path=FOLDER rank=tfidf,lexrank,lstm

Counts examples, documents, sections, paragraphs and sentences. Measures lengths in words and, with model=, in the
model's tokens. Then: how much of the source the references repeat, the score of the best extract, and near-duplicates
in different splits. With model=, it shows what the model would read of dataset.split and cut from the training
targets, under the settings of `run` and without training. Slow statistics use a sample.

settings:  dataset=NAME  dataset.*  sample=1000|null (all)  seed=1  duplicates=true|false
           run=all|RUN[,RUN...]  results_dir=results
           model=NAME[,NAME...]  model.*  scale=NAME  experiment=NAME  train.*  train_ranker=false|true
ranking:   rank=NAME[,NAME...]  unit=paragraph|section  seed=1  device=auto|cpu|cuda
           ranker.{dimension,steps,batch_size,vocabulary_size}                   (longsumbench list rankers|datasets)
More: docs/how-to/stats.md

rank= joins the best 5, 10, 20 and 40 paragraphs of every example in the ranker's order. It scores them against the
first reference by ROUGE-L recall (0-100). "in order" takes the first paragraphs of the text (Hierarchical Transformer,
Table 1). A ranker that learns (lstm) is trained on the training split, once for the same texts and settings. The cache
keeps the result; an interrupted training continues.

Only --csv FILE (all numbers) and --output FOLDER (numbers, Markdown, and a page with pictures) write files.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="the dataset and other settings")
    command.add_argument("--csv", metavar="FILE", help="also write all numbers, one per row")
    command.add_argument("--output", metavar="FOLDER", help="write stats.csv, stats.md and stats.html there")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.analysis.dataset.figures import DatasetReport
    from longsumbench.analysis.plan import asks_for_ranking, stats
    from longsumbench.files import writable_folder, write_atomically

    if options.output and asks_for_ranking(options.overrides):
        raise UsageError("--output cannot be combined with rank=: write the numbers with --csv")
    table = output_file(options.csv, "--csv")
    folder = writable_folder(Path(options.output).expanduser(), "--output") if options.output else None
    report = stats(options.overrides)
    if table is not None:
        write_atomically(table, report.csv())
    files = report.write(folder) if folder and isinstance(report, DatasetReport) else []
    print_text(report.render(), *([""] if files else []), *files)


stats_command = Command("stats", "print statistics of a dataset", _HELP, _add_arguments, _execute)
