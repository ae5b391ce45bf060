"""Writes fusion sentences as CSV tables, JSON lines, a figure and a self-contained HTML page.

    FusionsFound --write_fusion--> fusion.csv, .png, .svg, .html, fusion-pairs.jsonl; with runs fusion-runs.csv

Outputs of systems are escaped.
"""

import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from longsumbench.analysis.fusion.fusion import BOTH, FIRST, SECOND, Fusion, FusionsFound
from longsumbench.metrics.aggregate import Estimate
from longsumbench.render.figures import draw_series, plain_axes, render_picture, write_pictures
from longsumbench.render.html import html_page, html_table
from longsumbench.render.html_parts import PAGE_STYLE, add_title_and_caption, html_picture, html_text, marks_legend
from longsumbench.render.marked_words import mark_words, shared_by
from longsumbench.render.palette import COLOURS, GREY, system_styles
from longsumbench.render.tables import Block

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NARROW, _WIDE, _HEIGHT = 7.4, 12.4, 4.3  # inches
_MOST_RUNS = 6  # greatest number of runs drawn
_BACKGROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}  # of a label on a line
_COUNT: dict[str, Any] = {
    **{"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "fontsize": 8.5},
    **{"bbox": _BACKGROUND, "zorder": 5},
}
_FEWEST_FUSIONS = 5  # fusion sentences; points of fewer are not drawn
SOURCE_MARKS = {"one": "the first source alone", "other": "the second alone", "both": "both"}
SAYS = {BOTH: "says both", FIRST: "says the first only", SECOND: "says the second only", "neither": "says neither"}
PAIR_STYLE = """
.pair { border: 1px solid var(--line); border-radius: .5rem; margin: .8rem 0; background: var(--card); }
.pair > p { padding: .7rem .9rem; margin: 0; max-width: none; }
"""
_STYLE = (
    """
details.bar { border-top: 1px solid var(--line); padding: .8rem 0; margin: 0; }
details.bar > summary { cursor: pointer; font-size: 1.1rem; font-weight: 600; }
"""
    + PAIR_STYLE
)


def write_fusion(result: FusionsFound, folder: Path) -> list[Path]:
    """Write all files and return their paths."""
    pictures = draw_fusion(result)
    files: dict[str, str | bytes] = {"fusion.csv": result.csv()}
    if result.runs:
        files["fusion-runs.csv"] = result.runs_csv()
    files |= {f"fusion.{kind}": image for kind, image in pictures.items()}
    files |= {"fusion-pairs.jsonl": result.lines(), "fusion.html": fusion_page(result, pictures["svg"])}
    return write_pictures(folder, files)


def draw_fusion(result: FusionsFound) -> dict[str, bytes]:
    """Draw the bars and how often runs state both sources; return "png" and "svg" → bytes."""
    return render_picture((_WIDE if result.runs else _NARROW, _HEIGHT), lambda figure: _draw_plots(figure, result))


def _draw_plots(figure: "Figure", result: FusionsFound) -> None:
    plots = figure.subplots(1, 2 if result.runs else 1, squeeze=False)[0]
    left_margin = 0.055 if result.runs else 0.09
    figure.subplots_adjust(left=left_margin, right=0.985, top=0.86, bottom=0.225, wspace=0.14)
    _draw_distance_bars(plots[0], result)
    if result.runs:
        _draw_runs(plots[1], result)
    for plot in plots:
        plot.set_xlim(-0.01, 1.01)
        plot.set_xticks(np.linspace(0, 1, 11), [f"{tenth / 10:g}" for tenth in range(11)])
        plot.set_xlabel("distance of the two source sentences, as a share of the source", fontsize=9.5)
        plain_axes(plot)
    heading = f"{result.dataset}: distance of the sentences that a summary fuses"
    caption = f"{result.notes()[0]}. Whiskers and bands: 95 % intervals over examples."
    add_title_and_caption(figure, left_margin, heading, caption, 190 if result.runs else 110)


def _draw_distance_bars(plot: "Axes", result: FusionsFound) -> None:
    bars = result.bars()
    width = 1 / result.settings.bins
    middles = bars["from"] + width / 2
    plot.bar(middles, bars["share"], width * 0.86, color=COLOURS[0])
    mask = bars["low"].notna() & (bars["pairs"] > 0)
    whiskers = _whiskers(*(bars[name][mask] for name in ("share", "low", "high")))
    plot.errorbar(middles[mask], bars["share"][mask], whiskers, fmt="none", ecolor="black", elinewidth=1.0, alpha=0.6)
    tops = bars[["share", "high"]].max(axis=1)
    for middle, top, count in zip(middles, tops, bars["pairs"], strict=True):
        plot.annotate(f"{count:,}", (middle, top), **_COUNT)
    dashed: dict[str, Any] = {"color": GREY, "linestyle": "--", "linewidth": 1.2, "marker": "o", "markersize": 3}
    plot.plot(middles, bars["chance"], **dashed, label="by chance")
    plot.set_ylabel("% of the pairs (above: number)", fontsize=9.5)
    plot.legend(frameon=False, fontsize=9, loc="upper right")


def _whiskers(values: "pd.Series[float]", low: "pd.Series[float]", high: "pd.Series[float]") -> Any:
    return [(values - low).clip(lower=0), (high - values).clip(lower=0)]


def _draw_runs(plot: "Axes", result: FusionsFound) -> None:
    rows = result.by_run()
    rows = rows[(rows["bar"] != "all") & (rows["n"] >= _FEWEST_FUSIONS)] if len(rows) else rows
    half, runs = 0.5 / result.settings.bins, list(result.runs.items())[:_MOST_RUNS]
    styles = system_styles([name.split()[0] for _, name in runs])
    for (run_id, name), style in zip(runs, styles, strict=True):
        points = rows[rows["run_id"] == run_id] if len(rows) else rows
        if not len(points):
            continue
        numbers = [Estimate(*bounds) for bounds in points[[BOTH, "both_low", "both_high"]].to_numpy().tolist()]
        label = textwrap.shorten(name, 60, placeholder=" …")
        draw_series(plot, [*(points["from"] + half)], numbers, {**style, "label": label})
    plot.set_ylim(-3, 103)
    plot.set_ylabel(f"% whose output says both (of {_FEWEST_FUSIONS} or more)", fontsize=9.5)
    if len(rows):
        plot.legend(frameon=False, fontsize=8.5, loc="upper right")


def fusion_page(result: FusionsFound, svg: bytes) -> str:
    """Return the HTML page with the figure `svg`."""
    parts = [
        f"<h1>{escape(result.title)}</h1>",
        *(f"<p>{escape(line)}.</p>" for line in result.notes()),
        html_picture(svg, "Bars: number of pairs by distance; dashed line: by chance."),
        *(part for block in result.blocks() for part in _html_titled_table(block)),
        "<h2>The pairs of each bar</h2>",
        f'<p class="soft">Up to {result.settings.shown} pairs per bar, the greatest gain over one source first.</p>',
        marks_legend("the fusion sentence", SOURCE_MARKS),
        *(_html_bar(result, bar) for bar in range(result.settings.bins)),
        f'<p class="soft">{escape(result.signature.replace("|", " "))}</p>',
    ]
    return html_page(result.title, parts, PAGE_STYLE + _STYLE)


def _html_titled_table(block: Block) -> list[str]:
    """Return a table with its heading and notes; those of the bars are on top of the page."""
    head = [f"<h3>{escape(block.heading)}</h3>", *(f'<p class="soft">{escape(note)}.</p>' for note in block.notes)]
    return [*(head if block.heading else []), html_table(block.columns, block.align, block.rows)]


def _html_bar(result: FusionsFound, bar: int) -> str:
    pairs, (low, high) = result.of_bar(bar), result.span(bar)
    shown_pairs = pairs[: result.settings.shown]
    count = f"{len(pairs):,} pairs" + (f", {len(shown_pairs)} shown" if len(shown_pairs) < len(pairs) else "")
    heading = f"<summary>Distance {low:g} – {high:g}: {count}</summary>"
    return f'<details class="bar">{heading}\n{"".join(html_pair(fusion, result) for fusion in shown_pairs)}</details>'


def html_pair(fusion: Fusion, result: FusionsFound) -> str:
    """Return a fusion sentence, its sources, and the closest sentences of outputs, as HTML."""
    shared = shared_by(fusion.summary, *fusion.sources)
    scores = f"both {100 * fusion.score:.0f}, alone {100 * fusion.alone[0]:.0f} and {100 * fusion.alone[1]:.0f}"
    recall = f"ROUGE-{result.settings.rouge} recall: {scores}; distance {fusion.distance:.3f}"
    label = f"{fusion.id}, reference sentence {fusion.place}; {recall}"
    sources = [
        html_text(name_source(fusion, place), mark_words(text, shared)) for place, text in enumerate(fusion.sources)
    ]
    outputs = [
        html_text(
            f"{result.runs[stated.run_id]} {SAYS[stated.says]} ({_percents(stated.parts)}), "
            f"recall {100 * stated.recall:.0f}; its closest sentence",
            mark_words(stated.closest, shared),
        )
        for stated in fusion.outputs
    ]
    texts = "\n".join(f'<div class="texts">{"".join(row)}</div>' for row in (sources, outputs) if row)
    top = f'<p><span class="soft">{escape(label)}</span><br>{mark_words(fusion.summary, shared)}</p>'
    return f'<div class="pair">{top}\n{texts}</div>\n'


def name_source(fusion: Fusion, place: int) -> str:
    """Return "source sentence 14 of 410"; `place` is 0 or 1."""
    document = f", document {fusion.documents[place]}" if len(set(fusion.documents)) > 1 else ""
    return f"source sentence {fusion.numbers[place]:,} of {fusion.of:,}{document}"


def _percents(shares: Sequence[float]) -> str:
    return " and ".join(f"{100 * share:.0f}\N{NO-BREAK SPACE}%" for share in shares)
