"""Writes a comparison as a CSV, a Markdown table and one self-contained HTML page.

    Comparison --comparison_page--> HTML: for each pair a verdict, a table, a picture, the largest changes
               --write_comparison--> comparison.csv, .md, .html

Outputs of systems are escaped. The page follows the reader's choice of light or dark.
"""

from collections.abc import Sequence
from pathlib import Path

from longsumbench.outputs import compare
from longsumbench.render.figures import write_pictures
from longsumbench.render.html import ShownText, headed_references, render_page
from longsumbench.render.marked_words import mark_words, shared_by
from longsumbench.render.tables import Block, markdown
from longsumbench.runs.record import SHORT_ID, split_variant
from longsumbench.runs.results import Results
from longsumbench.runs.verdicts import judged_lists


def comparison_folder(results: Results, runs: Sequence[compare.ComparedRun]) -> Path:
    """Return the default folder of a comparison; its name contains the runs' ids."""
    return results.root / "comparisons" / "-".join(run.record.run_id[:SHORT_ID] for run in runs)


def write_comparison(comparison: compare.Comparison, folder: Path) -> list[Path]:
    """Write a comparison's three files; return their paths."""
    text = markdown(comparison.title, [*comparison.blocks(), *_moved_blocks(comparison)])
    files = {"csv": comparison.csv(), "md": text, "html": comparison_page(comparison)}
    return write_pictures(folder, {f"comparison.{kind}": content for kind, content in files.items()})


def _moved_blocks(comparison: compare.Comparison) -> list[Block]:
    blocks = []
    for pair in comparison.pairs if comparison.num_shown else ():
        view = ("example", "baseline", "run", "difference", *(run.label for run in (pair.baseline, pair.run)))
        for verb, side in zip(("gained", "lost"), pair.extremes(comparison.num_shown), strict=True):
            rows = []
            for change in side:
                numbers = [f"{change.baseline_score:.2f}", f"{change.score:.2f}", f"{change.difference:+.2f}"]
                texts = [" ".join(run.predictions[change.id].split()) for run in (pair.baseline, pair.run)]
                rows.append([change.id, *numbers, *texts])
            heading = f"{pair.title}: what {verb} most in {pair.main.heading}"
            blocks.append(Block(heading, () if rows else ("None.",), view, "lrrrll", rows))
    if not comparison.all_examples:
        blocks.append(Block("Examples compared", (", ".join(comparison.ids),), (), "", []))
    return blocks


def comparison_page(comparison: compare.Comparison) -> str:
    """Return the HTML page of a comparison."""
    pairs = [
        {
            "pair": pair,
            "verdict": compare.verdict(pair),
            "rows": map(compare.format_row, pair.rows),
            "sides": [
                [_shown_example(pair, change, comparison) for change in side]
                for side in pair.extremes(comparison.num_shown)
            ],
        }
        for pair in comparison.pairs
    ]
    columns = compare.COMPARISON_COLUMNS, compare.COMPARISON_ALIGNMENT
    values = {"comparison": comparison, "runs": _run_rows(comparison.runs), "pairs": pairs, "columns": columns}
    return render_page("comparison.html", title=comparison.title, **values)


def _run_rows(runs: Sequence[compare.ComparedRun]) -> list[list[str]]:
    rows = []
    for place, record in enumerate(run.record for run in runs):
        role, seed = "run" if place else "baseline", "" if record.seed is None else f"{record.seed}"
        variant = ", ".join(split_variant(record.variant)) or ("imported" if record.imported else "as its recipe")
        rows.append([role, record.model, variant, seed, record.run_id, record.finished[:10]])
    return rows


def _shown_example(
    pair: compare.RunPair, change: compare.ScoreChange, comparison: compare.Comparison
) -> dict[str, object]:
    references = headed_references(comparison.references.get(change.id, ()))
    baseline_output, output = pair.baseline.predictions[change.id], pair.run.predictions[change.id]
    shared = shared_by(" ".join(references.values()), output, baseline_output)
    texts = [(pair.baseline.label, baseline_output, "baseline"), (pair.run.label, output, "run")]
    texts += [(heading, text, "reference") for heading, text in references.items()]
    verdicts = [
        judged
        for run in (pair.baseline, pair.run)
        for judged in judged_lists(run.verdicts, change.id, run.predictions[change.id], run.label)
    ]
    marked = [ShownText(heading, mark_words(text, shared), kind) for heading, text, kind in texts]
    return {"change": change, "texts": marked, "verdicts": verdicts}
