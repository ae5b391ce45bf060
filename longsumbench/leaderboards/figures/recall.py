"""Draw fact recall: single facts by position, the others by the distance between their two places.

    rows of a table --recall_lines--> RecallLine of each system, the mean over seeds --draw_recall--> PNG

The same records give the same bytes, with the same release of matplotlib.
"""

import io
import textwrap
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.metrics.aggregate import Estimate
from longsumbench.report.figures import plain_axes, series_style, spread_labels, whisker_lengths
from longsumbench.report.palette import GREY
from longsumbench.runs.record import RunRecord, split_variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHANCE = "fact_recall_chance"
MOST_LINES = 14  # the best ones are drawn
_SIZE, _RESOLUTION = (13.0, 4.6), 150  # inches, dots per inch
_LABEL_WIDTH, _LABEL_HEIGHT = 30, 4.6  # characters; height of a row in percent of recall


@dataclass(frozen=True)
class _RecallPanel:
    """One of the plots.

    Attributes:
        heading: two lines.
        unit: label of the horizontal axis.
        places: measure → position on that axis; evenly spaced.
        ticks: positions of its ticks.
        tick_names: labels of the ticks; by default their positions.
    """

    heading: str
    unit: str
    places: Mapping[str, float]
    ticks: tuple[float, ...]
    tick_names: tuple[str, ...] = ()

    @property
    def spacing(self) -> float:
        first, second, *_ = self.places.values()
        return second - first


PANELS = (
    _RecallPanel(
        "Single facts\nstated in one place",
        "where the fact is (% of the source)",
        {f"fact_recall_single_position_{decile}": 10.0 * decile + 5 for decile in range(10)},
        tuple(range(0, 101, 20)),
    ),
    _RecallPanel(
        "Relayed facts\nfrom two places, the link written out",
        "sections between the places",
        {f"fact_recall_relayed_distance_{distance}": float(distance) for distance in range(8)},
        tuple(range(8)),
    ),
    _RecallPanel(
        "Silent facts\nfrom two places, the link left out",
        "sections between the places",
        {f"fact_recall_silent_distance_{distance}": float(distance) for distance in range(8)},
        tuple(range(8)),
    ),
)


@dataclass(frozen=True)
class RecallLine:
    """The line of a model and variant.

    Attributes:
        label: its name.
        points: measure → its mean and whisker, in percent.
        chance: expected recall of a random guess, in percent; None if unknown.
        hollow: measures that are drawn with hollow markers.
    """

    label: str
    points: Mapping[str, Estimate]
    chance: float | None
    hollow: Set[str] = frozenset()


def recall_lines(rows: Sequence[SeedGroup]) -> tuple[RecallLine, ...]:
    """Return the lines of comparable rows in their order; oracles and systems without fact recall are left out."""
    drawn = {name for panel in PANELS for name in panel.places}
    return tuple(
        RecallLine(
            row.label,
            {measure: number for measure, number in row.numbers.items() if measure in drawn},
            row.numbers[CHANCE].mean if CHANCE in row.numbers else None,
        )
        for row in rows
        if not row.first.oracle and drawn & set(row.numbers)
    )


def name_of(record: RunRecord) -> str:
    """Return a run's model and variant."""
    return " ".join([record.model, *split_variant(record.variant)]).strip()


def draw_recall(
    title: str, lines: Sequence[RecallLine], panels: Sequence[_RecallPanel] = PANELS, note: str = ""
) -> bytes:
    """Draw the panels side by side, with labels of the lines on the right; return a PNG.

    Args:
        title: title of the picture.
        lines: best first, at least one; the first `MOST_LINES` are drawn.
        panels: panels without any points are left out.
        note: additional sentence of the caption.
    """
    import matplotlib.style
    from matplotlib.figure import Figure

    shown = lines[:MOST_LINES]
    panels = [panel for panel in panels if any(set(panel.places) & set(line.points) for line in shown)]
    plain_text = {"text.parse_math": False}  # variants may contain dollar signs
    with matplotlib.style.context(["default", plain_text]):  # ignores the user's settings
        figure = Figure(_SIZE, dpi=_RESOLUTION)
        plots = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        figure.subplots_adjust(left=0.055, right=0.79, top=0.8, bottom=0.205, wspace=0.07)
        for panel, plot in zip(panels, plots, strict=True):
            _draw_panel(plot, panel, shown)
        plots[0].set_ylabel("facts stated right (%)")
        _name_lines(plots[-1], panels[-1], shown)
        left = plots[0].get_position().x0
        figure.text(left, 0.94, title, fontsize=13, fontweight="bold", va="center")
        figure.text(left, 0.04, _caption(len(lines), note), fontsize=8.5, color=GREY, va="center")
        image = io.BytesIO()
        figure.savefig(image, format="png", metadata={"Software": None})
    return image.getvalue()


def _caption(num_lines: int, note: str) -> str:
    legend = "Means over examples; whiskers are 95 % intervals (of several seeds: over examples and seeds)."
    more = f"The best {MOST_LINES} of {num_lines} systems; the table has all." if num_lines > MOST_LINES else ""
    return " ".join(text for text in (legend, note, more) if text)


def _draw_panel(plot: "Axes", panel: _RecallPanel, lines: Sequence[RecallLine]) -> None:
    for index, line in enumerate(lines):
        known = [name for name in panel.places if name in line.points]
        shift = (index - (len(lines) - 1) / 2) * 0.05 * panel.spacing  # keeps whiskers from overlapping
        points = [line.points[name] for name in known]
        _, _, whiskers = plot.errorbar(
            [panel.places[name] + shift for name in known],
            [point.mean for point in points],
            yerr=whisker_lengths(points),
            linewidth=1.6,
            elinewidth=1.0,
            zorder=3 + len(lines) - index,
            **series_style(index),
        )
        whiskers[0].set_alpha(0.55)
        if line.hollow & set(known):
            at = {name: (panel.places[name] + shift, line.points[name].mean) for name in known}
            _draw_hollow(plot, at, line.hollow, series_style(index), len(lines) - index)
    for chance in _chances(lines):
        plot.axhline(chance, color=GREY, linestyle="--", linewidth=1.0, zorder=2)
    reached = [place for name, place in panel.places.items() if any(name in line.points for line in lines)]
    plot.set_xlim(min(panel.places.values()) - 0.6 * panel.spacing, max(reached) + 0.6 * panel.spacing)
    plot.set_ylim(-3, 103)
    ticks = [tick for tick in panel.ticks if tick <= max(reached) + 0.6 * panel.spacing]
    plot.set_xticks(ticks, panel.tick_names[: len(ticks)] or None)
    plot.set_xlabel(panel.unit, fontsize=9.5)
    kind, _, how = panel.heading.partition("\n")
    plot.text(0, 1.085, kind, transform=plot.transAxes, fontsize=11, fontweight="bold")
    plot.text(0, 1.025, how, transform=plot.transAxes, fontsize=9.5)
    plain_axes(plot)


def _draw_hollow(
    plot: "Axes", at: Mapping[str, tuple[float, float]], hollow: Set[str], style: Mapping[str, Any], above: int
) -> None:
    """Draw over a line: white inside hollow markers, and gaps in the line before them."""
    for before, name in pairwise(at):
        if name in hollow:
            ends = zip(at[before], at[name], strict=True)
            plot.plot(*ends, "--", color="white", linewidth=2.4, zorder=3.3 + above)
    drawn = {**style, "markerfacecolor": "white", "markeredgecolor": style["color"], "markeredgewidth": 1.3}
    for name, (place, mean) in at.items():
        marker = {**drawn, "markersize": 7.5} if name in hollow else style
        plot.plot([place], [mean], **{**marker, "linestyle": ""}, zorder=3.5 + above)


def _name_lines(plot: "Axes", panel: _RecallPanel, lines: Sequence[RecallLine]) -> None:
    """Write each line's label near the height of its end, connected by a leader line."""
    names = []  # label, end of the line, style
    for index, line in enumerate(lines):
        known = [name for name in panel.places if name in line.points]
        end = (panel.places[known[-1]], line.points[known[-1]].mean) if known else None
        names.append(("\n".join(textwrap.wrap(line.label, _LABEL_WIDTH)), end, series_style(index)))
    right = plot.get_xlim()[1]
    for chance in _chances(lines):
        names.append((f"chance {chance:.1f}", (right, chance), {"color": GREY, "marker": ""}))
    wanted = [end[1] if end else 0.0 for _, end, _ in names]
    heights = spread_labels(wanted, [_LABEL_HEIGHT * (1 + text.count("\n")) + 1 for text, _, _ in names])
    at_right = plot.get_yaxis_transform()
    for (text, end, style), height in zip(names, heights, strict=True):
        colour = style["color"]
        if end:
            lead = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "alpha": 0.6, "shrinkA": 0, "shrinkB": 0}
            plot.annotate("", end, (1.04, height), xycoords="data", textcoords=at_right, arrowprops=lead)
        plot.plot([1.06], [height], transform=at_right, clip_on=False, **style)
        ink = colour if colour == GREY else "black"
        plot.text(1.085, height, text, transform=at_right, va="center", fontsize=9.5, linespacing=1.05, color=ink)


def _chances(lines: Sequence[RecallLine]) -> list[float]:
    return sorted({line.chance for line in lines if line.chance is not None})
