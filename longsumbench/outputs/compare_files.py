"""The files of a comparison: a table, and the same as a text."""

from collections.abc import Sequence
from pathlib import Path

from longsumbench.outputs.compare import ComparedRun, Comparison
from longsumbench.runs.record import SHORT_ID
from longsumbench.runs.results import Results
from longsumbench.views.figures import write_pictures
from longsumbench.views.tables import Block, csv_text, markdown

_CSV_DECIMALS = 6  # of numbers in the CSV


def comparison_folder(results: Results, runs: Sequence[ComparedRun]) -> Path:
    """Return the default folder of a comparison; its name contains the runs' ids."""
    return results.root / "comparisons" / "-".join(run.record.run_id[:SHORT_ID] for run in runs)


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write a comparison as CSV, where a cell is empty if no difference is detectable, and as Markdown."""
    csv = csv_text(comparison.rows(), decimals=_CSV_DECIMALS)
    blocks = comparison.blocks()
    if not comparison.all_examples:
        blocks.append(Block("Examples compared", (", ".join(comparison.ids),), (), "", []))
    text = markdown(comparison.title, blocks)
    return write_pictures(folder, {"comparison.csv": csv, "comparison.md": text})
