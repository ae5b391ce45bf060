"""Recall of `probe`'s facts against length, of the systems that were trained short and tested at several lengths.

    longsumbench run -m dataset=probe dataset.train_length=1024 dataset.document_length=1024,4096,16384,65536 model=…
    python benchmarks/probe_lengths.py [--results-dir results/reference]

A Markdown table: recall of single, relayed and silent facts in percent, and how much of the text was seen where that is
not all. The picture and its numbers stand in `leaderboard/probe-lengths.png` and `.csv` of the results.
"""

import argparse
import sys
from pathlib import Path

from longsumbench.leaderboards.lengths import lengths_table, systems_at_lengths
from longsumbench.runs.results import Results


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results-dir", default="results/reference", help="where the runs are")
    found = systems_at_lengths(Results(Path(parser.parse_args().results_dir)).records("probe"))
    if not found:
        sys.exit("no system was tested at two lengths or more: run one first")
    print(lengths_table(found))


if __name__ == "__main__":
    main()
