"""The figure of intervals: a row for each system or metric, with its mean and 95 % interval; `IntervalFigure.draw`."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from longsumbench.metrics.aggregate import Estimate
from longsumbench.views.figures import (
    COLOURS,
    TEXT,
    WIDTH,
    add_title_and_notes,
    plain_axes,
    system_styles,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 3
_LABEL_WIDTH, _HEADING_WIDTH = 32, 28  # characters
_ROW, _PANEL, _MARGINS = 0.36, 0.7, 1.5  # heights in inches


class IntervalRow(NamedTuple):
    """A mean with its 95 % interval; the name of a system decides its colour and marker."""

    label: str
    number: Estimate
    model: str = ""


@dataclass(frozen=True)
class IntervalPanel:
    """A plot with a row below the other.

    Attributes:
        rows: in all panels of a figure, the same labels in the same order.
        levels: label in the legend → value of a vertical line.
    """

    heading: str
    rows: Sequence[IntervalRow]
    levels: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class IntervalFigure:
    """A title, panels, the label of the horizontal axis, and notes below."""

    title: str
    panels: Sequence[IntervalPanel]
    axis: str
    notes: str = ""

    @property
    def grid(self) -> tuple[int, int]:
        """Number of lines of panels, and of panels side by side."""
        columns = min(_MOST_COLUMNS, len(self.panels))
        return -(-len(self.panels) // columns), columns

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        lines, columns = self.grid
        most_rows = max(len(panel.rows) for panel in self.panels)
        return WIDTH + columns - 1, _MARGINS + lines * (_PANEL + _ROW * most_rows)

    def draw(self, figure: "Figure") -> None:
        """Draw all panels, with a legend of the levels below."""
        add_title_and_notes(figure, self.title, self.notes)
        plots = figure.subplots(*self.grid, sharex=True, sharey=True, squeeze=False).flat
        labels: list[str] = []
        for panel, plot in zip(self.panels, plots, strict=False):
            _draw_rows(plot, panel.rows)
            plot.set_title(textwrap.fill(panel.heading, _HEADING_WIDTH), fontsize=TEXT, loc="left")
            plot.set_xlabel(self.axis, fontsize=TEXT)
            plot.tick_params(labelbottom=True)
            for label, value in panel.levels.items():
                is_known = label in labels
                labels += [] if is_known else [label]
                order = labels.index(label)
                name = (
                    f"_{label}" if is_known else label
                )  # of a label that is already in the legend
                plot.axvline(
                    value, color=COLOURS[1 + order % (len(COLOURS) - 1)], linestyle="--", label=name
                )
        for plot in plots[len(self.panels) :]:
            plot.set_axis_off()
        if labels:
            figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=TEXT - 1)


def _draw_rows(plot: "Axes", rows: Sequence[IntervalRow]) -> None:
    for index, row in enumerate(rows):
        (style,) = system_styles([row.model])
        ends = [row.number.low, row.number.high]
        plot.plot(ends, [index, index], color=style["color"], linewidth=2.2, alpha=0.7)
        plot.plot([row.number.mean], [index], **style)
    labels = [textwrap.fill(row.label, _LABEL_WIDTH) for row in rows]
    plot.set_yticks(range(len(rows)), labels)
    plot.set_ylim(len(rows) - 0.5, -0.5)
    plain_axes(plot, "x")
