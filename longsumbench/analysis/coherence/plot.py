"""Writes the coherence of summaries as CSV, PNG and SVG (PageSum, Table 4)."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longsumbench.analysis.coherence.coherence import REFERENCE, SHUFFLED, CoherenceFound
from longsumbench.analysis.pages import add_title_and_caption
from longsumbench.report.figures import plain_axes, render_picture, write_pictures
from longsumbench.report.palette import GREY, system_styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _ROW, _REST = 7.4, 0.42, 1.55  # inches: the figure's width, a row's height, the margins' height
_NUMBER: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9}
_LABEL_WIDTH = 30  # characters


def write_coherence(found: CoherenceFound, folder: Path) -> list[Path]:
    """Write `coherence.csv`, `.png` and `.svg`; return their paths."""
    drawn = {f"coherence.{kind}": image for kind, image in draw_coherence(found).items()}
    return write_pictures(folder, {"coherence.csv": found.csv(), **drawn})


def draw_coherence(found: CoherenceFound) -> dict[str, bytes]:
    """Draw each mean with its interval; return "png" and "svg" → bytes."""
    return render_picture((_WIDTH, _REST + _ROW * len(found.scores)), lambda figure: _draw(figure, found))


def _draw(figure: "Figure", found: CoherenceFound) -> None:
    table, tall = found.table(), figure.get_figheight()
    plot = figure.subplots()
    figure.subplots_adjust(left=0.36, right=0.93, top=1 - 0.5 / tall, bottom=0.98 / tall)
    numbers = table[["coherence", "low", "high"]].to_numpy(np.float64)
    styles = system_styles([label.split()[0] for label in table["label"]])
    for place, (name, style, (mean, low, high)) in enumerate(zip(table["row"], styles, numbers, strict=True)):
        colour, marker = (GREY, "o") if name in (REFERENCE, SHUFFLED) else (style["color"], style["marker"])
        plot.plot([low, high], [place, place], color=colour, linewidth=2.2, solid_capstyle="round")
        plot.plot([mean], [place], marker, color=colour, markersize=7)
        if np.isfinite(mean):
            right = (high if np.isfinite(high) else mean, place)
            plot.annotate(f"{mean:.2f}", right, **_NUMBER, xytext=(7, 0), va="center")
    names = ["\n".join(textwrap.wrap(f"{row.label}, n = {row.n:,}", _LABEL_WIDTH)) for row in table.itertuples()]
    plot.set_yticks(range(len(table)), names, fontsize=9)
    plot.set_ylim(len(table) - 0.5, -0.5)
    plot.margins(x=0.12)
    plot.set_xlabel("coherence, 0–100: how likely each sentence follows the one before", fontsize=9.5)
    plain_axes(plot, "x")
    caption = f"{found.about}. Bars: 95 % intervals over summaries of two sentences or more (n)."
    add_title_and_caption(figure, 0.02, found.title, caption, 118)
