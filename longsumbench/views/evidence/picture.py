"""Draw views of evidence: one as an SVG for a page, which reads out its values, or all below each other as a PNG.

The same views give the same bytes, with the same release of matplotlib.
"""

import json
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longsumbench.views.evidence.views import (
    Plane,
    Relations,
    Scale,
    Selections,
    SourceText,
    TokenWindows,
    View,
    Weights,
    scale_of,
    scale_of_weights,
    step_ranges,
)
from longsumbench.views.figures import COLOURS, render_picture, transparent_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import NDArray

_WIDTH = 12.0  # inches
_SHADES = "Blues"  # a darker shade is a higher value
_GREYS = ("#FAFAFA", "#8C8C8C")  # shades behind coloured bars
_LIGHT = COLOURS[3:5]  # colours with black text
_MOST_TOKENS = 90  # labels under a map
_MOST_ROWS, _MOST_COLUMNS, _MOST_UNITS = 32, 20, 10  # numbers at an axis
_TOKEN_LENGTH, _TEXT_WIDTH, _TITLE_WIDTH = 12, 46, 105  # characters
_TEXT_LINES = 2  # of a segment's text
_MAPS_IN_A_ROW = 5
_NAME_LENGTH = 24  # characters
_MOST_WINDOWS, _WINDOW_LINE = 24, 1.2  # of a head; points
_HEADING: dict[str, Any] = {"loc": "left", "fontsize": 10}
MOST_CELLS = 100_000  # cells of single heads that a page reads out


class DrawnMap(NamedTuple):
    """A map in a drawing: what a page reads out of a cell is the name of its row and its column, and its value."""

    plot: "Axes"
    rows: Sequence[str]
    columns: Sequence[str]
    value: Callable[[int, int], str]  # of a row and a column

    def describe(self) -> dict[str, Any]:
        """Return the names, the values and the place in the drawing: left, top, width, height, as shares of it."""
        figure = self.plot.get_figure(root=True)
        assert figure is not None
        box = self.plot.get_window_extent().transformed(figure.transFigure.inverted())
        place = [round(share, 5) for share in (box.x0, 1 - box.y1, box.width, box.height)]
        columns = range(len(self.columns))
        cells = [[self.value(row, column) for column in columns] for row in range(len(self.rows))]
        return {"box": place, "rows": self.rows, "columns": self.columns, "cells": cells}


class Drawing(NamedTuple):
    """A view as a page shows it."""

    svg: bytes
    maps: str  # JSON: a list of what `DrawnMap.describe` returns


def draw_view(view: View) -> Drawing:
    """Draw a view for a page."""
    described: list[dict[str, Any]] = []

    def draw(figure: "Figure") -> None:
        maps = _draw_view(figure, view)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # keeps the places
        described.extend(drawn.describe() for drawn in maps)

    svg = transparent_svg((_WIDTH, _height(view)), draw)
    return Drawing(svg, json.dumps(described, ensure_ascii=False, separators=(",", ":")))


def format_weight(value: float) -> str:
    """Format a value of an array."""
    return f"{value:.3g}".replace("-", "−") if not np.isnan(value) else "no number"


def draw_views(title: str, views: Sequence[View]) -> bytes:
    """Draw views, one below the other; return a PNG. Without views, the picture has a note."""
    heights = [_height(view) for view in views] or [0.4]

    def draw(figure: "Figure") -> None:
        figure.set_layout_engine("constrained")
        heading = textwrap.shorten(title, _TITLE_WIDTH, placeholder=" …")
        figure.suptitle(heading, x=0.008, ha="left", fontsize=12, fontweight="bold")
        panels = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        for panel, view in zip(panels, views, strict=False):
            _draw_view(panel, view)
        if not views:
            panels[0].text(0.008, 0.5, "There is no array in the evidence.", fontsize=10)

    return render_picture((_WIDTH, sum(heights) + 0.5), draw, ("png",))["png"]


def _height(view: View) -> float:
    match view:
        case Weights():
            names = 0.75 if _names_tokens(view) else 0.2
            return 0.9 + names + min(6.0, max(0.9, 0.22 * len(view.values)))
        case Selections():
            return 0.9 + min(14.0, max(0.7, (0.32 if view.texts else 0.2) * len(view.counts)))
        case Relations():
            return 0.35 + 2.6 * _rows_of_layer(view) * len(view.layers)
        case SourceText():
            return sum(_heights_of_source(view))
        case Plane():
            return 0.9 + (min(5.0, max(0.5, 0.2 * len(view.values))) if view.values.size else 0.0)


def _draw_view(panel: "Figure | SubFigure", view: View) -> list[DrawnMap]:
    match view:
        case Weights():
            return [_draw_weights(panel, view)]
        case Selections():
            return [_draw_selections(panel, view)]
        case Relations():
            return _draw_relations(panel, view)
        case SourceText():
            return _draw_source(panel, view)
        case Plane():
            return _draw_plane(panel, view)


def _numbered(name: str, count: int) -> list[str]:
    """Return the names of rows or columns, "unit 1", "unit 2", …; nothing but blanks without a name."""
    return [f"{name} {number}" if name else "" for number in range(1, count + 1)]


def _draw_weights(panel: "Figure | SubFigure", view: Weights) -> DrawnMap:
    """Draw the map, and below it a strip with the colours of the strongest units."""
    tall = len(view.values)
    plot, strip = panel.subplots(
        2, 1, sharex=True, height_ratios=(max(4.0, tall), 1 if tall > 10 else 0.6)
    )
    _heat(panel, plot, view.values, view.scale, view.name, [plot, strip])
    plot.set_ylabel("unit")
    plot.set_title(f"{view.name} of the units at each step of the {view.text}", **_HEADING)
    _number_axis(plot.yaxis, range(tall), _MOST_ROWS)
    plot.tick_params(axis="x", labelbottom=False)
    _draw_strip(strip, view)
    if _names_tokens(view):
        assert view.tokens is not None
        names = [_shorten_name(token.strip(), _TOKEN_LENGTH) for token in view.tokens]
        strip.set_xticks(range(len(names)), names, rotation=90, fontsize=7.5)
    else:
        _number_axis(strip.xaxis, range(view.values.shape[1]), _MOST_COLUMNS)
    strip.set_xlabel(f"step of the {view.text}")
    steps = _numbered("step", view.values.shape[1])
    if view.tokens:
        steps = [
            f"{step}, “{token.strip()}”" for step, token in zip(steps, view.tokens, strict=True)
        ]
    return DrawnMap(
        plot, _numbered("unit", tall), steps, lambda *cell: format_weight(view.values[cell])
    )


def _names_tokens(view: Weights) -> bool:
    return view.tokens is not None and len(view.tokens) <= _MOST_TOKENS


def _draw_strip(strip: "Axes", view: Weights) -> None:
    from matplotlib.colors import to_rgb

    strongest = view.strongest
    strip.imshow(
        [[to_rgb(_colour(unit)) for unit in strongest]], aspect="auto", interpolation="nearest"
    )
    strip.set_yticks([0], ["strongest"])
    room = _WIDTH * 0.85 / len(strongest)  # inches of a step
    for run in step_ranges(strongest):
        first, last = run.steps[0], run.steps[-1]
        if room * (last - first + 1) >= 0.09 * len(f"{run.unit + 1}"):
            ink = "black" if _colour(run.unit) in _LIGHT else "white"
            strip.text(
                (first + last) / 2,
                0,
                f"{run.unit + 1}",
                color=ink,
                fontsize=7.5,
                ha="center",
                va="center",
            )
    strip.tick_params(length=0)


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _draw_selections(panel: "Figure | SubFigure", view: Selections) -> DrawnMap:
    """Draw the scores in grey, and a bar in the segment's colour on each selected unit."""
    from matplotlib.colors import LinearSegmentedColormap

    plot = panel.subplots()
    num_segments, num_units = view.counts.shape
    if view.scores is not None and view.scores_name is not None:
        greys = LinearSegmentedColormap.from_list("greys", _GREYS)
        _heat(panel, plot, view.scores, scale_of(view.scores), view.scores_name, [plot], greys)
    for segment in range(num_segments):
        bars = [(unit - 0.33, 0.66) for unit in np.flatnonzero(view.counts[segment]).tolist()]
        plot.broken_barh(bars, (segment - 0.32, 0.64), color=_colour(segment), linewidth=0)
    heading = f"{view.name}: the units that were selected for each segment (bars)"
    if view.scores_name:
        heading += f", and {view.scores_name} (grey)"
    plot.set_title(heading, **_HEADING)
    plot.set_xlim(-0.5, num_units - 0.5)
    plot.set_ylim(num_segments - 0.5, -0.5)
    plot.set_xlabel("unit")
    plot.set_ylabel("segment")
    _number_axis(plot.xaxis, range(num_units), _MOST_COLUMNS)
    _number_axis(plot.yaxis, range(num_segments), _MOST_ROWS)
    if view.texts and num_segments <= _MOST_ROWS:
        names = [f"{_beginning(text)}  {segment}" for segment, text in enumerate(view.texts, 1)]
        plot.set_yticks(range(num_segments), names, fontsize=7.5)

    def value(*cell: int) -> str:
        score = (
            ""
            if view.scores is None
            else f", {view.scores_name} {format_weight(view.scores[cell])}"
        )
        return f"{view.name} {view.counts[cell]}{score}"

    return DrawnMap(plot, _numbered("segment", num_segments), _numbered("unit", num_units), value)


def _rows_of_layer(view: Relations) -> int:
    return -(-(len(view.heads) + 1) // _MAPS_IN_A_ROW) if len(view.heads) > 1 else 1


def _draw_relations(panel: "Figure | SubFigure", view: Relations) -> list[DrawnMap]:
    """Draw maps for each layer: units × attended units, of the mean over heads and of each head."""
    heads = f": the mean over {len(view.heads)} heads, and each head" if len(view.heads) > 1 else ""
    heading = f"{view.name} of units to attended units{heads}; each map with its scale, from – to"
    panel.suptitle(heading, x=0.008, ha="left", fontsize=10)
    rows = _rows_of_layer(view)
    plots = panel.subplots(rows * len(view.layers), _MAPS_IN_A_ROW, squeeze=False).reshape(
        len(view.layers), -1
    )
    columns, drawn_maps = [f"to unit {unit + 1}" for unit in view.units], []
    for layer, name in enumerate(view.layers):
        maps = [(name, view.means[layer], scale_of_weights(view.means))]
        if len(view.heads) > 1:
            of_heads = zip(view.heads, view.values[layer], strict=True)
            maps += [(head, values, scale_of_weights(values)) for head, values in of_heads]
        for plot, (title, values, scale) in zip(plots[layer], maps, strict=False):
            _shade(plot, values, scale)
            plot.set_aspect("equal", anchor="NW")
            if title is name or view.values.size <= MOST_CELLS:
                place = name if title is name else f"{name}, {title}"
                rows_of_map = [f"{place}, from unit {unit + 1}" for unit in view.units]
                drawn_maps.append(
                    DrawnMap(plot, rows_of_map, columns, partial(_format_relation, view, values))
                )
            caption = f"{_shorten_name(title, _NAME_LENGTH)}: {scale.low:.2g} – {scale.high:.2g}"
            plot.set_title(caption, **{**_HEADING, "fontsize": 9})
            for axis in (plot.xaxis, plot.yaxis):
                _number_axis(axis, view.units, _MOST_UNITS)
        for plot in plots[layer][len(maps) :]:
            plot.set_axis_off()
    return drawn_maps


def _format_relation(view: Relations, values: "NDArray[np.float64]", *cell: int) -> str:
    value = values[cell]
    return f"{100 * value:.2f} %" if view.shares and np.isfinite(value) else format_weight(value)


def _beginning(text: str) -> str:
    lines = textwrap.wrap(
        " ".join(text.split()), _TEXT_WIDTH, max_lines=_TEXT_LINES, placeholder=" …"
    )
    return "\n".join(lines)


def _shorten_name(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def _draw_source(panel: "Figure | SubFigure", view: SourceText) -> list[DrawnMap]:
    """Draw a strip of the mean marks of the source tokens, and a map of the mean widths of each head's windows."""
    marks, windows = view.marks, view.windows
    heights = [
        height
        for height, part in zip(_heights_of_source(view), (marks, windows), strict=True)
        if part
    ]
    panels, drawn_maps = (
        iter(panel.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]),
        [],
    )
    if marks:
        steps = (
            f", the mean over the steps of the {marks.text} ({len(marks.values)})"
            if marks.text
            else ""
        )
        heading = f"{marks.name} of the source tokens{steps}"
        means = marks.mean[None]
        plot = _draw_map(
            next(panels), means, scale_of_weights(means), marks.name, heading, ("", "source token")
        )
        plot.set_yticks([])
    if windows:
        means, heading = (
            windows.mean_widths,
            f"{windows.name} of each head: the mean width, and some windows",
        )
        name, axes = f"width of {windows.name}", ("layer", "head")
        plot = _draw_map(next(panels), means, scale_of_weights(means), name, heading, axes)
        _draw_windows(plot, windows)
        drawn_maps.append(
            DrawnMap(plot, windows.layers, windows.heads, lambda *cell: format_weight(means[cell]))
        )
    return drawn_maps


def _draw_windows(plot: "Axes", windows: TokenWindows) -> None:
    """Draw evenly sampled windows of each head in its cell, which is the source from left to right.

    A line is a window, and a dot its middle; that of the first source token is on top.
    """
    num_rows = min(windows.num_tokens, _MOST_WINDOWS)
    sampled = ((np.arange(num_rows) + 0.5) * windows.num_tokens / num_rows).astype(int)
    shares = windows.shares()[..., sampled]
    layers, heads, rows = np.indices(shares.shape[1:])
    begins, middles, ends = (heads - 0.45 + 0.9 * shares).reshape(3, -1)
    heights = (layers - 0.42 + 0.84 * (rows + 0.5) / num_rows).ravel()
    plot.hlines(
        heights, begins, ends, COLOURS[1], alpha=0.5, linewidth=_WINDOW_LINE, rasterized=True
    )
    plot.plot(
        middles,
        heights,
        "s",
        color="black",
        markersize=_WINDOW_LINE,
        markeredgewidth=0,
        rasterized=True,
    )


def _heights_of_source(view: SourceText) -> tuple[float, float]:
    """Return the heights of the marks and of the windows."""
    windows = 0.9 + min(5.0, max(0.7, 0.6 * len(view.windows.layers))) if view.windows else 0.0
    return (1.3 if view.marks else 0.0), windows


def _draw_plane(panel: "Figure | SubFigure", view: Plane) -> list[DrawnMap]:
    if view.values.size:
        rows, columns = ("", "", *view.axes)[-2:]
        plot = _draw_map(
            panel, view.values, scale_of(view.values), view.name, about_plane(view), (rows, columns)
        )
        tall, wide = view.values.shape
        names = _numbered(rows, tall), _numbered(columns, wide)
        return [DrawnMap(plot, *names, lambda *cell: format_weight(view.values[cell]))]
    plot = panel.subplots()
    plot.set_title(about_plane(view), **_HEADING)
    plot.set_axis_off()
    return []


def _draw_map(
    panel: "Figure | SubFigure",
    values: "NDArray[np.float64]",
    scale: Scale,
    name: str,
    heading: str,
    axes: tuple[str, str],
) -> "Axes":
    """Draw rows and columns of values as shades; `axes` has their names."""
    plot = panel.subplots()
    _heat(panel, plot, values, scale, name, [plot])
    plot.set_title(heading, **_HEADING)
    plot.set(ylabel=axes[0], xlabel=axes[1])
    _number_axis(plot.yaxis, range(len(values)), _MOST_ROWS)
    _number_axis(plot.xaxis, range(values.shape[1]), _MOST_COLUMNS)
    return plot


def about_plane(view: Plane) -> str:
    """Return the description of a plane."""
    size = " × ".join(f"{size} {axis}" for size, axis in zip(view.shape, view.axes, strict=True))
    if not view.values.size:
        return f"{view.name} is empty ({size})."
    if view.averaged:
        return f"{view.name} ({size}): the mean over {', '.join(view.averaged)}."
    return f"{view.name} ({size})." if size else f"{view.name}: {view.values[0, 0]:.3g}."


def _heat(
    panel: "Figure | SubFigure",
    plot: "Axes",
    values: "NDArray[np.float64]",
    scale: Scale,
    name: str,
    axes: "Sequence[Axes]",
    shades: "Colormap | str" = _SHADES,
) -> None:
    """Draw values as shades, and a colour bar at the right of `axes`."""
    image = _shade(plot, values, scale, shades)
    tall = panel.bbox.height / panel.dpi  # inches
    bar = panel.colorbar(image, ax=list(axes), pad=0.01, fraction=0.05, aspect=5 * tall)
    bar.set_label(name, fontsize=9)
    bar.ax.tick_params(labelsize=8)


def _shade(
    plot: "Axes", values: "NDArray[np.float64]", scale: Scale, shades: "Colormap | str" = _SHADES
) -> "ScalarMappable":
    finite = np.ma.masked_invalid(values)
    plot.set_facecolor("white")  # for values that are not finite
    return plot.imshow(
        finite, aspect="auto", cmap=shades, vmin=scale.low, vmax=scale.high, interpolation="nearest"
    )


def _number_axis(axis: "Axis", indices: Sequence[int], limit: int) -> None:
    """Write the numbers of some units, steps or tokens, of which some may be missing, at their places."""
    numbers = tick_numbers(indices[-1] + 1, limit)
    places = [place for place, index in enumerate(indices) if index + 1 in numbers]
    axis.set_ticks(places, [f"{indices[place] + 1}" for place in places])
    axis.set_tick_params(labelsize=8, length=2)


def tick_numbers(count: int, limit: int) -> list[int]:
    """Return 1 and the multiples of a round number up to `count`, at most `limit` (2 or more) in total."""
    round_numbers = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    step = next(number for number in round_numbers if count // number + (number > 1) <= limit)
    return sorted({1, *range(step, count + 1, step)})
