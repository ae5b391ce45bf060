"""Render pictures as PNG and SVG; the same drawing gives the same bytes with the same release of matplotlib."""

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from longsumbench.files import write_atomically
from longsumbench.metrics.aggregate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The hues of Okabe and Ito in their order, without yellow, which is faint on white. They are shaded so that all but
# black have a contrast of 3 or more with white and with dark pages, and differ with any kind of colour blindness.
COLOURS = ("#0069A4", "#EA6700", "#008662", "#C2739F", "#4A9BC8", "#855C00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
GREY = "#767676"
_LINE_STYLES = ("-", "--", "-.", ":")

# A system's place decides its colour and its marker; new systems are added at the end
_SYSTEMS = (
    *("seal", "pagesum", "hierarchical_transformer", "ca", "ea", "tdmca", "trunc"),
    *(
        "etads",
        "lead",
        "random",
        "lexrank",
        "oracle",
        "flat_transformer",
        "ranker",
        "seq2seq",
        "prompt",
    ),
)


def system_styles(models: Sequence[str]) -> list[dict[str, Any]]:
    """Return the colour, line and marker of each line of a picture, as keywords of `Axes.plot`.

    A model's first line looks the same in every picture. Its other lines have the same colour. The oracle is grey.
    """
    styles = []
    for number, model in enumerate(models):
        place = _SYSTEMS.index(model) if model in _SYSTEMS else crc32(model.encode())
        same = models[:number].count(model)
        colour = GREY if model == "oracle" else COLOURS[place % len(COLOURS)]
        style = {"color": colour, "marker": MARKERS[(place + same) % len(MARKERS)]}
        edge = {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.7}
        styles.append({**style, "linestyle": _LINE_STYLES[same % len(_LINE_STYLES)], **edge})
    return styles


# Text of 11 points is 7.6 pixels high in a picture of this width (in inches) that is shown 400 pixels wide
WIDTH, TEXT = 8.0, 11
_TITLE_WIDTH, _NOTE_WIDTH, _LABEL_WIDTH = 66, 112, 15  # characters
_BAND = 0.13  # opacity
_NEAR_SHARE = 0.75  # share of the lines' height; levels that are farther away have only a label
_LEAST_HEIGHT = 1e-3  # in the unit of the vertical axis
_RESOLUTION = 150  # dots per inch of the PNG
_GRID = "#E4E4E4"

_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


@contextmanager
def _drawing() -> Iterator[None]:
    """Ignore the user's settings of matplotlib; names may contain dollar signs, and missing glyphs are boxes."""
    import matplotlib as mpl
    import matplotlib.style

    settings: dict[Any, Any] = {"svg.hashsalt": "longsumbench", "text.parse_math": False}
    with matplotlib.style.context("default"), mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield


def _save_figure(figure: "Figure", kind: str, transparent: bool = False) -> bytes:
    figure.savefig(
        image := io.BytesIO(), format=kind, metadata=_METADATA[kind], transparent=transparent
    )
    return image.getvalue()


def draw_figure(size: tuple[float, float], draw: "Callable[[Figure], None]") -> "Figure":
    """Draw a figure of a `size` in inches, on white also on dark pages; a notebook shows it."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(
            self,
        ) -> bytes:  # notebooks show a plain Figure only after pyplot was imported
            return _save_figure(self, "png")

    with _drawing():
        draw(figure := ShownFigure(size, dpi=_RESOLUTION))
    return figure


def render_picture(
    size: tuple[float, float],
    draw: "Callable[[Figure], None]",
    kinds: Sequence[str] = ("png", "svg"),
    transparent: bool = False,
) -> dict[str, bytes]:
    """Draw a picture of a `size` in inches, as `draw_figure`; return kind ("png", "svg") → bytes."""
    with _drawing():  # a figure for each kind: drawing changes ids
        return {kind: _save_figure(draw_figure(size, draw), kind, transparent) for kind in kinds}


def transparent_svg(size: tuple[float, float], draw: "Callable[[Figure], None]") -> bytes:
    """Draw an SVG without background for an HTML page, of a `size` in inches and with a constrained layout."""

    def draw_constrained(figure: "Figure") -> None:
        figure.set_layout_engine("constrained")
        draw(figure)

    svg = render_picture(size, draw_constrained, ("svg",), transparent=True)["svg"]
    return re.sub(
        rb"<!--.*?-->\s*", b"", svg, flags=re.DOTALL
    )  # copies of texts, with signs that XML does not allow


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
    plot.tick_params(length=0, labelsize=TEXT - 1)
    plot.spines[["top", "right", "left"]].set_visible(False)


def add_title_and_notes(figure: "Figure", title: str, notes: str) -> None:
    """Write a title above the plots and notes below them, with a constrained layout."""
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold")
    figure.supxlabel(notes, x=0.012, ha="left", fontsize=9, color=GREY)


def draw_intervals(plot: "Axes", rows: Sequence[tuple[str, Estimate, Mapping[str, Any]]]) -> None:
    """Draw means with their 95 % intervals below each other; a row has a label, a number, and a style with a colour."""
    for place, (_, number, style) in enumerate(rows):
        plot.plot(
            [number.low, number.high],
            [place, place],
            color=style["color"],
            linewidth=2.2,
            alpha=0.7,
        )
        plot.plot([number.mean], [place], **{"marker": "o", "markersize": 6.5, **style})
    plot.set_yticks(range(len(rows)), [label for label, *_ in rows])
    plot.set_ylim(len(rows) - 0.5, -0.5)
    plain_axes(plot, "x")


class Series(NamedTuple):
    """The line of a system in one panel."""

    points: Mapping[float, Estimate]  # place → mean with its 95 % interval; drawn with a band
    across: Estimate | None = None  # a mean without a place, drawn across the panel
    hollow: Set[float] = frozenset()  # places with hollow markers
    band: bool = True  # False: dashed, without a band


class PanelLine(NamedTuple):
    """The line of a system, in each panel of a picture."""

    label: str  # at the right of the last panel; empty: none
    style: dict[str, Any]  # keywords of `Axes.plot`
    series: Sequence[Series]  # of each panel; at least one of them is not empty


class Level(NamedTuple):
    """A grey horizontal line with a label."""

    label: str
    height: float
    dashed: bool = True


class Panel(NamedTuple):
    """One of the plots of a row."""

    heading: str  # a second line is smaller
    unit: str  # of the places
    ends: tuple[float, float]  # limits of the places
    ticks: Mapping[float, str]  # place of a tick → its label
    levels: Sequence[Level]


class PanelRow(NamedTuple):
    """Panels side by side, with one vertical axis.

    Attributes:
        measured: label of the vertical axis.
        lines: of lines that cross, the first is on top.
        limits: of the vertical axis; default: all that is drawn, and the levels that are near.
        ticks: of the vertical axis; default: a few round numbers.
    """

    measured: str
    panels: Sequence[Panel]
    lines: Sequence[PanelLine]
    limits: tuple[float, float] | None = None
    ticks: Sequence[float] = ()


class _LineLabel(NamedTuple):
    text: str
    height: float  # its preferred height, in the unit of the vertical axis
    colour: str  # of the line
    end: float | None  # the place where the line ends; None if that is not in the plot


def draw_panels(
    title: str, notes: Sequence[str], rows: Sequence[PanelRow], kinds: Sequence[str] = ("png",)
) -> dict[str, bytes]:
    """Draw lines with bands in rows of panels; return kind ("png", "svg") → bytes.

    Each row has as many panels. The labels of its lines are at the right of its last panel; the notes are below.
    """
    heading, small = (
        textwrap.fill(title, _TITLE_WIDTH),
        "\n".join(textwrap.fill(note, _NOTE_WIDTH) for note in notes),
    )
    columns = len(rows[0].panels)
    labels = [_label_texts(row, (1 if columns > 1 else 2) * _LABEL_WIDTH) for row in rows]
    heights = [
        max(2.3, 0.17 * sum(1.5 + label.text.count("\n") for label in texts)) for texts in labels
    ]

    def draw_all(figure: "Figure") -> None:
        add_title_and_notes(figure, heading, small)
        plots = figure.subplots(
            len(rows), columns, sharey="row", squeeze=False, height_ratios=heights
        )
        for row, row_plots in zip(rows, plots, strict=True):
            for number, plot in enumerate(row_plots):
                _draw_panel(plot, row, number)
            row_plots[0].set_ylim(*_limits_of(row))
            if row.ticks:
                row_plots[0].set_yticks(row.ticks)
            else:
                row_plots[0].locator_params(axis="y", nbins=5)
            row_plots[0].set_ylabel(row.measured, fontsize=TEXT)
        figure.draw_without_rendering()  # decides the height of the plots
        for texts, row_plots in zip(labels, plots, strict=True):
            _label_lines(row_plots[-1], texts)

    height = (
        1.4
        + 0.27 * heading.count("\n")
        + 0.16 * small.count("\n")
        + sum(heights)
        + 0.5 * (len(rows) - 1)
    )
    return render_picture((WIDTH, height), draw_all, kinds)


def _limits_of(row: PanelRow) -> tuple[float, float]:
    if row.limits:
        return row.limits
    series = [series for line in row.lines for series in line.series]
    numbers = [
        number for each in series for number in (*each.points.values(), each.across) if number
    ]
    ends = [bound for number in numbers for bound in number if bound == bound]
    low, high = min(ends), max(ends)
    near = _NEAR_SHARE * max(high - low, _LEAST_HEIGHT)
    levels = {level.height for panel in row.panels for level in panel.levels}
    heights = [low, high, *(level for level in levels if low - near <= level <= high + near)]
    room = 0.06 * max(max(heights) - min(heights), _LEAST_HEIGHT)
    return min(heights) - room, max(heights) + room


def _draw_panel(plot: "Axes", row: PanelRow, number: int) -> None:
    panel = row.panels[number]
    for order, line in enumerate(row.lines):
        series, style = line.series[number], line.style
        above = 3 + len(row.lines) - order
        _draw_series(plot, [*series.points], [*series.points.values()], style, above, series.band)
        hollow = sorted(series.hollow & series.points.keys())
        marker = {
            **style,
            "linestyle": "",
            "markerfacecolor": "white",
            "markeredgecolor": style["color"],
        }
        plot.plot(hollow, [series.points[place].mean for place in hollow], **marker, zorder=above)
        if series.across:
            plot.axhline(series.across.mean, color=style["color"], linewidth=1.4, zorder=above)
    for level in panel.levels:
        plot.axhline(
            level.height,
            color=GREY,
            linestyle="--" if level.dashed else "-",
            linewidth=1.0,
            zorder=2,
        )
    heading, _, detail = panel.heading.partition("\n")
    plot.set_title(
        f"{heading}\n" if detail else heading, loc="left", fontsize=TEXT + 1, fontweight="bold"
    )
    plot.text(0, 1.04, detail, transform=plot.transAxes, fontsize=TEXT - 1.5)
    plain_axes(plot)
    plot.set_xlim(*panel.ends)
    plot.set_xticks([*panel.ticks], [*panel.ticks.values()])
    plot.set_xlabel(panel.unit, fontsize=TEXT)


def _label_texts(row: PanelRow, width: int) -> list[_LineLabel]:
    """Return the labels at the right of the last panel; one of a level outside the limits has an arrow."""
    labels, panel, limits = [], row.panels[-1], _limits_of(row)
    right = panel.ends[1]
    for line in filter(lambda line: line.label, row.lines):
        last = line.series[-1]
        ends = [*last.points.items(), *([(right, last.across)] if last.across else [])]
        elsewhere = [
            number
            for series in line.series
            for number in (*series.points.values(), series.across)
            if number
        ]
        end, number = ends[-1] if ends else (None, elsewhere[-1])
        labels.append(_LineLabel(line.label, number.mean, line.style["color"], end))
    for level in panel.levels:
        off = " ▲" if level.height > limits[1] else " ▼" if level.height < limits[0] else ""
        labels.append(_LineLabel(f"{level.label}{off}", level.height, GREY, None if off else right))
    return [label._replace(text=_wrap_name(label.text, width)) for label in labels]


def _wrap_name(name: str, width: int) -> str:
    """Wrap the name of a system and its settings, also after underscores."""
    return "\n".join(textwrap.wrap(name.replace("_", "_ "), width)).replace("_ ", "_")


def _label_lines(plot: "Axes", labels: Sequence[_LineLabel]) -> None:
    """Write the labels at the right of a plot, each near the end of its line and connected to it."""
    row = (
        100 * TEXT / plot.get_window_extent().height * plot.figure.dpi / 72
    )  # percent of the plot's height
    low, high = plot.get_ylim()
    heights = [min(100.0, max(0.0, 100 * (label.height - low) / (high - low))) for label in labels]
    sizes = [row * (0.4 + 1.1 * (1 + label.text.count("\n"))) for label in labels]
    for label, percent in zip(labels, spread_labels(heights, sizes), strict=True):
        lead = {
            "arrowstyle": "-",
            "color": label.colour,
            "linewidth": 0.8,
            "alpha": 0.6,
            "shrinkA": 1,
            "shrinkB": 0,
        }
        plot.annotate(
            label.text,
            (0.0 if label.end is None else label.end, label.height),
            (1.07, percent / 100),
            textcoords="axes fraction",
            arrowprops=None if label.end is None else {**lead, "relpos": (0, 0.5)},
            annotation_clip=False,
            color=label.colour,
            va="center",
            fontsize=TEXT,
            linespacing=1.05,
            fontweight="normal" if label.colour == GREY else "bold",
        )


def _draw_series(
    plot: "Axes",
    places: Sequence[float],
    numbers: Sequence[Estimate],
    style: dict[str, Any],
    above: float = 3,
    band: bool = True,
) -> None:
    """Draw a line with a band of its 95 % intervals, or dashed without one; a single point has a whisker instead."""
    lows, highs = [number.low for number in numbers], [number.high for number in numbers]
    if len(places) == 1:
        plot.vlines(places, lows, highs, color=style["color"], alpha=0.6)
    elif band:
        plot.fill_between(
            places, lows, highs, color=style["color"], alpha=_BAND, linewidth=0, zorder=1.5
        )
    else:
        style = {**style, "linestyle": "--"}
    plot.plot(places, [number.mean for number in numbers], linewidth=2, zorder=above, **style)


def spread_labels(
    heights: Sequence[float], sizes: Sequence[float], top: float = 103.0
) -> list[float]:
    """Move labels up and down so that they do not overlap, keeping their order; ties keep the given order.

    `heights` are the preferred middles; `top` is exceeded only if there is no room below.
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
