"""Draw views of evidence below each other, as a PNG for a page, a file and a paper.

Begin with `draw_views`. The same views give the same bytes, with the same release of matplotlib.
"""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longsumbench.views.evidence.array_views import (
    Plane,
    Relations,
    Selections,
    TokenMarks,
    TokenWindows,
    View,
    Weights,
)
from longsumbench.views.figures import COLOURS, render_picture

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


class Scale(NamedTuple):
    """The lowest and the highest value of a colour scale."""

    low: float
    high: float


def fit_scale(values: "NDArray[np.float64]") -> Scale:
    """Return the scale from the lowest to the highest finite value."""
    finite = values[np.isfinite(values)]
    return Scale(float(finite.min()), float(finite.max())) if finite.size else Scale(0.0, 0.0)


def fit_weight_scale(values: "NDArray[np.float64]") -> Scale:
    """Return the scale from 0 (or a lower value) to the highest value or twice the mean: equal weights look medium.

    If no value is above 1, the scale ends at 1 at most.
    """
    finite = values[np.isfinite(values)]
    low, high = fit_scale(values)
    middle = 2 * float(finite.mean()) if finite.size else 0.0
    return Scale(min(0.0, low), max(high, min(middle, 1.0) if high <= 1 else middle))


def draw_views(title: str, views: Sequence[View]) -> bytes:
    """Draw views, one below the other; return a PNG. Without views, the picture has a note."""
    heights = [_choose_height(view) for view in views] or [0.4]

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


def describe_view(view: View) -> str:
    """Return what a view shows, as its heading."""
    match view:
        case Weights():
            return f"{view.name} of the units at each step of the {view.text}"
        case Selections():
            shades = view.scores_name or view.name
            return f"{view.name}: the units for each {view.row} (bars), and {shades} (grey)"
        case Relations():
            num_heads = len(view.heads)
            heads = f": the mean over {num_heads} heads, and each head" if num_heads > 1 else ""
            return (
                f"{view.name} of units to attended units{heads}; each map with its scale, from – to"
            )
        case TokenMarks():
            steps = f", the mean over the steps of the {view.text} ({len(view.values)})"
            return f"{view.name} of the source tokens{steps if view.text else ''}"
        case TokenWindows():
            return f"{view.name} of each head: the mean width, and some windows"
        case Plane():
            return _describe_plane(view)


def _describe_plane(view: Plane) -> str:
    size = " × ".join(f"{size} {axis}" for size, axis in zip(view.shape, view.axes, strict=True))
    if not view.values.size:
        return f"{view.name} is empty ({size})."
    if view.averaged:
        return f"{view.name} ({size}): the mean over {', '.join(view.averaged)}."
    return f"{view.name} ({size})." if size else f"{view.name}: {view.values[0, 0]:.3g}."


def _choose_height(view: View) -> float:
    """Return the height of a view in inches."""
    match view:
        case Weights():
            return _choose_map_height(len(view.values)) + (0.75 if _shorten_tokens(view) else 0.0)
        case Selections():
            return _choose_map_height(len(view.counts) * (1.5 if view.texts else 1.0))
        case Relations():
            return 0.35 + 2.6 * _count_map_rows(view) * len(view.layers)
        case TokenMarks():
            return _choose_map_height(1) + (0.75 if _shorten_tokens(view) else 0.0)
        case TokenWindows():
            return _choose_map_height(3 * len(view.layers))
        case Plane():
            return _choose_map_height(len(view.values)) if view.values.size else 0.9


def _choose_map_height(num_rows: float) -> float:
    return 0.9 + min(6.0, max(0.7, 0.22 * num_rows))


def _draw_view(panel: "Figure | SubFigure", view: View) -> None:
    match view:
        case Weights():
            axes = ("unit", f"step of the {view.text}")
            scale = fit_weight_scale(view.values)
            _label_tokens(_draw_map(panel, view, view.values, scale, view.name, axes), view)
        case Selections():
            _draw_selections(panel, view)
        case Relations():
            _draw_relations(panel, view)
        case TokenMarks():
            means = view.mean[None]
            axes = ("", "source token")
            plot = _draw_map(panel, view, means, fit_weight_scale(means), view.name, axes)
            plot.set_yticks([])
            _label_tokens(plot, view)
        case TokenWindows():
            widths, name = view.mean_widths, f"width of {view.name}"
            axes = ("layer", "head")
            plot = _draw_map(panel, view, widths, fit_weight_scale(widths), name, axes)
            _draw_windows(plot, view)
        case Plane():
            _draw_plane(panel, view)


def _shorten_tokens(view: Weights | TokenMarks) -> list[str]:
    """Return the tokens as labels; none if they are too many."""
    tokens = view.tokens or ()
    if len(tokens) > _MOST_TOKENS:
        return []
    return [_shorten_name(token.strip(), _TOKEN_LENGTH) for token in tokens]


def _label_tokens(plot: "Axes", view: Weights | TokenMarks) -> None:
    if names := _shorten_tokens(view):
        plot.set_xticks(range(len(names)), names, rotation=90, fontsize=_SMALL)


def _draw_selections(panel: "Figure | SubFigure", view: Selections) -> None:
    """Draw the scores (or counts) in grey, and a bar in the segment's colour on each selected unit."""
    from matplotlib.colors import LinearSegmentedColormap

    name, values = view.name, view.counts.astype(np.float64)
    if view.scores is not None and view.scores_name is not None:
        name, values = view.scores_name, view.scores
    greys = LinearSegmentedColormap.from_list("greys", _GREYS)
    plot = _draw_map(panel, view, values, fit_scale(values), name, (view.row, "unit"), greys)
    for segment, counts in enumerate(view.counts):
        bars = [(unit - 0.33, 0.66) for unit in np.flatnonzero(counts).tolist()]
        colour = COLOURS[segment % len(COLOURS)]
        plot.broken_barh(bars, (segment - 0.32, 0.64), color=colour, linewidth=0)
    if view.texts and len(view.counts) <= _MOST_ROWS:
        names = [f"{_shorten_text(text)}  {row}" for row, text in enumerate(view.texts, 1)]
        plot.set_yticks(range(len(names)), names, fontsize=_SMALL)


def _shorten_text(text: str) -> str:
    words = " ".join(text.split())
    return "\n".join(textwrap.wrap(words, _TEXT_WIDTH, max_lines=_TEXT_LINES, placeholder=" …"))


def _shorten_name(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"


def _count_map_rows(view: Relations) -> int:
    """Return the number of rows of maps for a layer."""
    num_maps = 1 + len(view.heads) if len(view.heads) > 1 else 1
    return -(-num_maps // _MAPS_IN_A_ROW)


def _draw_relations(panel: "Figure | SubFigure", view: Relations) -> None:
    """Draw maps for each layer: units × attended units, of the mean over heads and of each head."""
    panel.suptitle(describe_view(view), x=0.008, ha="left", fontsize=10)
    num_rows = _count_map_rows(view) * len(view.layers)
    plots = panel.subplots(num_rows, _MAPS_IN_A_ROW, squeeze=False)
    for plot in plots.flat:
        plot.set_axis_off()
    plots_of_layers = plots.reshape(len(view.layers), -1)
    for number, layer in enumerate(view.layers):
        first_plot, *head_plots = plots_of_layers[number]
        _draw_relation(first_plot, view, layer, view.means[number], fit_weight_scale(view.means))
        if len(view.heads) > 1:
            for head, values, plot in zip(
                view.heads, view.values[number], head_plots, strict=False
            ):
                _draw_relation(plot, view, head, values, fit_weight_scale(values))


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
    plot.hlines(heights, begins, ends, COLOURS[1], alpha=0.5, linewidth=_WINDOW_LINE)
    plot.plot(middles, heights, "ks", markersize=_WINDOW_LINE, markeredgewidth=0)


def _draw_plane(panel: "Figure | SubFigure", view: Plane) -> None:
    if view.values.size:
        axes = ("", "", *view.axes)[-2:]
        _draw_map(panel, view, view.values, fit_scale(view.values), view.name, axes)
    else:
        plot = panel.subplots()
        plot.set_title(describe_view(view), **_HEADING)
        plot.set_axis_off()


def _draw_map(
    panel: "Figure | SubFigure",
    view: View,
    values: "NDArray[np.float64]",
    scale: Scale,
    name: str,
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
    plot.set_title(describe_view(view), **_HEADING)
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
    """Write the numbers of some units, steps or tokens, of which some may be missing, at their positions."""
    numbers = _choose_tick_numbers(indices[-1] + 1, limit)
    positions = [position for position, index in enumerate(indices) if index + 1 in numbers]
    axis.set_ticks(positions, [f"{indices[position] + 1}" for position in positions])
    axis.set_tick_params(labelsize=8, length=2)


def _choose_tick_numbers(count: int, limit: int) -> set[int]:
    """Return 1 and the multiples of a round number up to `count`, at most `limit` (2 or more) in total."""
    for step in _ROUND_NUMBERS:
        if count // step + (step > 1) <= limit:
            break
    return {1, *range(step, count + 1, step)}
