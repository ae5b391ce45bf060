"""Draw the picture of a sweep: a line with whiskers per system, and its name at the end.

Layout --draw_layout--> PNG, SVG
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longsumbench.leaderboards.figures.curves_layout import Axis, CurveLine, Layout, ReferenceLine, tick_name
from longsumbench.report.figures import plain_axes, render_picture, series_style, spread_labels, whisker_lengths
from longsumbench.report.palette import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: widths of a single plot and of one of several, least height of plots
_ALONE, _PLOT, _HEIGHT = 5.8, 3.3, 3.3
# Inches: margins around the plots, heights of a row of small text and of a label
_LEFT, _RIGHT, _ABOVE, _BELOW, _ROW, _NAME_ROW = 0.75, 2.65, 0.68, 0.72, 0.175, 0.19
_LABEL_WIDTH, _CHARACTERS_AN_INCH = 26, 17  # characters
_NEAR = 0.75  # share of the curves' height; reference lines that are farther away have only a label
_LEAST_HEIGHT = 1e-3  # in the unit of the scores
_PLAIN_TEXT: dict[str, Any] = {"parse_math": False}  # names may contain dollar signs


def draw_layout(layout: Layout) -> dict[str, bytes]:
    """Draw the plots side by side, with labels of the lines on the right; return "png" and "svg" → bytes."""
    width = _LEFT + _RIGHT + (_ALONE if len(layout.headings) == 1 else _PLOT * len(layout.headings))
    subtitle, notes = _wrapped([". ".join(layout.summary) + "."], width), _wrapped(layout.notes, width)
    above = _ABOVE + _ROW * (1 + subtitle.count("\n")) + (0.2 if any(layout.headings) else 0)
    below = _BELOW + _ROW * (1 + notes.count("\n"))
    rows = sum(1 + text.count("\n") for text, _ in _names(layout))
    height = above + max(_HEIGHT, _NAME_ROW * 1.15 * rows) + below

    def draw(figure: "Figure") -> None:
        plots = figure.subplots(1, len(layout.headings), sharey=True, squeeze=False)[0]
        inside = {
            "left": _LEFT / width,
            "right": 1 - _RIGHT / width,
            "top": 1 - above / height,
            "bottom": below / height,
        }
        figure.subplots_adjust(**inside, wspace=0.08)
        limits = _limits(layout.lines, layout.references)
        for index, (heading, plot) in enumerate(zip(layout.headings, plots, strict=True)):
            _draw_plot(plot, index, layout, limits)
            plot.text(0, 1.03, heading, transform=plot.transAxes, fontsize=10.5, fontweight="bold", **_PLAIN_TEXT)
        plots[0].set_ylabel(layout.measured, fontsize=9.5, **_PLAIN_TEXT)
        place = plots[-1].get_position()
        _name_lines(plots[-1], (place.width * width, place.height * height), layout, limits)
        left = 0.12 / width
        small: dict[str, Any] = {"fontsize": 8.5, "color": GREY, **_PLAIN_TEXT}
        figure.text(left, 1 - 0.2 / height, layout.title, fontsize=12.5, fontweight="bold", va="top", **_PLAIN_TEXT)
        figure.text(left, 1 - 0.47 / height, subtitle, va="top", **small)
        figure.text(left, 0.1 / height, notes, va="bottom", **small)

    return render_picture((width, height), draw)


def _wrapped(lines: Sequence[str], width: float) -> str:
    characters = int((width - 0.3) * _CHARACTERS_AN_INCH)
    return "\n".join("\n".join(textwrap.wrap(line, characters)) for line in lines)


def _names(layout: Layout) -> list[tuple[str, dict[str, Any]]]:
    names = [(line.label, series_style(place)) for place, line in enumerate(layout.lines)]
    low, high = _limits(layout.lines, layout.references)
    for one in layout.references:
        off = " ▲" if one.number.mean > high else " ▼" if one.number.mean < low else ""
        style = {"color": GREY, "linestyle": "--" if one.oracle else "-"}
        names.append((f"{one.label} {one.number:.1f}{off}", style))
    return [("\n".join(textwrap.wrap(text, _LABEL_WIDTH)), style) for text, style in names]


def _limits(lines: Sequence[CurveLine], references: Sequence[ReferenceLine]) -> tuple[float, float]:
    """Return the limits of the vertical axis: around the curves and the reference lines near them."""
    ends = [bound for line in lines for one in line.numbers() for bound in one]
    low, high = min(ends), max(ends)
    room = _NEAR * max(high - low, _LEAST_HEIGHT)
    near = [one.number.mean for one in references if low - room <= one.number.mean <= high + room]
    low, high = min([low, *near]), max([high, *near])
    return low - 0.06 * max(high - low, _LEAST_HEIGHT), high + 0.06 * max(high - low, _LEAST_HEIGHT)


def _draw_plot(plot: "Axes", index: int, layout: Layout, limits: tuple[float, float]) -> None:
    axis = layout.axis
    for place, line in enumerate(layout.lines):
        above = 3 + len(layout.lines) - place
        style = series_style(place)
        values = [value for value in axis.values if value in line.plots[index]]
        numbers = [line.plots[index][value] for value in values]
        shift = _shift(place, len(layout.lines), axis)
        _, _, whiskers = plot.errorbar(
            [axis.places[value] + shift for value in values],
            [one.mean for one in numbers],
            yerr=whisker_lengths(numbers),
            linewidth=0.8 if axis.words else 1.6,  # no values between words
            elinewidth=1.1,
            zorder=above,
            **style,
        )
        whiskers[0].set_alpha(0.6)
        if flat := line.flat[index]:
            plot.axhline(flat.mean, color=style["color"], linewidth=1.4, zorder=above)
    for one in layout.references:
        plot.axhline(one.number.mean, color=GREY, linestyle="--" if one.oracle else "-", linewidth=1.0, zorder=2)
    plain_axes(plot)
    plot.set_xlim(*axis.ends)
    plot.set_ylim(*limits)
    ticks = axis.ticks()
    plot.set_xticks([axis.places[value] for value in ticks], list(map(tick_name, ticks)), **_PLAIN_TEXT)
    plot.set_xlabel(axis.name, fontsize=9.5, **_PLAIN_TEXT)


def _shift(place: int, count: int, axis: Axis) -> float:
    """Return the horizontal shift of a line that keeps whiskers from overlapping."""
    left, right = axis.ends
    step = (right - left) / max(2, len(axis.values))
    return (place - (count - 1) / 2) * min(0.03, 0.3 / count) * step


def _name_lines(plot: "Axes", inches: tuple[float, float], layout: Layout, limits: tuple[float, float]) -> None:
    """Write each line's label near the height of its end, connected by a leader line; `inches` is the plot's size."""
    (width, height), (low, high) = inches, limits
    names = _names(layout)
    ends = [_end(line, place, layout) for place, line in enumerate(layout.lines)]
    ends += [(layout.axis.ends[1], one.number.mean) for one in layout.references]
    means = [line.numbers()[-1].mean if end is None else end[1] for line, end in zip(layout.lines, ends, strict=False)]
    wanted = [100 * (mean - low) / (high - low) for mean in [*means, *(one.number.mean for one in layout.references)]]
    row = 100 * _NAME_ROW / height
    heights = spread_labels(wanted, [row * (1 + text.count("\n")) + 0.6 for text, _ in names], top=102)
    at_right = plot.get_yaxis_transform()
    lead_to, marker_from, marker, marker_to, text_at = (1 + x / width for x in (0.16, 0.2, 0.31, 0.42, 0.5))
    for (text, style), end, percent in zip(names, ends, heights, strict=True):
        colour, at = style["color"], low + percent / 100 * (high - low)
        if end and low <= end[1] <= high:
            dots: dict[str, Any] = {"linestyle": (0, (1, 3)), "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0}
            lead = {"arrowstyle": "-", "color": colour, **dots}
            plot.annotate("", end, (lead_to, at), xycoords="data", textcoords=at_right, arrowprops=lead)
        plot.plot([marker_from, marker, marker_to], [at] * 3, transform=at_right, clip_on=False, markevery=[1], **style)
        written: dict[str, Any] = {"color": GREY if colour == GREY else "black", "va": "center", "fontsize": 9.5}
        plot.text(text_at, at, text, transform=at_right, linespacing=1.05, **written, **_PLAIN_TEXT)


def _end(line: CurveLine, place: int, layout: Layout) -> tuple[float, float] | None:
    """Return where a line ends in the last plot; None if it has no points there."""
    if flat := line.flat[-1]:
        return layout.axis.ends[1], flat.mean
    known = [value for value in layout.axis.values if value in line.plots[-1]]
    if not known:
        return None
    shift = _shift(place, len(layout.lines), layout.axis)
    return layout.axis.places[known[-1]] + shift, line.plots[-1][known[-1]].mean
