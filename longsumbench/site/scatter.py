"""Scatters of a table: the ranking score of its rows against their cost, and against the length of their summaries.

Begin with `scatters_of`. Each point has its name next to it, or at the end of a line where other names are in the way.
`views/templates/site/drawings.html` draws them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from longsumbench.leaderboards.comparability import heading_of
from longsumbench.runs.record import RunRecord
from longsumbench.site.shown_tables import ShownBlock, ShownRow, axis_ticks

# Sizes in the units of the drawing, which are pixels on a phone
SCATTER_WIDTH = 360
_LEAST_HEIGHT, _ROW_HEIGHT = 220, 18
_CHARACTER, _LINE, _DOT = 7.4, 14, 5
_SIDE, _TOP = 12, 24  # between the outermost points and the ends of the axes
_MOST_ROWS, _FEWEST_ROWS = 24, 3
_LONGEST_NAME = 24  # characters
_LEAST_RATIO = 1.1  # of the ends of the horizontal axis
_FARTHEST = 12  # lines between a point and its name


class Tick(NamedTuple):
    """A place on an axis and its text."""

    place: float
    text: str


class Box(NamedTuple):
    """The ends of a rectangle; `y` grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Return True if the boxes have a common point."""
        beside = self.right < other.left or other.right < self.left
        return not (beside or self.bottom < other.top or other.bottom < self.top)


@dataclass(frozen=True)
class NamedPoint:
    """A row in the drawing.

    Attributes:
        name: the place of the row in the table, and the start of its label; empty where there is no room.
        anchor: which end of the name is at `name_x`: "start", "middle" or "end".
        line: True if a line joins the point to its name.
    """

    row: ShownRow
    x: float
    y: float
    name: str
    name_x: float = 0
    name_y: float = 0
    anchor: str = "start"
    line: bool = False

    def box(self) -> Box:
        """Return the room that the name takes."""
        width = _CHARACTER * len(self.name)
        left = self.name_x - width * {"start": 0, "middle": 0.5, "end": 1}[self.anchor]
        return Box(left, self.name_y - _LINE / 2, left + width, self.name_y + _LINE / 2)


@dataclass(frozen=True)
class Scatter:
    """A drawing, `SCATTER_WIDTH` wide.

    Attributes:
        title: what is drawn, and how many rows.
        axis: what the horizontal axis shows; it is logarithmic.
    """

    title: str
    axis: str
    height: float
    points: Sequence[NamedPoint]
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]


class _Quantity(NamedTuple):
    """What a horizontal axis shows; `of_run` returns None or 0 if it is unknown."""

    name: str
    axis: str
    ticks: tuple[float, ...]
    of_run: Callable[[RunRecord], float | None]
    show: Callable[[float], str]


def _price(run: RunRecord) -> float | None:
    return run.ledger.counts.get("price")


def _seconds(run: RunRecord) -> float | None:
    return None if run.imported else run.fit.seconds + run.costs.timings.summarize


def _relative_length(run: RunRecord) -> float | None:
    outputs = run.evaluation.outputs
    return outputs.words / outputs.reference_words if outputs and outputs.reference_words else None


def _show_time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:g} s"
    return f"{seconds / 60:.3g} min" if seconds < 3600 else f"{seconds / 3600:.3g} h"


_PRICES = (0.001, 0.01, 0.1, 1, 10, 100, 1000)
_TIMES = (0.1, 1, 10, 60, 600, 3600, 36000, 360000)
_LENGTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
_COSTS = (
    _Quantity("price", "US dollars for all summaries", _PRICES, _price, "{:,g}".format),
    _Quantity("time", "training and summarizing", _TIMES, _seconds, _show_time),
)
_LENGTH = _Quantity(
    "length", "words, as a multiple of the references'", _LENGTHS, _relative_length, "{:g}×".format
)


def scatters_of(shown: ShownBlock) -> list[Scatter]:
    """Return the drawings of a block; one is left out if few rows have its quantity, or if all have nearly the same."""
    costs = [_scatter(shown, quantity) for quantity in _COSTS]
    return list(filter(None, [*list(filter(None, costs))[:1], _scatter(shown, _LENGTH)]))


def _scatter(shown: ShownBlock, quantity: _Quantity) -> Scatter | None:
    ranked = [row for row in shown.rows if row.interval]
    values = {}
    for row in ranked[:_MOST_ROWS]:
        of_runs = [quantity.of_run(run) or 0 for run in row.group.runs]
        if min(of_runs) > 0:
            values[row.group.key] = math.log(sum(of_runs) / len(of_runs))
    rows = [row for row in ranked if row.group.key in values]
    if len(rows) < _FEWEST_ROWS or 2 * len(rows) < len(ranked[:_MOST_ROWS]):
        return None
    left, right = min(values.values()), max(values.values())
    if right - left < math.log(_LEAST_RATIO):
        return None
    scores = {row.group.key: row.group.numbers[shown.ranked_by].mean for row in rows}
    low, high = min(scores.values()), max(scores.values())
    height = max(_LEAST_HEIGHT, _ROW_HEIGHT * len(rows))

    def place_x(value: float) -> float:
        return _SIDE + (SCATTER_WIDTH - 2 * _SIDE) * (value - left) / (right - left)

    def place_y(score: float) -> float:
        return _TOP + (height - 2 * _TOP) * (high - score) / ((high - low) or 1)

    points = []
    for place, row in enumerate(ranked, start=1):
        key, name = row.group.key, f"{place} {row.label}"
        if len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME - 1]}…"
        if key in values:
            points.append(NamedPoint(row, place_x(values[key]), place_y(scores[key]), name))
    x_ticks = []
    for value in axis_ticks(math.exp(left), math.exp(right), quantity.ticks):
        x_ticks.append(Tick(place_x(math.log(value)), quantity.show(value)))
    y_ticks = [Tick(place_y(score), f"{score:.4g}") for score in axis_ticks(low, high)]
    title = f"{heading_of(shown.ranked_by)} against {quantity.name}"
    if len(rows) < len(ranked):
        title += f", {len(rows)} of {len(ranked)} rows"
    return Scatter(title, quantity.axis, height, _name_points(points, height), x_ticks, y_ticks)


def _name_points(points: Sequence[NamedPoint], height: float) -> list[NamedPoint]:
    """Put a name next to each point, the best rows first, where neither points nor names are."""
    occupied = [Box(p.x - _DOT, p.y - _DOT, p.x + _DOT, p.y + _DOT) for p in points]
    named = []
    for point in points:
        for place in _name_places(point):
            box = place.box()
            inside = (
                box.left >= 0
                and box.right <= SCATTER_WIDTH
                and box.top >= 0
                and box.bottom <= height
            )
            if inside and not any(map(box.overlaps, occupied)):
                occupied.append(box)
                named.append(place)
                break
        else:
            named.append(replace(point, name=""))
    return named


def _name_places(point: NamedPoint) -> list[NamedPoint]:
    """Return a point with its name at all places that it may have, the nearest first."""
    places = []
    for lines in range(_FARTHEST + 1):
        gap = _DOT + 2 + 4 * lines
        for y in (point.y - lines * _LINE, point.y + lines * _LINE):
            for x, anchor in (
                (point.x + gap, "start"),
                (point.x - gap, "end"),
                (point.x, "middle"),
            ):
                places.append(replace(point, name_x=x, name_y=y, anchor=anchor, line=lines > 1))
    return places
