"""Recall of `probe`'s facts against length, of the systems that were trained short and tested at several lengths.

    longsumbench run -m dataset=probe dataset.train_length=1024 dataset.document_length=1024,4096,16384,65536 model=…
    python benchmarks/probe_lengths.py [--results-dir results/reference]

A Markdown table: recall in percent of facts in one place, and of those in two places with the link said and unsaid. It
also says how much of the text was seen, if not all. The picture and its numbers stand in
`leaderboard/probe-lengths.png` and `.csv` of the results.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from longsumbench.leaderboards.lengths import LengthCurves, systems_at_lengths
from longsumbench.runs.results import Results
from longsumbench.views.lengths import FACT_PANELS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results-dir", default="results/reference", help="where the runs are")
    found = systems_at_lengths(Results(Path(parser.parse_args().results_dir)).records("probe"))
    if not found:
        sys.exit("no system was tested at two lengths or more: run one first")
    print(lengths_table(found))


def lengths_table(systems: Sequence[LengthCurves]) -> str:
    """Return a Markdown table with a row per system and a column per length.

    A cell has the recall of the three kinds of facts in percent, "–" if there are none. It also has the share
    of the source that was seen, if that is not all.
    """
    lengths = sorted({length for system in systems for length in system.tested})
    header = ["system", "seeds", *(f"{length:,}" for length in lengths)]
    rows = [
        [
            system.label,
            "/".join(dict.fromkeys(str(len(group.runs)) for group in system.tested.values())),
            *(
                _recall_cell(system, length) if length in system.tested else ""
                for length in lengths
            ),
        ]
        for system in systems
    ]
    return tabulate(rows, header, tablefmt="pipe", disable_numparse=True)


def _recall_cell(system: LengthCurves, length: int) -> str:
    points = [system.point(kind, length) for kind in FACT_PANELS]
    text = " / ".join(f"{point.mean:.0f}" if point else "–" for point in points)
    return f"{text} (sees {system.seen(length):.0f} %)" if system.is_cut(length) else text


if __name__ == "__main__":
    main()
