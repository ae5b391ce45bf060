"""Draw views of evidence: one as an SVG for a page, which reads out its values, or all below each other as a PNG.

Begin with `draw_view` and `draw_views`. The same views give the same bytes, with the same release of matplotlib.
"""

import json
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longsumbench.views.evidence.array_views import (
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
_MOST_TOKENS = 90  # labels under a map
_MOST_ROWS, _MOST_COLUMNS, _MOST_UNITS = 32, 20, 10  # numbers at an axis
_TOKEN_LENGTH, _TEXT_WIDTH, _TITLE_WIDTH = 12, 46, 105  # characters
_TEXT_LINES = 2  # of a segment's text
_MAPS_IN_A_ROW = 5
_NAME_LENGTH = 24  # characters
_MOST_WINDOWS, _WINDOW_LINE = 24, 1.2  # of a head; points
_HEADING: dict[str, Any] = {"loc": "left", "fontsize": 10}
_SMALL = 7.5  # points of the labels of tokens and segments
_ROUND_NUMBERS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 10_000, 50_000, 100_000)
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
        cells = []
        for row in range(len(self.rows)):
            cells.append([self.value(row, column) for column in range(len(self.columns))])
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


def format_weight(value: float) -> str:
    """Format a value of an array."""
    return f"{value:.3g}".replace("-", "−") if not np.isnan(value) else "no number"


def _height(view: View) -> float:
    """Return the height of a view in inches."""
    match view:
        case Weights():
            return _map_height(len(view.values)) + (0.75 if _tokens_of(view) else 0.0)
        case Selections():
            return _map_height(len(view.counts) * (1.5 if view.texts else 1.0))
        case Relations():
            return 0.35 + 2.6 * _rows_of_layer(view) * len(view.layers)
        case SourceText():
            windows = _windows_height(view.windows) if view.windows else 0.0
            return windows + (_map_height(1) if view.marks else 0.0)
        case Plane():
            return _map_height(len(view.values)) if view.values.size else 0.9


def _map_height(num_rows: float) -> float:
    return 0.9 + min(6.0, max(0.7, 0.22 * num_rows))


def _windows_height(windows: TokenWindows) -> float:
    return _map_height(3 * len(windows.layers))


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


def _number_names(name: str, count: int) -> list[str]:
    """Return the names of rows or columns, "unit 1", "unit 2", …; nothing but blanks without a name."""
    return [f"{name} {number}" if name else "" for number in range(1, count + 1)]


def _readout(values: "NDArray[np.float64]") -> Callable[[int, int], str]:
    return lambda *cell: format_weight(values[cell])


def _draw_weights(panel: "Figure | SubFigure", view: Weights) -> DrawnMap:
    num_units, num_steps = view.values.shape
    heading = f"{view.name} of the units at each step of the {view.text}"
    axes = ("unit", f"step of the {view.text}")
    plot = _draw_map(panel, view.values, view.scale, view.name, heading, axes)
    names = [_shorten_name(token.strip(), _TOKEN_LENGTH) for token in _tokens_of(view)]
    if names:
        plot.set_xticks(range(num_steps), names, rotation=90, fontsize=_SMALL)
    steps = _number_names("step", num_steps)
    for step, token in enumerate(view.tokens or ()):
        steps[step] += f", “{token.strip()}”"
    return DrawnMap(plot, _number_names("unit", num_units), steps, _readout(view.values))


def _tokens_of(view: Weights) -> Sequence[str]:
    """Return the tokens that are labels; none if they are too many."""
    tokens = view.tokens or ()
    return tokens if len(tokens) <= _MOST_TOKENS else ()


def _draw_selections(panel: "Figure | SubFigure", view: Selections) -> DrawnMap:
    """Draw the scores (or counts) in grey, and a bar in the segment's colour on each selected unit."""
    from matplotlib.colors import LinearSegmentedColormap

    num_segments, num_units = view.counts.shape
    name, values = view.name, view.counts.astype(np.float64)
    if view.scores is not None and view.scores_name is not None:
        name, values = view.scores_name, view.scores
    heading = f"{view.name}: the units for each {view.row} (bars), and {name} (grey)"
    greys = LinearSegmentedColormap.from_list("greys", _GREYS)
    axes = (view.row, "unit")
    plot = _draw_map(panel, values, scale_of(values), name, heading, axes, greys)
    for segment, counts in enumerate(view.counts):
        bars = [(unit - 0.33, 0.66) for unit in np.flatnonzero(counts).tolist()]
        colour = COLOURS[segment % len(COLOURS)]
        plot.broken_barh(bars, (segment - 0.32, 0.64), color=colour, linewidth=0)
    if view.texts and num_segments <= _MOST_ROWS:
        names = [f"{_beginning(text)}  {segment}" for segment, text in enumerate(view.texts, 1)]
        plot.set_yticks(range(num_segments), names, fontsize=_SMALL)

    def value(*cell: int) -> str:
        count = f"{view.name} {view.counts[cell]}"
        if view.scores is None:
            return count
        return f"{count}, {view.scores_name} {format_weight(view.scores[cell])}"

    rows, columns = _number_names(view.row, num_segments), _number_names("unit", num_units)
    return DrawnMap(plot, rows, columns, value)


def _rows_of_layer(view: Relations) -> int:
    num_maps = 1 + len(view.heads) if len(view.heads) > 1 else 1
    return -(-num_maps // _MAPS_IN_A_ROW)


def _draw_relations(panel: "Figure | SubFigure", view: Relations) -> list[DrawnMap]:
    """Draw maps for each layer: units × attended units, of the mean over heads and of each head."""
    several = len(view.heads) > 1
    heads = f": the mean over {len(view.heads)} heads, and each head" if several else ""
    heading = f"{view.name} of units to attended units{heads}; each map with its scale, from – to"
    panel.suptitle(heading, x=0.008, ha="left", fontsize=10)
    num_rows = _rows_of_layer(view) * len(view.layers)
    plots = panel.subplots(num_rows, _MAPS_IN_A_ROW, squeeze=False)
    for plot in plots.flat:
        plot.set_axis_off()
    columns = [f"to unit {unit + 1}" for unit in view.units]
    drawn_maps = []
    layers = zip(
        view.layers, view.means, view.values, plots.reshape(len(view.layers), -1), strict=True
    )
    for layer, means, values_of_heads, (first, *others) in layers:
        _draw_relation(first, view, layer, means, scale_of_weights(view.means))
        maps = [(first, layer, means)]
        if several:
            for head, values, plot in zip(view.heads, values_of_heads, others, strict=False):
                _draw_relation(plot, view, head, values, scale_of_weights(values))
                maps.append((plot, f"{layer}, {head}", values))
        readable = maps if view.values.size <= MOST_CELLS else maps[:1]
        for plot, name, values in readable:
            rows = [f"{name}, from unit {unit + 1}" for unit in view.units]
            drawn_maps.append(
                DrawnMap(plot, rows, columns, partial(_format_relation, view, values))
            )
    return drawn_maps


def _draw_relation(
    plot: "Axes", view: Relations, name: str, values: "NDArray[np.float64]", scale: Scale
) -> None:
    plot.set_axis_on()
    _shade(plot, values, scale)
    plot.set_aspect("equal", anchor="NW")
    caption = f"{_shorten_name(name, _NAME_LENGTH)}: {scale.low:.2g} – {scale.high:.2g}"
    plot.set_title(caption, loc="left", fontsize=9)
    for axis in (plot.xaxis, plot.yaxis):
        _number_axis(axis, view.units, _MOST_UNITS)


def _format_relation(view: Relations, values: "NDArray[np.float64]", *cell: int) -> str:
    value = values[cell]
    return f"{100 * value:.2f} %" if view.shares and np.isfinite(value) else format_weight(value)


def _beginning(text: str) -> str:
    words = " ".join(text.split())
    return "\n".join(textwrap.wrap(words, _TEXT_WIDTH, max_lines=_TEXT_LINES, placeholder=" …"))


def _shorten_name(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def _draw_source(panel: "Figure | SubFigure", view: SourceText) -> list[DrawnMap]:
    """Draw a strip of the mean marks of the source tokens, and a map of the mean widths of each head's windows."""
    marks, windows = view.marks, view.windows
    heights = [_map_height(1)] if marks else []
    heights += [_windows_height(windows)] if windows else []
    panels = panel.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if marks:
        heading = f"{marks.name} of the source tokens"
        if marks.text:
            heading += f", the mean over the steps of the {marks.text} ({len(marks.values)})"
        means = marks.mean[None]
        scale = scale_of_weights(means)
        plot = _draw_map(panels[0], means, scale, marks.name, heading, ("", "source token"))
        plot.set_yticks([])
    if not windows:
        return []
    widths = windows.mean_widths
    heading = f"{windows.name} of each head: the mean width, and some windows"
    name, axes = f"width of {windows.name}", ("layer", "head")
    plot = _draw_map(panels[-1], widths, scale_of_weights(widths), name, heading, axes)
    _draw_windows(plot, windows)
    return [DrawnMap(plot, windows.layers, windows.heads, _readout(widths))]


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
    lines: dict[str, Any] = {"linewidth": _WINDOW_LINE, "rasterized": True}
    plot.hlines(heights, begins, ends, COLOURS[1], alpha=0.5, **lines)
    plot.plot(middles, heights, "ks", markersize=_WINDOW_LINE, markeredgewidth=0, rasterized=True)


def _draw_plane(panel: "Figure | SubFigure", view: Plane) -> list[DrawnMap]:
    if not view.values.size:
        plot = panel.subplots()
        plot.set_title(about_plane(view), **_HEADING)
        plot.set_axis_off()
        return []
    axes = ("", "", *view.axes)[-2:]
    scale = scale_of(view.values)
    plot = _draw_map(panel, view.values, scale, view.name, about_plane(view), axes)
    rows, columns = map(_number_names, axes, view.values.shape)
    return [DrawnMap(plot, rows, columns, _readout(view.values))]


def about_plane(view: Plane) -> str:
    """Return the description of a plane."""
    size = " × ".join(f"{size} {axis}" for size, axis in zip(view.shape, view.axes, strict=True))
    if not view.values.size:
        return f"{view.name} is empty ({size})."
    if view.averaged:
        return f"{view.name} ({size}): the mean over {', '.join(view.averaged)}."
    return f"{view.name} ({size})." if size else f"{view.name}: {view.values[0, 0]:.3g}."


def _draw_map(
    panel: "Figure | SubFigure",
    values: "NDArray[np.float64]",
    scale: Scale,
    name: str,
    heading: str,
    axes: Sequence[str],
    shades: "Colormap | str" = _SHADES,
) -> "Axes":
    """Draw rows and columns of values as shades, with a colour bar; `axes` has the names of both axes."""
    plot = panel.subplots()
    image = _shade(plot, values, scale, shades)
    tall = panel.bbox.height / panel.dpi  # inches
    bar = panel.colorbar(image, ax=plot, pad=0.01, fraction=0.05, aspect=5 * tall)
    bar.set_label(name, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    plot.set_title(heading, **_HEADING)
    plot.set(ylabel=axes[0], xlabel=axes[1])
    _number_axis(plot.yaxis, range(len(values)), _MOST_ROWS)
    _number_axis(plot.xaxis, range(values.shape[1]), _MOST_COLUMNS)
    return plot


def _shade(
    plot: "Axes", values: "NDArray[np.float64]", scale: Scale, shades: "Colormap | str" = _SHADES
) -> "ScalarMappable":
    finite = np.ma.masked_invalid(values)
    plot.set_facecolor("white")  # for values that are not finite
    look: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "cmap": shades}
    return plot.imshow(finite, vmin=scale.low, vmax=scale.high, **look)


def _number_axis(axis: "Axis", indices: Sequence[int], limit: int) -> None:
    """Write the numbers of some units, steps or tokens, of which some may be missing, at their places."""
    numbers = _tick_numbers(indices[-1] + 1, limit)
    places = [place for place, index in enumerate(indices) if index + 1 in numbers]
    axis.set_ticks(places, [f"{indices[place] + 1}" for place in places])
    axis.set_tick_params(labelsize=8, length=2)


def _tick_numbers(count: int, limit: int) -> set[int]:
    """Return 1 and the multiples of a round number up to `count`, at most `limit` (2 or more) in total."""
    for step in _ROUND_NUMBERS:
        if count // step + (step > 1) <= limit:
            break
    return {1, *range(step, count + 1, step)}
