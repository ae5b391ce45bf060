"""Where a run's time went: the suite's own share beside training, decoding and scoring.

python benchmarks/overhead.py RUN [--results-dir FOLDER]
"""

import argparse
from pathlib import Path

from tabulate import tabulate

from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results


def main() -> None:
    """Print the steps of a finished run, and the share of all that is not training, decoding or scoring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="a run folder, an id or a unique prefix of one")
    parser.add_argument("--results-dir", default="results")
    options = parser.parse_args()
    record = RunRecord.read(Results(Path(options.results_dir)).find(options.run))
    took, trained = record.costs.timings, record.fit.seconds
    total = took.total
    steps = {
        "training": trained,
        "decoding": took.summarize,
        "scoring": took.score,
        "reading texts": took.read,
        "tokenizer, tokenizing, checkpoints": took.fit - trained,
    }
    own = total - trained - took.summarize - took.score
    rows = [
        [name, f"{seconds:.1f} s", f"{100 * seconds / total:.1f} %"]
        for name, seconds in steps.items()
    ]
    rows.append(
        [
            "the suite's own (asked: under 5 % of ten minutes)",
            f"{own:.1f} s",
            f"{100 * own / total:.1f} %",
        ]
    )
    print(f"{record.key.model} on {record.key.dataset}, {total:.0f} s in all")
    print(tabulate(rows, headers=["step", "seconds", "share"]))


if __name__ == "__main__":
    main()
