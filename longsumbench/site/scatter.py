"""The scatter of a table: the ranking score of its rows against their cost. Drawn by `views/templates/site/drawings.html`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from longsumbench.leaderboards.comparability import find_heading
from longsumbench.runs.record import RunRecord
from longsumbench.site.shown_tables import SiteRow, SiteTable, axis_ticks

# Sizes in the units of the drawing, which are pixels on a phone
SCATTER_WIDTH, SCATTER_HEIGHT = 360, 220
_MARGIN = 24  # between the outermost points and the ends of the axes
_FEWEST_ROWS = 3
_POWERS = [10.0**power for power in range(-4, 8)]


class ScatterPoint(NamedTuple):
    """A row in the drawing; `place` is its place in the table."""

    row: SiteRow
    place: int
    x: float
    y: float


@dataclass(frozen=True)
class Scatter:
    """A drawing, `SCATTER_WIDTH` wide and `SCATTER_HEIGHT` high.

    Attributes:
        title: what is drawn, and how many rows.
        axis: what the horizontal axis shows; it is logarithmic.
        x_ticks, y_ticks: positions on the axes, and their texts.
    """

    title: str
    axis: str
    points: Sequence[ScatterPoint]
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]


def plot_against_cost(shown: SiteTable) -> Scatter | None:
    """Return the scores of the rows against their price, or else their time; None if few rows have it, or all the same."""
    price = _plot_scatter(
        shown, "price", "US$ for all summaries", lambda run: run.ledger.counts.get("price")
    )
    return price or _plot_scatter(shown, "time", "seconds to train and summarize", _run_time)


def _run_time(run: RunRecord) -> float | None:
    return None if run.imported else run.fit.seconds + run.costs.timings.summarize


def _plot_scatter(
    shown: SiteTable, name: str, axis: str, cost: Callable[[RunRecord], float | None]
) -> Scatter | None:
    ranked = [row for row in shown.rows if row.interval]
    costs, scores = {}, {}
    for place, row in enumerate(ranked, start=1):
        of_runs = [cost(run) or 0 for run in row.group.runs]
        if min(of_runs) > 0:
            costs[place] = sum(of_runs) / len(of_runs)
            scores[place] = row.group.numbers[shown.ranked_by].mean
    if len(costs) < max(_FEWEST_ROWS, len(ranked) / 2):
        return None
    left, right = min(costs.values()), max(costs.values())
    if left == right:
        return None
    low, high = min(scores.values()), max(scores.values())
    ends = math.log(left), math.log(right)
    x_of = partial(_position_on_axis, ends=ends, length=SCATTER_WIDTH)
    y_of = partial(_position_on_axis, ends=(high, low), length=SCATTER_HEIGHT)
    points = []
    for place, value in costs.items():
        x, y = x_of(math.log(value)), y_of(scores[place])
        points.append(ScatterPoint(ranked[place - 1], place, x, y))
    x_ticks = [(x_of(math.log(tick)), f"{tick:,.10g}") for tick in axis_ticks(left, right, _POWERS)]
    y_ticks = [(y_of(score), f"{score:.4g}") for score in axis_ticks(low, high)]
    rows = f"{len(costs)} of {len(ranked)} rows"
    title = f"{find_heading(shown.ranked_by)} against {name}, {rows}"
    return Scatter(title, axis, points, x_ticks, y_ticks)


def _position_on_axis(value: float, ends: tuple[float, float], length: float) -> float:
    """Return where a value is, from the start of an axis."""
    share = (value - ends[0]) / ((ends[1] - ends[0]) or 1)
    return _MARGIN + (length - 2 * _MARGIN) * share
