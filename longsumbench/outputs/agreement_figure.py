"""Draws and writes what `longsumbench agreement` found: a plot for each aspect, with metrics as points."""

import math
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.metrics.aggregate import Estimate
from longsumbench.outputs.agreement import ANNOTATORS, Agreement, measure_heading
from longsumbench.outputs.judgements import CONTROLS
from longsumbench.render.figures import (
    COLOURS,
    GREY,
    TEXT,
    draw_intervals,
    render_picture,
    write_pictures,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3  # plots side by side
_WIDTH, _ROW, _REST = 3.1, 0.27, 1.1  # inches of a plot, of a metric, of a plot's titles
_LINES = dict(zip((ANNOTATORS, *CONTROLS), ("#000000", *COLOURS[1:4]), strict=True))


# Begin to read here: the command calls it.
def write_agreement(result: Agreement, folder: Path) -> list[Path]:
    """Write `agreement.csv`, `.png` and `.svg`; return their paths."""
    columns, rows = _grid(result)
    num_metrics = sum(name not in _LINES for name in result.shown)
    size = 1.6 + _WIDTH * max(2, columns), 0.9 + (_REST + _ROW * num_metrics) * rows
    files: dict[str, Any] = {"agreement.csv": result.csv()}
    for kind, image in render_picture(size, partial(_draw_agreement, result)).items():
        files[f"agreement.{kind}"] = image
    return write_pictures(folder, files)


def _grid(result: Agreement) -> tuple[int, int]:
    """Return the numbers of columns and rows of the plots."""
    columns = min(_COLUMNS, len(result.aspects))
    return columns, math.ceil(len(result.aspects) / columns)


def _draw_agreement(result: Agreement, figure: "Figure") -> None:
    """Draw τ within documents of each metric, with its 95 % interval, and lines of the annotators and the controls."""
    columns, rows = _grid(result)
    figure.set_layout_engine("constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for plot, aspect in zip(grid, result.aspects, strict=False):
        _draw_aspect(plot, result, aspect)
    for plot in grid[len(result.aspects) :]:
        plot.set_axis_off()
    lines: dict[str, Any] = {}
    for plot in grid:
        lines |= {str(line.get_label()): line for line in plot.get_lines() if line.get_gid()}
    figure.legend(
        list(lines.values()),
        list(lines),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=TEXT,
    )
    figure.suptitle(
        f"{result.name}: agreement with people, τ within documents", fontsize=14, fontweight="bold"
    )


def _draw_aspect(plot: "Axes", result: Agreement, aspect: str) -> None:
    rows = result.rows_of(aspect)
    metrics = rows[rows["kind"] == "metric"]
    for name, colour in _LINES.items():
        for tau in rows["tau"][rows.index == name].dropna():
            style, label = "-" if name == ANNOTATORS else "--", measure_heading(name)
            plot.axvline(tau, color=colour, linestyle=style, label=label, gid=name)
    points = []
    for measure, row in metrics.iterrows():
        number = Estimate(row["tau"], row["tau_lo"], row["tau_hi"])
        points.append((measure_heading(str(measure)), number, {"color": COLOURS[0]}))
    draw_intervals(plot, points)
    plot.axvline(0, color=GREY, linewidth=1)
    plot.tick_params(labelbottom=True)
    plot.set_title("\n".join(textwrap.wrap(aspect, 28)), fontsize=TEXT + 1, loc="left")
