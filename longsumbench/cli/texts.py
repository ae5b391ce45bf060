"""Commands on texts: `longsumbench stats`, `analyze` and `recommend`."""

import shlex
from argparse import Namespace
from pathlib import Path

from longsumbench.cli.parser import (
    OVERRIDES,
    RESULTS_DIR,
    Argument,
    Command,
    output_file,
    output_folder,
    print_choices,
    results_of,
)
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
    from longsumbench.analysis.dataset.report import DatasetReport
    from longsumbench.analysis.plan import asks_for_ranking, stats
    from longsumbench.files import write_atomically

    if options.output and asks_for_ranking(options.overrides):
        raise UsageError("--output cannot be combined with rank=: write the numbers with --csv")
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


_ANALYSES = {
    "locality": "similarity of two sentences of a text, by their distance",
    "fusion": "distance of the sentences that a summary joins",
    "coherence": "how well the sentences of a summary follow each other, by a BERT",
}

_ANALYZE_HELP = """\
Analyze the texts of a dataset and the summaries of runs (PageSum, Figures 1 and 4, Table 4). Writes CSV, and a picture
of locality and of fusion as PNG and SVG.

  longsumbench analyze locality dataset=pubmed                       similarity of two sentences, by their distance
  longsumbench analyze locality encoder=FOLDER sample=50             with a sentence encoder instead of tf-idf
  longsumbench analyze fusion dataset=elife dataset.path=FOLDER      distance of the sentences that a summary joins
  longsumbench analyze fusion run=85f3139c,36e2dc94                  do the runs' summaries contain both sentences?
  longsumbench analyze coherence model=bert-large-uncased run=85f3139c

settings:  dataset=NAME  dataset.*  sample=200|null  seed=1; for fusion and coherence run=RUN[,RUN...]
locality:  encoder=FOLDER or hub name  pooling=auto|mean|cls|max  distance=50  device=auto|cpu|cuda
fusion:    rouge=1|2|L  overlap=20  rise=10  bins=10  appears=50  score.tokenizer=default|unicode  score.*
coherence: model=FOLDER or hub name (a BERT for next-sentence prediction)  device=auto|cpu|cuda

A run is given by its id, the beginning of its id, or its folder. All runs must have read the same texts. fusion also
writes every pair as JSON lines. What the numbers mean: docs/how-to/analyze.md.
"""


_ANALYZE_ARGUMENTS = (
    Argument("what", ", ".join(_ANALYSES), "ANALYSIS", nargs="?", choices=[*_ANALYSES]),
    OVERRIDES,
    Argument("--output", "where to write (default: analysis/DATASET in the results)", "FOLDER"),
    RESULTS_DIR,
)


def _execute_analyze(options: Namespace) -> None:
    if options.what is None:
        print_choices("longsumbench analyze", _ANALYSES)
        return
    from longsumbench.analysis.plan import analyze

    folder = output_folder(options.output, results_of(options).root / "analysis")
    finding = analyze(options.what, options.overrides, options.results_dir)
    files = finding.write(folder if options.output else folder / finding.dataset)
    print_text(finding.render(), "", *files)


analyze_command = Command(
    "analyze",
    "analyze texts and summaries",
    _ANALYZE_HELP,
    _ANALYZE_ARGUMENTS,
    _execute_analyze,
    "nothing was written; the same command starts again",
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
