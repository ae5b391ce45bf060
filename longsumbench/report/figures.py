"""Render pictures as PNG and SVG; the same drawing gives the same bytes with the same release of matplotlib."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.files import write_atomically
from longsumbench.metrics.aggregate import Estimate
from longsumbench.report.palette import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RESOLUTION = 110  # dots per inch of the PNG
_GRID = "#E4E4E4"


def render_picture(size: tuple[float, float], draw: "Callable[[Figure], None]") -> dict[str, bytes]:
    """Draw a picture of a `size` in inches; return "png" and "svg" → bytes."""
    import matplotlib as mpl
    import matplotlib.style
    from matplotlib.figure import Figure

    found = {}
    with matplotlib.style.context("default"), mpl.rc_context({"svg.hashsalt": "longsumbench"}):
        for kind, known in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            figure, image = Figure(size, dpi=_RESOLUTION), io.BytesIO()  # a new one: drawing changes ids
            draw(figure)
            figure.savefig(image, format=kind, metadata=known)
            found[kind] = image.getvalue()
    return found


def write_pictures(folder: Path, contents: dict[str, str | bytes]) -> list[Path]:
    """Write files (name → content) atomically; return their paths."""
    paths = [folder / name for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_atomically(path, content)
    return paths


def plain_axes(plot: "Axes", grid: str = "y") -> None:
    """Remove a plot's frame except the lower line, and add a faint grid."""
    plot.grid(axis=grid, color=_GRID, linewidth=0.8)  # type: ignore[arg-type]
    plot.set_axisbelow(True)
    plot.tick_params(length=0, labelsize=9.5)
    plot.spines[["top", "right", "left"]].set_visible(False)


def series_style(index: int) -> dict[str, Any]:
    """Return the colour, line and marker of a series."""
    cycle, colour = divmod(index, len(COLOURS))
    drawn = {"color": COLOURS[colour], "linestyle": ("-", "-.")[cycle % 2], "marker": MARKERS[index % len(MARKERS)]}
    return {**drawn, "markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.7}


def whisker_lengths(numbers: Sequence[Estimate]) -> list[list[float]]:
    """Return the lengths of whiskers downwards, and upwards."""
    below = [max(0.0, number.mean - number.low) for number in numbers]
    return [below, [max(0.0, number.high - number.mean) for number in numbers]]


def spread_labels(heights: Sequence[float], sizes: Sequence[float], top: float = 103.0) -> list[float]:
    """Move labels up and down so that they do not overlap, keeping their order; ties keep the given order.

    Args:
        heights: preferred positions of their middles.
        sizes: heights of the labels.
        top: upper limit, exceeded only if there is no room below.
    """
    order = sorted(range(len(heights)), key=lambda index: (-heights[index], index))
    placed = list(heights)
    ceiling = top
    for index in order:  # downwards
        placed[index] = min(heights[index], ceiling - sizes[index] / 2)
        ceiling = placed[index] - sizes[index] / 2
    floor = 0.0
    for index in reversed(order):  # upwards, from the axis
        placed[index] = max(placed[index], floor + sizes[index] / 2)
        floor = placed[index] + sizes[index] / 2
    return placed
