"""Scatters of a table: the ranking score of its rows against their cost, and against the length of their summaries.

Begin with `scatters_of`. Each point has its name next to it, or at the end of a line where other names are in the way.
`views/templates/site/drawings.html` draws them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from longsumbench.leaderboards.comparability import heading_of
from longsumbench.runs.record import RunRecord, length_ratio
from longsumbench.site.shown_tables import ShownBlock, ShownRow, axis_ticks

# Sizes in the units of the drawing, which are pixels on a phone
SCATTER_WIDTH = 360
_LEAST_HEIGHT, _NAME_HEIGHT, _NAME_GAP = 220, 14, 7
_CHARACTER, _LONGEST_NAME = 7.4, 24
_MARGIN = 24  # between the outermost points and the ends of the axes
_SHOWN_ROWS, _FEWEST_ROWS = 24, 3
_LEAST_RANGE = math.log(1.1)  # of the horizontal axis
_POWERS = [10.0**power for power in range(-4, 8)]
_MOST_NAME_LINES = 12  # between a point and its name


@dataclass(frozen=True)
class NamedPoint:
    """A row in the drawing.

    Attributes:
        name: the place of the row in the table, and the start of its label; empty where there is no room.
        anchor: what of the name is at `name_x`: "start", "middle" or "end".
    """

    row: ShownRow
    x: float
    y: float
    name: str
    name_x: float = 0
    name_y: float = 0
    anchor: str = "start"

    def name_ends(self) -> tuple[float, float]:
        """Return where the name starts and ends."""
        width = _CHARACTER * len(self.name)
        left = self.name_x - width * {"start": 0, "middle": 0.5, "end": 1}[self.anchor]
        return left, left + width


@dataclass(frozen=True)
class Scatter:
    """A drawing, `SCATTER_WIDTH` wide.

    Attributes:
        title: what is drawn, and how many rows.
        axis: what the horizontal axis shows; it is logarithmic.
        x_ticks, y_ticks: places on the axes, and their texts.
    """

    title: str
    axis: str
    height: float
    points: Sequence[NamedPoint]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]


class _Quantity(NamedTuple):
    """What a horizontal axis shows; `of_run` returns None or 0 if it is unknown."""

    name: str
    axis: str
    unit: str
    of_run: Callable[[RunRecord], float | None]


def _run_time(run: RunRecord) -> float | None:
    return None if run.imported else run.fit.seconds + run.costs.timings.summarize


_PRICE = _Quantity("price", "US$ for all summaries", "", lambda run: run.ledger.counts.get("price"))
_TIME = _Quantity("time", "time to train and summarize", " s", _run_time)
_LENGTH = _Quantity("length", "words, as a multiple of the references'", "×", length_ratio)


def scatters_of(shown: ShownBlock) -> list[Scatter]:
    """Return the drawings of a block; one is left out if few rows have its quantity, or if all have nearly the same."""
    drawings = (_scatter(shown, _PRICE) or _scatter(shown, _TIME), _scatter(shown, _LENGTH))
    return [drawing for drawing in drawings if drawing]


def _scatter(shown: ShownBlock, quantity: _Quantity) -> Scatter | None:
    ranked = [row for row in shown.rows if row.interval][:_SHOWN_ROWS]
    values = {}
    for place, row in enumerate(ranked, start=1):
        of_runs = [quantity.of_run(run) or 0 for run in row.group.runs]
        if min(of_runs) > 0:
            values[place] = math.log(sum(of_runs) / len(of_runs))
    if len(values) < max(_FEWEST_ROWS, len(ranked) / 2):
        return None
    left, right = min(values.values()), max(values.values())
    if right - left < _LEAST_RANGE:
        return None
    scores = {place: ranked[place - 1].group.numbers[shown.ranked_by].mean for place in values}
    low, high = min(scores.values()), max(scores.values())
    height = max(_LEAST_HEIGHT, _NAME_HEIGHT * len(values) * 1.3)

    x_of = partial(_place_on_axis, low=left, high=right, length=SCATTER_WIDTH)
    y_of = partial(_place_on_axis, low=high, high=low, length=height)
    points = []
    for place, value in values.items():
        row = ranked[place - 1]
        name = f"{place} {row.label}"
        if len(name) > _LONGEST_NAME:
            name = f"{name[: _LONGEST_NAME - 1]}…"
        points.append(NamedPoint(row, x_of(value), y_of(scores[place]), name))
    ticks = axis_ticks(math.exp(left), math.exp(right), _POWERS)
    x_ticks = [(x_of(math.log(tick)), f"{tick:,.10g}{quantity.unit}") for tick in ticks]
    y_ticks = [(y_of(score), f"{score:.4g}") for score in axis_ticks(low, high)]
    rows = f"{len(values)} of {len(ranked)} rows"
    title = f"{heading_of(shown.ranked_by)} against {quantity.name}, {rows}"
    return Scatter(title, quantity.axis, height, _name_points(points, height), x_ticks, y_ticks)


def _place_on_axis(value: float, low: float, high: float, length: float) -> float:
    """Return where a value is, from the start of an axis."""
    share = (value - low) / ((high - low) or 1)
    return _MARGIN + (length - 2 * _MARGIN) * share


def _name_points(points: Sequence[NamedPoint], height: float) -> list[NamedPoint]:
    """Put a name next to each point, the best rows first, where neither points nor names are."""
    occupied = [(p.x - _NAME_GAP, p.x + _NAME_GAP, p.y) for p in points]  # left, right, middle
    placed_points = []
    for point in points:
        placed = replace(point, name="")
        for place in _name_places(point):
            left, right = place.name_ends()
            y = place.name_y
            is_free = min(left, y) >= 0 and right <= SCATTER_WIDTH and y <= height
            for start, end, middle in occupied:
                is_free &= left >= end or right <= start or abs(y - middle) >= _NAME_HEIGHT
            if is_free:
                occupied.append((left, right, y))
                placed = place
                break
        placed_points.append(placed)
    return placed_points


def _name_places(point: NamedPoint) -> Iterator[NamedPoint]:
    """Yield a point with its name at all places that it may have, the nearest first."""
    for lines in range(_MOST_NAME_LINES + 1):
        gap = _NAME_GAP + 4 * lines
        for y in (point.y - lines * _NAME_HEIGHT, point.y + lines * _NAME_HEIGHT):
            for x, anchor in (
                (point.x + gap, "start"),
                (point.x - gap, "end"),
                (point.x, "middle"),
            ):
                yield replace(point, name_x=x, name_y=y, anchor=anchor)
