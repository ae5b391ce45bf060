"""What the metrics that every run has add to the time of scoring, in one process, in seconds of the core.

python benchmarks/default_metrics.py ../shared/data [--corpora qmsum sumpubmed]

The outputs are the first sentences of each source. Both ways take turns; a first turn does not count. "Whole step" is
a process that starts, reads the texts from the cache, scores and writes the scores, as `longsumbench score RUN` does.
The time of rouge_score is that of the same ROUGE of each output, measured on some of them.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rouge_score.rouge_scorer import RougeScorer
from tabulate import tabulate

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import DatasetSettings, Metric, Scoring
from longsumbench.corpora.loading.load import load_texts
from longsumbench.corpora.loading.store import ReadSplit
from longsumbench.metrics.aggregate import write_scores
from longsumbench.metrics.evaluate import default_metrics, evaluate
from longsumbench.metrics.rouge import Rouge
from longsumbench.rouge.scorer import ROUGE_TYPES

TURNS, SENTENCES, SAMPLE = 5, 8, 20


def main() -> None:
    """Print the time of scoring a test split without and with the default metrics."""
    starting = time.process_time()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--corpora", nargs="*", default=["qmsum", "sumpubmed"])
    options = parser.parse_args()
    rows = []
    for corpus in options.corpora:
        settings = DatasetSettings(corpus, str(options.data / corpus))
        load_texts(settings, user_cache())
        started = time.process_time()
        split = load_texts(settings, user_cache()).splits["test"]
        outputs = [["\n".join(list(example.sentences())[:SENTENCES]) for example in split]]
        reading, scoring, turns = time.process_time() - started, Scoring(), []
        for _ in range(TURNS + 1):
            seconds = []
            for requested in ([], default_metrics(scoring)):
                metrics: list[Metric] = [Rouge(scoring)]
                started = time.process_time()
                scored = evaluate(outputs, split, metrics, scoring, requested, "rougeLsum")
                seconds.append(time.process_time() - started)
            turns.append(seconds)
        with TemporaryDirectory() as folder:
            started = time.process_time()
            write_scores(Path(folder) / "scores.csv", scored.per_example)
            writing = time.process_time() - started
        without, both = (median(seconds) for seconds in zip(*turns[1:], strict=True))
        library, step = (
            seconds_of_rouge_score(outputs[0], split) * len(split),
            starting + reading + without + writing,
        )
        added = both - without
        words = sum(split.source_words) / len(split)
        times = (f"{1_000 * seconds / len(split):.2f}" for seconds in (without, added))
        shares = (f"{100 * added / seconds:.1f}" for seconds in (without, library, step))
        rows.append((corpus, f"{len(split):,}", f"{words:,.0f}", *times, *shares))
    headings = ["% of ROUGE", "% of rouge_score", "% of the whole step"]
    print(
        tabulate(
            rows, ["", "examples", "source words", "ROUGE, ms an example", "added ms", *headings]
        )
    )


def seconds_of_rouge_score(outputs: Sequence[str], split: ReadSplit) -> float:
    """Return what rouge_score takes for an output."""
    library = RougeScorer(ROUGE_TYPES, use_stemmer=True)
    started = time.process_time()
    for output, example in zip(outputs[:SAMPLE], split[:SAMPLE], strict=True):
        library.score_multi(["\n".join(reference) for reference in example.references], output)
    return (time.process_time() - started) / SAMPLE


if __name__ == "__main__":
    main()
