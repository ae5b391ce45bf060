"""Writes a comparison as a CSV, a Markdown table and one self-contained HTML page.

    Comparison --comparison_page--> HTML: for each pair a verdict, a table, a picture, the largest changes
               --write_comparison--> comparison.csv, .md, .html

Outputs of systems are escaped. The page follows the reader's choice of light or dark.
"""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from longsumbench.core import Sentences
from longsumbench.formatting import format_count, format_interval, format_p
from longsumbench.outputs import compare
from longsumbench.render.figures import transparent_svg, write_pictures
from longsumbench.render.html import PAGE_STYLE, headed_references, html_page, html_picture, html_table, html_text
from longsumbench.render.marked_words import mark_words, marks_legend, shared_by
from longsumbench.render.tables import Block, markdown
from longsumbench.runs.record import SHORT_ID, split_variant
from longsumbench.runs.results import Results
from longsumbench.runs.verdicts import html_verdicts

_NO_REFERENCES = (
    "The references are not shown: the texts of these runs are not on this machine (their work/corpus leads to "
    "no folder of the cache)."
)
_STYLE = """
:root { --run: #0072b2; --baseline: #b34700; }
@media (prefers-color-scheme: dark) { :root { --run: #6bbcf0; --baseline: #f09a62; } }
.verdict { font-size: 1.1rem; }
details.example { border: 1px solid var(--line); border-radius: .5rem; margin: .6rem 0; background: var(--card); }
details.example > summary { cursor: pointer; padding: .6rem .9rem; display: flex; gap: .4rem 1rem; flex-wrap: wrap;
  align-items: baseline; }
summary b { font-variant-numeric: tabular-nums; min-width: 4rem; }
summary code { font-size: .9rem; overflow-wrap: anywhere; }
.up { color: var(--run); } .down { color: var(--baseline); }
.texts section.run h4 { color: var(--run); } .texts section.baseline h4 { color: var(--baseline); }
"""


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
    lines = [escape(line) for line in comparison.about()]
    if comparison.shown_ids() and not comparison.references:
        lines.append(escape(_NO_REFERENCES))
    parts = [
        f"<h1>{escape(comparison.title)}</h1>",
        _html_runs(comparison.runs),
        *(f"<p>{line}</p>" for line in lines),
        *(_html_pair(pair, comparison) for pair in comparison.pairs),
        "<h2>How this was computed</h2>",
        *(f'<p class="soft">{escape(line)}</p>' for line in comparison.method()),
    ]
    if not comparison.all_examples:
        ids = escape(", ".join(comparison.ids))
        parts.append(f'<details class="soft"><summary>The examples compared</summary><p>{ids}</p></details>')
    return html_page(comparison.title, parts, PAGE_STYLE + _STYLE)


def _html_runs(runs: Sequence[compare.ComparedRun]) -> str:
    rows = []
    for place, record in enumerate(run.record for run in runs):
        role, seed = "run" if place else "baseline", "" if record.seed is None else f"{record.seed}"
        variant = ", ".join(split_variant(record.variant)) or ("imported" if record.imported else "as its recipe")
        rows.append([role, record.model, variant, seed, record.run_id, record.finished[:10]])
    return html_table(("", "model", "variant", "seed", "run id", "finished"), "llllll", rows)


def _html_pair(pair: compare.RunPair, comparison: compare.Comparison) -> str:
    caption = (
        "Left: the mean differences with their 95 % intervals; grey: not distinguishable from zero. Right: "
        f"every example by its difference in {pair.main.heading}; blue where {pair.run.label} scores higher, orange "
        f"where {pair.baseline.label} does."
    )
    parts = [
        f"<h2>{escape(pair.title)}</h2>",
        f'<p class="verdict">{escape(verdict(pair))}</p>',
        html_table(compare.COMPARISON_COLUMNS, compare.COMPARISON_ALIGNMENT, map(compare.format_row, pair.rows)),
        html_picture(caption, transparent_svg(pair.picture_size, pair.draw), caption),
    ]
    if comparison.references:
        kinds = {"both": "both outputs", "other": f"only {pair.baseline.label}", "one": f"only {pair.run.label}"}
        parts.append(marks_legend("the reference", kinds))
    for verb, side in zip(("gained", "lost"), pair.extremes(comparison.num_shown), strict=True):
        if comparison.num_shown:
            heading = f"{pair.run.label} {verb} most: {format_count(len(side), 'example')}, by {pair.main.heading}"
            parts.append(f"<h3>{escape(heading)}</h3>")
        parts += [_card(pair, change, comparison.references.get(change.id, ())) for change in side]
    return "\n".join(["<section>", *parts, "</section>"])


def verdict(pair: compare.RunPair) -> str:
    """Return one or two sentences about the difference in the main measure."""
    row, name = pair.main, pair.main.heading
    p = format_p(row.p_holm)
    p = p if p.startswith("<") else f"= {p}"
    interval = f"95 % interval {format_interval(row.low, row.high, '+.2f')}, corrected p {p}"
    if row.distinguishable:
        way = f"{abs(row.difference):.2f} {name} {'higher' if row.difference > 0 else 'lower'}"
        return f"{pair.run.label} scores {way} than {pair.baseline.label} ({interval})."
    examples = format_count(row.n, "example")
    if row.too_few:
        return f"{examples} are too few for a test by {name}: {row.difference:+.2f} ({interval})."
    limit = f"A true difference below about {row.detectable:.2f} would often not be found with {examples}."
    if not math.isfinite(row.detectable):
        limit = f"Too few of the {examples} differ for the test to find any difference."
    return f"The two are not distinguishable by {name}: {row.difference:+.2f} ({interval}). {limit}"


def _card(pair: compare.RunPair, change: compare.ScoreChange, references: Sequence[Sentences]) -> str:
    baseline_output, output = pair.baseline.predictions[change.id], pair.run.predictions[change.id]
    shared = shared_by(" ".join(headed_references(references).values()), output, baseline_output)
    texts = [(pair.baseline.label, baseline_output, "baseline"), (pair.run.label, output, "run")]
    texts += [(heading, text, "reference") for heading, text in headed_references(references).items()]
    columns = "".join(html_text(heading, mark_words(text, shared), kind) for heading, text, kind in texts)
    verdicts = "".join(
        html_verdicts(run.verdicts, change.id, run.predictions[change.id], run.label)
        for run in (pair.baseline, pair.run)
    )
    way = "up" if change.difference > 0 else "down"
    scores = f"{pair.main.heading} {change.baseline_score:.2f} → {change.score:.2f}"
    return (
        f'<details class="example" open><summary><b class="{way}">{change.difference:+.2f}</b> '
        f'<code>{escape(change.id)}</code> <span class="soft">{escape(scores)}</span></summary>\n'
        f'<div class="texts">{columns}</div>{verdicts}</details>'
    )
