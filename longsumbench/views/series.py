"""The figure of series: numbers of systems by position, in panels side by side and below each other.

    SeriesFigure: PanelRows of Panels with the Series of each system --draw_series--> PNG, SVG

Callers compute the data. This module alone decides how a line, its interval, a marker, a level and the legend look.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from longsumbench.metrics.aggregate import Estimate
from longsumbench.views.figures import (
    GREY,
    TEXT,
    WIDTH,
    add_title_and_notes,
    plain_axes,
    render_picture,
    system_styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAND = 0.13  # opacity
_LEVEL_STYLES = ("--", ":", "-.")
_NEAR = 0.75  # share of the lines' height; what is drawn across a panel farther away does not change its limits
_LABEL_WIDTH = 24  # characters of a line of the legend
_ROW_HEIGHT, _LEGEND_LINE, _NOTE_LINE, _MARGINS = 2.5, 0.21, 0.17, 1.3  # inches
_NOTE_WIDTH = 110  # characters; decides the height only


@dataclass(frozen=True)
class Series:
    """The numbers of a system in one panel.

    Attributes:
        label: its name in the legend; the same in all panels.
        model: name of the system, which decides the colour and the marker.
        points: position → mean with its 95 % interval, which is a band, or a whisker of a single point.
        across: a mean without a position; a line across the panel.
        hollow: positions with hollow markers.
        grey: True for a grey line.
        band: False for a dashed line without its intervals.
    """

    label: str
    model: str
    points: Mapping[float, Estimate] = field(default_factory=dict)
    across: Estimate | None = None
    hollow: Set[float] = frozenset()
    grey: bool = False
    band: bool = True


@dataclass(frozen=True)
class Panel:
    """A plot.

    Attributes:
        axis: label of the horizontal axis.
        ticks: position of a tick → its label.
        levels: label in the legend → height of a grey line across the panel.
        joined: False for points with whiskers, without lines.
    """

    heading: str
    axis: str
    ticks: Mapping[float, str]
    series: Sequence[Series]
    levels: Mapping[str, float] = field(default_factory=dict)
    joined: bool = True


@dataclass(frozen=True)
class PanelRow:
    """Panels side by side, with one vertical axis; `measured` is its label, and its limits are those of the numbers."""

    measured: str
    panels: Sequence[Panel]
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class SeriesFigure:
    """A title, rows with equally many panels, and notes below."""

    title: str
    rows: Sequence[PanelRow]
    notes: Sequence[str] = ()


_Styles = Mapping[str, dict[str, Any]]  # label → keywords of `Axes.plot`


def place_numbers(numbers: Sequence[float]) -> list[float]:
    """Return the positions of numbers: on a logarithmic axis (base 2) if all of them are positive."""
    return [math.log2(number) for number in numbers] if min(numbers) > 0 else list(numbers)


def draw_series(content: SeriesFigure, kinds: Sequence[str] = ("png",)) -> dict[str, bytes]:
    """Draw a figure, with a legend at the right; return kind ("png", "svg") → bytes."""
    styles = _choose_styles(content)
    num_lines = sum(1 + len(label) // _LABEL_WIDTH for label in styles)
    num_notes = sum(1 + len(note) // _NOTE_WIDTH for note in content.notes)
    plots = max(_ROW_HEIGHT * len(content.rows), _LEGEND_LINE * num_lines)
    size = (WIDTH, _MARGINS + plots + _NOTE_LINE * num_notes)
    return render_picture(size, partial(_draw_content, content, styles), kinds)


def _choose_styles(content: SeriesFigure) -> _Styles:
    """Return label → keywords of `Axes.plot`, in the order of the legend: series, then levels."""
    series: dict[str, Series] = {}
    levels: dict[str, float] = {}
    for row in content.rows:
        for panel in row.panels:
            levels |= panel.levels
            series |= {line.label: line for line in panel.series}
    models = [line.model for line in series.values()]
    styles = dict(zip(series, system_styles(models), strict=True))
    for label, line in series.items():
        if line.grey:
            styles[label]["color"] = GREY
    for order, label in enumerate(levels):
        styles[label] = {"color": GREY, "linestyle": _LEVEL_STYLES[order % len(_LEVEL_STYLES)]}
    return styles


def _draw_content(content: SeriesFigure, styles: _Styles, figure: "Figure") -> None:
    add_title_and_notes(figure, content.title, "\n".join(content.notes))
    columns = len(content.rows[0].panels)
    plots = figure.subplots(len(content.rows), columns, sharey="row", squeeze=False)
    for row, row_plots in zip(content.rows, plots, strict=True):
        for panel, plot in zip(row.panels, row_plots, strict=True):
            _draw_panel(plot, panel, styles)
        first = row_plots[0]
        first.set_ylabel(row.measured, fontsize=TEXT)
        first.locator_params(axis="y", nbins=5)
        first.set_ylim(row.limits or _limits_with_near_heights(first, row))
        for panel, plot in zip(row.panels, row_plots, strict=True):
            _draw_across(plot, panel, styles)
    # The legend has lines without data: a system may be in one panel only
    last = plots[0, -1]
    for label, style in styles.items():
        # A path would leave no room for the panels
        name = textwrap.fill(label, _LABEL_WIDTH)
        last.plot([], [], linewidth=2, label=name, **style)
    last.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), frameon=False, fontsize=TEXT - 1)


def _limits_with_near_heights(plot: "Axes", row: PanelRow) -> tuple[float, float]:
    """Extend the limits of the points so that the levels that are not far away are in the plot."""
    low, high = plot.get_ylim()
    room = _NEAR * (high - low)
    heights = [low, high]
    for panel in row.panels:
        across = [series.across.mean for series in panel.series if series.across]
        for height in [*across, *panel.levels.values()]:
            if low - room < height < high + room:
                heights.append(height)
    return min(heights), max(heights)


def _draw_panel(plot: "Axes", panel: Panel, styles: _Styles) -> None:
    """Draw the lines of a panel; of lines that cross, the first is on top."""
    for order, series in enumerate(panel.series):
        above = 3 + len(panel.series) - order
        _draw_line(plot, series, {**styles[series.label], "zorder": above}, panel.joined)
    plain_axes(plot)
    plot.margins(x=0.06)
    plot.set_xticks([*panel.ticks], [*panel.ticks.values()])
    plot.set_xlabel(panel.axis, fontsize=TEXT)
    plot.set_title(panel.heading, loc="left", fontsize=TEXT)


def _draw_line(plot: "Axes", series: Series, style: dict[str, Any], joined: bool) -> None:
    places = sorted(series.points)
    numbers = [series.points[place] for place in places]
    lows = [number.low for number in numbers]
    highs = [number.high for number in numbers]
    if not series.band:
        style["linestyle"] = "--"
    elif len(places) == 1 or not joined:
        plot.vlines(places, lows, highs, color=style["color"], alpha=0.6)
    else:
        plot.fill_between(places, lows, highs, color=style["color"], alpha=_BAND, linewidth=0)
    if not joined:
        style["linestyle"] = ""
    plot.plot(places, [number.mean for number in numbers], linewidth=2, **style)
    hollow = sorted(series.hollow)
    means = [series.points[place].mean for place in hollow]
    ring = {"linestyle": "", "markerfacecolor": "white", "markeredgecolor": style["color"]}
    plot.plot(hollow, means, **{**style, **ring})


def _draw_across(plot: "Axes", panel: Panel, styles: _Styles) -> None:
    """Draw what has no position: means of systems, and levels."""
    heights = dict(panel.levels)
    for series in panel.series:
        if series.across:
            heights[series.label] = series.across.mean
    for label, height in heights.items():
        # From end to end of the panel, at a height of the vertical axis
        across = plot.get_yaxis_transform()
        plot.plot([0.01, 0.99], [height, height], transform=across, **styles[label])
