"""Commands on texts: `longsumbench stats` and `recommend`."""

import shlex
from argparse import Namespace
from pathlib import Path

from longsumbench.cli.parser import OVERRIDES, Argument, Command, output_file, output_folder
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

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
    from longsumbench.analysis.dataset.tables import DatasetReport
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
Compare systems on your texts, and say which to choose. It takes minutes on one core.

  longsumbench recommend my_texts               a folder of .txt, .md, ..., or one file (.jsonl, .csv, .parquet)
  longsumbench recommend my_texts --model FILE.gguf --minutes 20
  longsumbench recommend my_texts --model http://localhost:8080/v1
  longsumbench recommend my_texts --references my_summaries
  longsumbench recommend dataset=pubmed dataset.path=FOLDER decode.limit=200
  longsumbench recommend my_texts --also "model=seq2seq model.checkpoint=facebook/bart-large-cnn"
  longsumbench recommend my_texts --command "my_tool --words {words} {file}"

Runs Lead, Random, LexRank and an oracle on up to 100 texts. If summaries are missing, facts are planted into the texts,
and systems are judged by the facts that they keep; --plant does so in any case. With a training split of 60 texts or
more, two scorers are trained (ea, seal). --model adds a language model (GGUF file, folder, hub name, address of a server)
in six ways of reading at most, --also any system as it is, --command a program (model=command); all three may be
repeated. Prints a table and sentences: what to choose, what that system never reads, and what it costs.

settings:  dataset=NAME  dataset.*  decode.limit=100  train.* (of the scorers)  seed=1  results_dir=results
More: docs/how-to/recommend.md
"""


_RECOMMEND_ARGUMENTS = (
    Argument("overrides", "a file or folder of texts, or settings", "TEXTS", nargs="*"),
    Argument("--plant", "judge by planted facts, also with summaries", action="store_true"),
    Argument(
        "--model",
        "a language model: GGUF file, folder, hub name or address of a server",
        "MODEL",
        action="append",
        dest="checkpoints",
        default=[],
    ),
    Argument(
        "--minutes",
        "longest time of the language models, which sets the number of texts; 0: no limit",
        "MINUTES",
        type=float,
        default=20.0,
    ),
    Argument(
        "--references",
        "summaries: files with the texts' names, or rows with their ids",
        "PATH",
        type=Path,
    ),
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
    others = list(map(shlex.split, options.also))
    for command in options.programs:
        others.append(format_overrides({"model": "command", "model.command": command}))
    recommend(
        options.overrides,
        others,
        options.checkpoints,
        options.command_line,
        print_text,
        plant=options.plant,
        references=options.references,
        minutes=options.minutes,
    )


recommend_command = Command(
    "recommend",
    "say which system to choose for some texts",
    _RECOMMEND_HELP,
    _RECOMMEND_ARGUMENTS,
    _execute_recommend,
)
