"""Render pictures as PNG and SVG; the same drawing gives the same bytes with the same release of matplotlib.

Begin with `render_picture`. `series` draws numbers by position, `intervals` a row for each number.
"""

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from longsumbench.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The hues of Okabe and Ito in their order, without yellow, which is faint on white. They are shaded so that all but
# black have a contrast of 3 or more with white and with dark pages, and differ with any kind of colour blindness.
COLOURS = ("#0069A4", "#EA6700", "#008662", "#C2739F", "#4A9BC8", "#855C00", "#000000")
GREY = "#767676"
_GRID = "#E4E4E4"
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")

# A system's place decides its colour and its marker; new systems are added at the end
_SYSTEMS = (
    "seal",
    "pagesum",
    "hierarchical_transformer",
    "ca",
    "ea",
    "tdmca",
    "trunc",
    "etads",
    "lead",
    "random",
    "lexrank",
    "oracle",
    "flat_transformer",
    "ranker",
    "seq2seq",
    "prompt",
    "highlights",
    "person",
    "command",
    "function",
)

# Text of 11 points is 7.6 pixels high in a picture of this width (in inches) that is shown 400 pixels wide
WIDTH, TEXT = 8.0, 11
_TITLE_CHARACTERS, _NOTE_CHARACTERS = 8.2, 14.0  # in an inch
_RESOLUTION = 150  # dots per inch of the PNG

_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


def system_styles(models: Sequence[str]) -> list[dict[str, Any]]:
    """Return the colour, line and marker of each line of a picture, as keywords of `Axes.plot`.

    A model's first line looks the same in every picture. Its other lines have a colour that no model has, if one is
    left. The oracle is grey.
    """
    indices = []
    for model in models:
        indices.append(_SYSTEMS.index(model) if model in _SYSTEMS else crc32(model.encode()))
    usual = {COLOURS[index % len(COLOURS)] for index in indices}
    free = [colour for colour in COLOURS if colour not in usual]
    styles = []
    for number, model in enumerate(models):
        index, same = indices[number], models[:number].count(model)
        colour = free.pop(0) if same and free else COLOURS[index % len(COLOURS)]
        style = {
            "color": GREY if model == "oracle" else colour,
            "marker": _MARKERS[(index + same) % len(_MARKERS)],
            "markersize": 6.5,
            "markeredgecolor": "white",
            "markeredgewidth": 0.7,
        }
        styles.append(style)
    return styles


def render_picture(
    size: tuple[float, float],
    draw: "Callable[[Figure], None]",
    kinds: Sequence[str] = ("png", "svg"),
) -> dict[str, bytes]:
    """Draw a picture of a `size` in inches, as `draw_figure`; return kind ("png", "svg") → bytes."""
    images = {}
    with _drawing():
        for kind in kinds:
            figure = draw_figure(size, draw)  # a new one for each kind: drawing changes ids
            images[kind] = _save_figure(figure, kind)
    return images


def draw_figure(size: tuple[float, float], draw: "Callable[[Figure], None]") -> "Figure":
    """Draw a figure of a `size` in inches, on white also on dark pages; a notebook shows it."""
    from matplotlib.figure import Figure

    # Notebooks show a plain Figure only after pyplot was imported
    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            return _save_figure(self, "png")

    with _drawing():
        figure = ShownFigure(size, dpi=_RESOLUTION)
        draw(figure)
    return figure


@contextmanager
def _drawing() -> Iterator[None]:
    """Ignore the user's settings of matplotlib; names may contain dollar signs, and missing glyphs are boxes."""
    import matplotlib as mpl
    import matplotlib.style

    settings: dict[Any, Any] = {"svg.hashsalt": "longsumbench", "text.parse_math": False}
    with matplotlib.style.context("default"), mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield


def _save_figure(figure: "Figure", kind: str) -> bytes:
    image = io.BytesIO()
    figure.savefig(image, format=kind, metadata=_METADATA[kind])
    return image.getvalue()


def write_pictures(folder: Path, contents: Mapping[str, str | bytes]) -> list[Path]:
    """Write files (name → content) atomically; return their paths."""
    paths = []
    for name, content in contents.items():
        paths.append(folder / name)
        write_atomically(paths[-1], content)
    return paths


def plain_axes(plot: "Axes", grid: str = "y") -> None:
    """Remove a plot's frame except the lower line, and add a faint grid."""
    plot.grid(axis=grid, color=_GRID, linewidth=0.8)  # type: ignore[arg-type]
    plot.set_axisbelow(True)
    plot.tick_params(length=0, labelsize=TEXT - 1)
    plot.spines[["top", "right", "left"]].set_visible(False)


def add_title_and_notes(figure: "Figure", title: str, notes: str) -> None:
    """Write a title above the plots and notes below them, as wide as the figure, with a constrained layout."""
    width = figure.get_figwidth()
    heading = textwrap.fill(title, int(_TITLE_CHARACTERS * width))
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)
    figure.suptitle(heading, x=0.012, ha="left", fontsize=14, fontweight="bold")
    lines = [textwrap.fill(note, int(_NOTE_CHARACTERS * width)) for note in notes.splitlines()]
    figure.supxlabel("\n".join(lines), x=0.012, ha="left", fontsize=9, color=GREY)
