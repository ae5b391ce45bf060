"""Draw views of evidence as a PNG, one below the other.

The same views give the same bytes, with the same release of matplotlib.
"""

import io
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from longsumbench.report.evidence.views import (
    Plane,
    Relations,
    Scale,
    Selections,
    SourceText,
    TokenMarks,
    TokenWindows,
    View,
    Weights,
    scale_of,
    scale_of_weights,
    step_ranges,
)
from longsumbench.report.palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure, SubFigure
    from numpy.typing import NDArray

_WIDTH, _RESOLUTION = 12.0, 150  # inches, dots per inch
_SHADES = "Blues"  # a darker shade is a higher value
_GREYS = ("#FAFAFA", "#8C8C8C")  # shades behind coloured bars
_LIGHT = COLOURS[3:5]  # colours with black text
_MOST_TOKENS = 90  # labels under a map
_MOST_ROWS, _MOST_COLUMNS = 32, 20  # numbers at an axis
_TOKEN_LENGTH, _TEXT_WIDTH, _TITLE_WIDTH = 12, 46, 105  # characters
_TEXT_LINES = 2  # of a segment's text
_MOST_WRITTEN = 1200  # source tokens; longer sources are drawn without text
_LETTERS, _LINE, _MARGIN = 8.0, 0.215, 0.12  # source text: points, inches per line, inches of the left margin
_TEXT_SHARE = 0.92  # of the width, with that margin
_GAP = 1.5  # points between a token's letters and the edge of its box
_MOST_LETTERS = 60  # of a source token
_DEEP = 0.6  # darker shades have white text
_CELL = 0.8  # inches of a head's windows
_LOOK = COLOURS[2]  # of windows
_MOST_BARS = 150  # of a head
_FEWEST_HEADS = 4  # columns for heads
_HEADS_IN_A_ROW = 4  # if there are at most 8
_NAME_LENGTH = 24  # characters
_HEADING: dict[str, Any] = {"loc": "left", "fontsize": 10, "parse_math": False}


def draw_views(title: str, drawn: Sequence[View]) -> bytes:
    """Draw views, one below the other; return a PNG. Without views, the picture has a note."""
    heights = [_height(view) for view in drawn] or [0.4]
    with _figure(sum(heights) + 0.5) as (figure, image):
        figure.suptitle(
            textwrap.shorten(title, _TITLE_WIDTH, placeholder=" …"),
            **{"x": 0.008, "ha": "left", "fontsize": 12, "fontweight": "bold", "parse_math": False},
        )
        panels = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        for panel, view in zip(panels, drawn, strict=False):
            _draw_view(panel, view)
        if not drawn:
            panels[0].text(0.008, 0.5, "There is no array in the evidence.", fontsize=10)
    return image.getvalue()


def draw_plane(view: Plane) -> bytes:
    """Draw a single plane; return a PNG."""
    with _figure(_height(view)) as (figure, image):
        _draw_plane(figure, view)
    return image.getvalue()


@contextmanager
def _figure(height: float) -> "Iterator[tuple[Figure, io.BytesIO]]":
    """Yield a figure, and the buffer to which its PNG is written at the end."""
    import matplotlib.style
    from matplotlib.figure import Figure

    image = io.BytesIO()
    with matplotlib.style.context("default"), _any_script():  # ignores the user's settings
        figure = Figure((_WIDTH, height), dpi=_RESOLUTION, layout="constrained")
        yield figure, image
        figure.savefig(image, format="png", metadata={"Software": None})


@contextmanager
def _any_script() -> Iterator[None]:
    """Suppress warnings about missing glyphs, which are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield


def _height(view: View) -> float:
    match view:
        case Weights():
            names = 0.75 if _names_tokens(view) else 0.2
            return 0.9 + names + min(6.0, max(0.9, 0.22 * len(view.values)))
        case Selections():
            return 0.9 + min(14.0, max(0.7, (0.32 if view.texts else 0.2) * len(view.taken)))
        case Relations():
            return 0.35 + _height_of_layer(view) * len(view.layers)
        case SourceText():
            marks = _height_of_marks(view) if view.marks else 0.0
            return marks + (0.9 + _CELL * min(16, len(view.windows.layers)) if view.windows else 0.0)
        case Plane():
            return 0.9 + (min(5.0, max(0.5, 0.2 * len(view.values))) if view.values.size else 0.0)


def _draw_view(panel: "SubFigure", view: View) -> None:
    match view:
        case Weights():
            _draw_weights(panel, view)
        case Selections():
            _draw_selections(panel, view)
        case Relations():
            _draw_relations(panel, view)
        case SourceText():
            _draw_source(panel, view)
        case Plane():
            _draw_plane(panel, view)


def _draw_weights(panel: "SubFigure", view: Weights) -> None:
    """Draw the map, and below it a strip with the colours of the strongest units."""
    tall = len(view.values)
    plot, strip = panel.subplots(2, 1, sharex=True, height_ratios=(max(4.0, tall), 1 if tall > 10 else 0.6))
    _heat(panel, plot, view.values, view.scale, view.name, [plot, strip])
    plot.set_ylabel("unit")
    plot.set_title(f"{view.name} of the units at each step of the {view.text}", **_HEADING)
    _number(plot.yaxis, tall, _MOST_ROWS)
    plot.tick_params(axis="x", labelbottom=False)
    _draw_strip(strip, view)
    if _names_tokens(view):
        assert view.tokens is not None
        names = [token.strip() for token in view.tokens]
        names = [name if len(name) <= _TOKEN_LENGTH else f"{name[: _TOKEN_LENGTH - 1]}…" for name in names]
        strip.set_xticks(range(len(names)), names, rotation=90, fontsize=7.5)
        for label in strip.get_xticklabels():
            label.set_parse_math(False)
    else:
        _number(strip.xaxis, view.values.shape[1], _MOST_COLUMNS)
    strip.set_xlabel(f"step of the {view.text}")


def _names_tokens(view: Weights) -> bool:
    return view.tokens is not None and len(view.tokens) <= _MOST_TOKENS


def _draw_strip(strip: "Axes", view: Weights) -> None:
    from matplotlib.colors import to_rgb

    strongest = view.strongest
    strip.imshow([[to_rgb(_colour(unit)) for unit in strongest]], aspect="auto", interpolation="nearest")
    strip.set_yticks([0], ["strongest"])
    room = _WIDTH * 0.85 / len(strongest)  # inches of a step
    for run in step_ranges(strongest):
        first, last = run.steps[0], run.steps[-1]
        if room * (last - first + 1) >= 0.09 * len(f"{run.unit + 1}"):
            ink = "black" if _colour(run.unit) in _LIGHT else "white"
            strip.text((first + last) / 2, 0, f"{run.unit + 1}", color=ink, fontsize=7.5, ha="center", va="center")
    strip.tick_params(length=0)


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def _draw_selections(panel: "SubFigure", view: Selections) -> None:
    """Draw the scores in grey, and a bar in the segment's colour on each selected unit."""
    from matplotlib.colors import LinearSegmentedColormap

    plot = panel.subplots()
    num_segments, num_units = view.taken.shape
    if view.scores is not None and view.scores_name is not None:
        greys = LinearSegmentedColormap.from_list("greys", _GREYS)
        _heat(panel, plot, view.scores, scale_of(view.scores), view.scores_name, [plot], greys)
    for segment in range(num_segments):
        bars = [(unit - 0.33, 0.66) for unit in np.flatnonzero(view.taken[segment]).tolist()]
        plot.broken_barh(bars, (segment - 0.32, 0.64), color=_colour(segment), linewidth=0)
    heading = f"{view.name}: the units that were selected for each segment (bars)"
    if view.scores_name:
        heading += f", and {view.scores_name} (grey)"
    plot.set_title(heading, **_HEADING)
    plot.set_xlim(-0.5, num_units - 0.5)
    plot.set_ylim(num_segments - 0.5, -0.5)
    plot.set_xlabel("unit")
    plot.set_ylabel("segment")
    _number(plot.xaxis, num_units, _MOST_COLUMNS)
    _number(plot.yaxis, num_segments, _MOST_ROWS)
    if view.texts and num_segments <= _MOST_ROWS:
        names = [f"{_beginning(text)}  {segment}" for segment, text in enumerate(view.texts, 1)]
        plot.set_yticks(range(num_segments), names, fontsize=7.5)
        for label in plot.get_yticklabels():
            label.set_parse_math(False)


def _height_of_layer(view: Relations) -> float:
    rows, _ = _grid(len(view.heads))
    return 0.7 + max(1.95 * rows, min(3.4, max(1.9, 0.25 * len(view.units))))


def _grid(num_heads: int) -> tuple[int, int]:
    """Return the number of rows and columns of the maps of heads; a single head has no map."""
    columns = max(_HEADS_IN_A_ROW, -(-num_heads // 2))
    return (-(-num_heads // columns), columns) if num_heads > 1 else (0, columns)


def _draw_relations(panel: "SubFigure", view: Relations) -> None:
    """Draw a row per layer: maps (units × attended units) of the mean over heads and of each head."""
    num_heads = len(view.heads)
    heads = f": the mean over {num_heads} heads, and each head with its scale, from – to" if num_heads > 1 else ""
    heading = f"{view.name} of units to units{heads}"
    panel.suptitle(heading, **{"x": 0.008, "ha": "left", "fontsize": 10, "parse_math": False})
    scale = scale_of_weights(view.means)
    layers = panel.subfigures(len(view.layers), 1, squeeze=False)[:, 0]
    for layer, (row, name) in enumerate(zip(layers, view.layers, strict=True)):
        left, right = row.subfigures(1, 2, width_ratios=(1, 1.8))
        plot = left.subplots()
        image = _draw_square(plot, view.means[layer], scale, _short(name))
        plot.set(xlabel="attended unit", ylabel="unit")
        for axis in (plot.xaxis, plot.yaxis):
            _number_some(axis, view.units)
        _draw_scale(left, image, view.name, [plot], plot.inset_axes((1.04, 0, 0.05, 1)))
        if view.heads[1:]:
            _draw_heads(right, view, layer)


def _draw_heads(panel: "SubFigure", view: Relations, layer: int) -> None:
    plots = panel.subplots(*_grid(len(view.heads)), squeeze=False).flat
    for plot, name, values in zip(plots, view.heads, view.values[layer], strict=False):
        scale = scale_of_weights(values)
        _draw_square(plot, values, scale, f"{_short(name)}: {scale.low:.2g} – {scale.high:.2g}")
        plot.set(xticks=[], yticks=[])
    for plot in plots[len(view.heads) :]:
        plot.set_axis_off()


def _draw_square(plot: "Axes", values: "NDArray[np.float64]", scale: Scale, name: str) -> "ScalarMappable":
    image = _shade(plot, values, scale)
    plot.set_aspect("equal", anchor="NW")
    plot.set_title(name, **{**_HEADING, "fontsize": 9})
    return image


def _number_some(axis: "Axis", units: Sequence[int]) -> None:
    """Write the numbers of units, some of which may be missing."""
    numbers = {number - 1 for number in tick_numbers(units[-1] + 1, _MOST_COLUMNS)}
    places = [place for place, unit in enumerate(units) if unit in numbers]
    axis.set_ticks(places, [f"{units[place] + 1}" for place in places])
    axis.set_tick_params(labelsize=8, length=2)


def _beginning(text: str) -> str:
    lines = textwrap.wrap(" ".join(text.split()), _TEXT_WIDTH, max_lines=_TEXT_LINES, placeholder=" …")
    return "\n".join(lines)


def _draw_source(panel: "SubFigure", view: SourceText) -> None:
    marks, windows = panel, panel
    if view.marks and view.windows:
        above = _height_of_marks(view)
        marks, windows = panel.subfigures(2, 1, height_ratios=(above, _height(view) - above), squeeze=False)[:, 0]
    if view.marks and _is_written(view):
        _draw_marked_text(marks, view, view.marks)
    elif view.marks:
        _draw_marks(marks, view.marks)
    if view.windows:
        _draw_windows(windows, view.windows)


def _is_written(view: SourceText) -> bool:
    return view.tokens is not None and len(view.tokens) <= _MOST_WRITTEN


def _height_of_marks(view: SourceText) -> float:
    return 0.75 + _LINE * max(3, len(_lines(view))) if _is_written(view) else 1.3


def _about_marks(marks: TokenMarks) -> str:
    steps = f", the mean over the steps of the {marks.text} ({len(marks.values)})" if marks.text else ""
    return f"{marks.name} of the source tokens{steps}"


def _lines(view: SourceText) -> list[list[tuple[int, str, float, float]]]:
    """Return the lines of the source: for each token its index, its letters, its left end and its width in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    assert view.tokens is not None
    font, measure, room = FontProperties(size=_LETTERS), TextToPath(), 72 * (_WIDTH * _TEXT_SHARE - _MARGIN)
    lines: list[list[tuple[int, str, float, float]]] = [[]]
    left, before = 0.0, ""
    for place, token in enumerate(view.tokens):
        letters = "".join(letter for letter in token.strip() if letter.isprintable())[:_MOST_LETTERS] or "·"
        with _any_script():
            width, _, _ = measure.get_text_width_height_descent(letters, font, ismath=False)
        left += _LETTERS / 3 if token[:1].isspace() or before[-1:].isspace() else 0.0
        if lines[-1] and left + width > room:
            lines.append([])
        left = left if lines[-1] else 0.0
        lines[-1].append((place, letters, left, width))
        left, before = left + width + 2 * _GAP, token
    return lines


def _draw_marked_text(panel: "Figure | SubFigure", view: SourceText, marks: TokenMarks) -> None:
    """Write the source, each token on a box with the shade of its mean."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    lines, means = _lines(view), marks.mean
    tall = _height_of_marks(view)
    text, top, bar = _LINE * len(lines) / tall, 1 - 0.4 / tall, min(2.5, _LINE * max(3, len(lines))) / tall
    plot = panel.add_axes((_MARGIN / _WIDTH, top - text, _TEXT_SHARE - _MARGIN / _WIDTH, text))
    plot.set(xlim=(0, 72 * (_WIDTH * _TEXT_SHARE - _MARGIN)), ylim=(len(lines), 0))
    plot.set_axis_off()
    plot.set_title(_about_marks(marks), **_HEADING)
    scale = scale_of_weights(means)
    shades, colours = scale.shades(means), colormaps[_SHADES]
    for row, (place, letters, left, width) in ((row, one) for row, line in enumerate(lines) for one in line):
        shade = float(shades[place])
        box = Rectangle((left, row + 0.06), width + 2 * _GAP, 0.88, color=colours(shade), linewidth=0)
        plot.add_patch(box)
        ink = "white" if shade > _DEEP else "black"
        plot.text(left + _GAP, row + 0.7, letters, size=_LETTERS, color=ink, parse_math=False)
    within = panel.add_axes((_TEXT_SHARE + 0.025, top - bar, 0.011, bar))
    _draw_scale(panel, ScalarMappable(Normalize(*scale), _SHADES), marks.name, [plot], within)


def _draw_marks(panel: "Figure | SubFigure", marks: TokenMarks) -> None:
    plot, means = panel.subplots(), marks.mean[None]
    _heat(panel, plot, means, scale_of_weights(means), marks.name, [plot])
    plot.set_title(_about_marks(marks), **_HEADING)
    plot.set_yticks([])
    plot.set_xlabel("source token")
    _number(plot.xaxis, means.shape[1], _MOST_COLUMNS)


def _draw_windows(panel: "Figure | SubFigure", windows: TokenWindows) -> None:
    """Draw a cell per head: the windows of all source tokens, the first on top, and the shade of their mean width."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    plot, means = panel.subplots(), windows.mean_widths
    num_layers, num_heads = means.shape
    scale = scale_of_weights(means)
    shades, colours = scale.shades(means), colormaps[_SHADES]
    for layer, head in np.ndindex(num_layers, num_heads):
        _draw_bars(plot, windows, layer, head)
        shade, mean = shades[layer, head], means[layer, head]
        plot.broken_barh([(head - 0.46, 0.92)], (layer + 0.27, 0.2), color=[colours(shade)], linewidth=0)
        text = f"{mean:.3g}" if np.isfinite(mean) else "no number"
        ink = "white" if shade > _DEEP else "black"
        plot.text(head, layer + 0.37, text, size=7.5, color=ink, ha="center", va="center_baseline")
    plot.set(xlim=(-0.5, max(num_heads, _FEWEST_HEADS) - 0.5), ylim=(num_layers - 0.5, -0.5))
    plot.spines[:].set_visible(False)
    plot.set_title(f"{windows.name}: the window of each source token, the first on top; the mean width", **_HEADING)
    for axis, names in ((plot.xaxis, windows.heads), (plot.yaxis, windows.layers)):
        axis.set_ticks(range(len(names)), [_short(name) for name in names])
        axis.set_tick_params(labelsize=8, length=0)
        for label in axis.get_ticklabels():
            label.set_parse_math(False)
    _draw_scale(panel, ScalarMappable(Normalize(*scale), _SHADES), f"mean width of {windows.name}", [plot])


def _draw_bars(plot: "Axes", windows: TokenWindows, layer: int, head: int) -> None:
    """Draw the windows of a head in its cell: a row per source token, with the source from left to right."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Rectangle

    plot.add_patch(Rectangle((head - 0.46, layer - 0.46), 0.92, 0.7, facecolor="#F6F7F9", linewidth=0))
    places = windows.places(_MOST_BARS)
    tall = 0.7 / len(places)
    begins, ends = (edge[layer, head, places] for edge in windows.edges())
    middles = windows.centers()[layer, head, places]
    tops = layer - 0.46 + tall * np.arange(len(places))
    for lefts, rights, opacity in ((begins, ends, 0.4), (middles - 0.008, middles + 0.008, 1.0)):
        left, right = (head - 0.46 + 0.92 * np.clip(edge, 0, 1) for edge in (lefts, rights))
        corners = np.array([[left, tops], [right, tops], [right, tops + tall], [left, tops + tall]])
        bars = corners.transpose(2, 0, 1)[np.isfinite(left)]
        plot.add_collection(PolyCollection(bars.tolist(), facecolor=_LOOK, alpha=opacity, linewidth=0))


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def _draw_plane(panel: "Figure | SubFigure", view: Plane) -> None:
    plot = panel.subplots()
    plot.set_title(about_plane(view), **_HEADING)
    if not view.values.size:
        plot.set_axis_off()
        return
    _heat(panel, plot, view.values, scale_of(view.values), view.name, [plot])
    *_, rows, columns = ("", "", *view.axes)
    plot.set_ylabel(rows)
    plot.set_xlabel(columns)
    _number(plot.yaxis, view.values.shape[0], _MOST_ROWS)
    _number(plot.xaxis, view.values.shape[1], _MOST_COLUMNS)


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
    _draw_scale(panel, _shade(plot, values, scale, shades), name, axes)


def _shade(
    plot: "Axes", values: "NDArray[np.float64]", scale: Scale, shades: "Colormap | str" = _SHADES
) -> "ScalarMappable":
    finite = np.ma.masked_invalid(values)
    plot.set_facecolor("white")  # for values that are not finite
    return plot.imshow(finite, aspect="auto", cmap=shades, vmin=scale.low, vmax=scale.high, interpolation="nearest")


def _draw_scale(
    panel: "Figure | SubFigure",
    shades: "ScalarMappable",
    name: str,
    axes: "Sequence[Axes]",
    within: "Axes | None" = None,
) -> None:
    """Draw a colour bar at the right of `axes`, or within other axes."""
    tall = panel.bbox.height / _RESOLUTION  # inches
    room: dict[str, Any] = {"ax": list(axes), "pad": 0.01, "fraction": 0.05, "aspect": 5 * tall}
    bar = panel.colorbar(shades, **({"cax": within} if within else room))
    bar.set_label(name, fontsize=9, parse_math=False)
    bar.ax.tick_params(labelsize=8)


def _number(axis: "Axis", count: int, most: int) -> None:
    numbers = tick_numbers(count, most)
    axis.set_ticks([number - 1 for number in numbers], [f"{number}" for number in numbers])
    axis.set_tick_params(labelsize=8, length=2)


def tick_numbers(count: int, most: int) -> list[int]:
    """Return 1 and the multiples of a round number up to `count`, at most `most` (2 or more) in total."""
    round_numbers = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    step = next(number for number in round_numbers if count // number + (number > 1) <= most)
    return sorted({1, *range(step, count + 1, step)})
