"""Draw the picture of a sweep: a line with a band per system, and its name at the end.

Layout --draw_layout--> PNG, SVG
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longsumbench.leaderboards.figures.curves_layout import CurveLine, Layout, ReferenceLine, tick_name
from longsumbench.report.figures import TEXT, LineLabel, draw_panels, draw_series, plain_axes
from longsumbench.report.palette import GREY, system_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEAR = 0.75  # share of the curves' height; reference lines that are farther away have only a label
_LEAST_HEIGHT = 1e-3  # in the unit of the scores


def draw_layout(layout: Layout) -> dict[str, bytes]:
    """Draw the plots side by side, with labels of the lines on the right; return "png" and "svg" → bytes."""

    def draw(plots: "Sequence[Axes]") -> None:
        for index, (heading, plot) in enumerate(zip(layout.headings, plots, strict=True)):
            _draw_plot(plot, index, layout)
            plot.set_title(heading, loc="left", fontsize=TEXT, fontweight="bold")
        plots[0].set_ylabel(layout.measured, fontsize=TEXT)

    notes = [". ".join(layout.summary) + ".", *layout.notes]
    return draw_panels(layout.title, notes, len(layout.headings), draw, _labels(layout))


def _draw_plot(plot: "Axes", index: int, layout: Layout) -> None:
    axis = layout.axis
    for place, (line, style) in enumerate(zip(layout.lines, _styles(layout), strict=True)):
        above = 3 + len(layout.lines) - place
        numbers = {axis.places[value]: line.plots[index][value] for value in axis.values if value in line.plots[index]}
        draw_series(plot, [*numbers], [*numbers.values()], style, above)
        if flat := line.flat[index]:
            plot.axhline(flat.mean, color=style["color"], linewidth=1.4, zorder=above)
    for one in layout.references:
        plot.axhline(one.number.mean, color=GREY, linestyle="--" if one.oracle else "-", linewidth=1.0, zorder=2)
    plain_axes(plot)
    plot.set_xlim(*axis.ends)
    plot.set_ylim(*_limits(layout.lines, layout.references))
    ticks = axis.ticks(len(layout.headings))
    plot.set_xticks([axis.places[value] for value in ticks], list(map(tick_name, ticks)))
    plot.locator_params(axis="y", nbins=5)
    plot.set_xlabel(axis.name, fontsize=TEXT)


def _styles(layout: Layout) -> list[dict[str, Any]]:
    return system_styles([line.model for line in layout.lines])


def _limits(lines: Sequence[CurveLine], references: Sequence[ReferenceLine]) -> tuple[float, float]:
    """Return the limits of the vertical axis: around the curves and the reference lines near them."""
    ends = [bound for line in lines for one in line.numbers() for bound in one if bound == bound]
    low, high = min(ends), max(ends)
    room = _NEAR * max(high - low, _LEAST_HEIGHT)
    near = [one.number.mean for one in references if low - room <= one.number.mean <= high + room]
    low, high = min([low, *near]), max([high, *near])
    return low - 0.06 * max(high - low, _LEAST_HEIGHT), high + 0.06 * max(high - low, _LEAST_HEIGHT)


def _labels(layout: Layout) -> list[LineLabel]:
    axis, (low, high) = layout.axis, _limits(layout.lines, layout.references)
    labels = []
    for line, style in zip(layout.lines, _styles(layout), strict=True):
        ends = [(axis.places[value], line.plots[-1][value]) for value in axis.values if value in line.plots[-1]]
        ends += [(axis.ends[1], flat)] if (flat := line.flat[-1]) else []
        end, number = ends[-1] if ends else (None, line.numbers()[-1])
        labels.append(LineLabel(line.label, number.mean, style["color"], end))
    for one in layout.references:
        off = " ▲" if one.number.mean > high else " ▼" if one.number.mean < low else ""
        name = f"{one.label} {one.number.mean:.1f}{off}"
        labels.append(LineLabel(name, one.number.mean, GREY, None if off else axis.ends[1]))
    return labels
