"""What the metrics that every run has add to the time of scoring, in one process, in seconds of the core.

python benchmarks/default_metrics.py ../shared/data [--corpora qmsum sumpubmed]

The outputs are the first sentences of each source. Both ways take turns; a first turn does not count.
"""

import argparse
import time
from pathlib import Path
from statistics import median

from tabulate import tabulate

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import DatasetSettings, Metric, Scoring
from longsumbench.corpora.reading.load import load_texts
from longsumbench.metrics.evaluate import default_metrics, evaluate
from longsumbench.metrics.rouge import Rouge

TURNS, SENTENCES = 5, 8


def main() -> None:
    """Print the time of scoring a test split without and with the default metrics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--corpora", nargs="*", default=["qmsum", "sumpubmed"])
    options = parser.parse_args()
    rows = []
    for corpus in options.corpora:
        split = load_texts(DatasetSettings(corpus, str(options.data / corpus)), user_cache()).splits["test"]
        outputs = [["\n".join(list(example.sentences())[:SENTENCES]) for example in split]]
        scoring, turns = Scoring(), []
        for _ in range(TURNS + 1):
            seconds = []
            for requested in ([], default_metrics(scoring)):
                metrics: list[Metric] = [Rouge(scoring)]
                started = time.process_time()
                evaluate(outputs, split, metrics, scoring, requested, "rougeLsum")
                seconds.append(time.process_time() - started)
            turns.append(seconds)
        without, both = (median(seconds) * 1_000 / len(split) for seconds in zip(*turns[1:], strict=True))
        words = sum(split.source_words) / len(split)
        rows.append(
            (corpus, f"{len(split):,}", f"{words:,.0f}", f"{without:.2f}", f"{both:.2f}", f"{both / without:.2f}")
        )
    print(tabulate(rows, ["", "examples", "source words", "ms an example", "with default metrics", "ratio"]))


if __name__ == "__main__":
    main()
