"""The files of a comparison: a table, and a text with the examples that differ most."""

from collections.abc import Sequence
from pathlib import Path

from longsumbench.leaderboards.comparability import heading_of
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
    text = markdown(comparison.title, [*comparison.blocks(), *_moved_blocks(comparison)])
    return write_pictures(folder, {"comparison.csv": csv, "comparison.md": text})


def _moved_blocks(comparison: Comparison) -> list[Block]:
    """Return the largest gains and losses of each pair, and the ids of the examples if some were left out."""
    blocks = []
    for pair in comparison.pairs if comparison.num_shown else ():
        columns = ("example", "baseline", "run", "difference", pair.baseline.label, pair.run.label)
        gains, losses = pair.extremes(comparison.num_shown)
        for verb, changes in (("gained", gains), ("lost", losses)):
            rows = []
            for name, baseline_score, score, difference in changes:
                numbers = [f"{baseline_score:.2f}", f"{score:.2f}", f"{difference:+.2f}"]
                outputs = pair.baseline.predictions[name], pair.run.predictions[name]
                texts = [" ".join(output.split()) for output in outputs]
                rows.append([name, *numbers, *texts])
            heading = f"{pair.title}: what {verb} most in {heading_of(pair.main.measure)}"
            blocks.append(Block(heading, () if rows else ("None.",), columns, "lrrrll", rows))
    if not comparison.all_examples:
        blocks.append(Block("Examples compared", (", ".join(comparison.ids),), (), "", []))
    return blocks
