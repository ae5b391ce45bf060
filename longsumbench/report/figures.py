"""Render pictures as PNG and SVG; the same drawing gives the same bytes with the same release of matplotlib."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.files import write_atomically

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
