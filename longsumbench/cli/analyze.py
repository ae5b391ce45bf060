"""`longsumbench analyze`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser, add_results_dir, output_folder, results_of
from longsumbench.formatting import print_text

_ANALYSES = ("locality", "fusion", "coherence")

_HELP = """\
Analyze the texts of a dataset and the summaries of runs. Writes CSV, PNG and SVG (PageSum, Figures 1 and 4, Table 4).

  longsumbench analyze locality dataset=pubmed                       similarity of two sentences, by their distance
  longsumbench analyze locality encoder=FOLDER sample=50             with a sentence encoder instead of tf-idf
  longsumbench analyze fusion dataset=elife dataset.path=FOLDER      distance of the sentences that a summary joins
  longsumbench analyze fusion run=85f3139c,36e2dc94                  do the runs' summaries contain both sentences?
  longsumbench analyze coherence model=bert-large-uncased run=85f3139c

settings:  dataset=NAME  dataset.*  sample=200|null  seed=1; for fusion and coherence run=RUN[,RUN...]
locality:  encoder=FOLDER or hub name  pooling=auto|mean|cls|max  distance=50  batch_size=64  device=auto|cpu|cuda
fusion:    rouge=1|2|L  overlap=20  rise=10  bins=10  appears=50  shown=20
coherence: model=FOLDER or hub name (a BERT for next-sentence prediction)  device=auto|cpu|cuda

A run is given by its id, the beginning of its id, or its folder. All runs must have read the same texts. fusion also
writes every pair as JSON lines, and a page with the pairs of each bar. What the numbers mean: docs/how-to/analyze.md.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("what", metavar="ANALYSIS", choices=_ANALYSES, help=", ".join(_ANALYSES))
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="the dataset and other settings")
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: analysis/DATASET in the results)")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.analysis.plan import analyze

    folder = output_folder(options.output, results_of(options).root / "analysis")
    finding = analyze(options.what, options.overrides, options.results_dir)
    files = finding.write(folder if options.output else folder / finding.dataset)
    print_text(finding.render(), "", *files)


_INTERRUPTED = "nothing was written; the same command starts again"
analyze_command = Command("analyze", "analyze texts and summaries", _HELP, _add_arguments, _execute, _INTERRUPTED)
