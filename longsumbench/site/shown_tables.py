"""What a dataset's page shows of a table: columns to choose from, rows with their runs, intervals and drawings.

Begin with `show_block`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longsumbench.leaderboards.comparability import numbers_shown
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.metrics.aggregate import Estimate
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.outcomes import describe_leader
from longsumbench.views.tables import Block

_MOST_METRICS = 12
BY_PLACE = ("_position_", "_distance_")  # in names of measures that pictures show together
_COLUMN_KINDS = {  # kind → its columns, besides the scores
    "words": ("length",),
    "cost": ("seconds", "summarize_seconds", "peak_memory_gb", "price"),
    "reading": ("source_seen", "source_copied", "outputs_cut", "repetitive", "length_ratio"),
    "system": ("parameters", "context", "released", "prompt", "steps"),
}
_FEWEST_MARKS = 2


@dataclass(frozen=True)
class SiteRow:
    """A row of a table.

    Attributes:
        difference: of its ranking score from that of the best row, with the half width of the interval; empty if the
            row is not ranked.
        interval: low, mean and high of the difference, and the best row, in percent of the axis; None if the row is
            not ranked.
        best: True if it may be the best.
    """

    group: ResultRow
    cells: Sequence[str]
    difference: str
    interval: tuple[float, ...] | None
    best: bool


@dataclass(frozen=True)
class SiteTable:
    """A block of comparable rows.

    Attributes:
        kinds: for each column, the kind by which readers choose it; empty for one that is always shown.
        score: place of the column with the ranking score.
        lead: the sentence on who is ahead.
    """

    block: Block
    kinds: Sequence[str]
    rows: Sequence[SiteRow]
    ranked_by: str
    score: int
    lead: str


def show_block(comparable: LeaderboardBlock, table: Sequence[LeaderboardBlock]) -> SiteTable:
    """Return a block with all columns that a reader may choose."""
    rows, ranked_by = comparable.rows, comparable.ranked_by
    # A reader switches kinds of columns on and off
    kind_of = dict.fromkeys(numbers_shown([row.first for row in rows]), "scores")
    others: list[str] = []
    for row in rows:
        for name in row.numbers:
            is_by_place = any(word in name for word in BY_PLACE)
            if not is_by_place and name not in (*kind_of, *others):
                others.append(name)
    kind_of |= dict.fromkeys(others[:_MOST_METRICS], "other metrics")
    for kind, columns_of_kind in _COLUMN_KINDS.items():
        kind_of |= dict.fromkeys(columns_of_kind, kind)
    kind_of |= {ranked_by: "", "run": "runs"}
    block = leaderboard_block(comparable, table, "f", tuple(kind_of))
    best = comparable.top_rows()
    differences = {}
    for row in comparable.ranked:
        differences[row.key] = Estimate(*comparable.compare_with_best(row)[:3])
    bars = _bars(differences)
    texts = {key: f"{number:.1f}".replace("-", "−") for key, number in differences.items()}
    shown_rows = []
    for row, cells in zip(rows, block.rows, strict=True):
        difference, bar = texts.get(row.key, ""), bars.get(row.key)
        shown_rows.append(SiteRow(row, cells, difference, bar, row.key in best))
    kinds = [kind_of.get(name, "") for name in block.names]
    lead = describe_leader(comparable)
    return SiteTable(block, kinds, shown_rows, ranked_by, block.names.index(ranked_by), lead)


def axis_ticks(low: float, high: float, marks: Sequence[float] = ()) -> list[float]:
    """Return where an axis from `low` to `high` has ticks: at `marks` if two lie there, else at round numbers."""
    ticks = [mark for mark in marks if low <= mark <= high]
    if len(ticks) >= _FEWEST_MARKS:
        return ticks
    if not high > low:
        return [low]
    # The first step is too wide; halves of it stay round numbers
    step = 2 * 10.0 ** math.floor(math.log10(high - low))
    while math.floor(high / step) - math.ceil(low / step) < _FEWEST_MARKS:  # fewer than three ticks
        step /= 2
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [round(place * step, 12) for place in places]


def _bars(differences: Mapping[str, Estimate]) -> dict[str, tuple[float, ...]]:
    """Return key of a row → low, mean and high of its difference, and 0, in percent of their common axis."""
    ends = {}
    for key, (mean, low, high) in differences.items():
        ends[key] = (mean, mean, mean, 0.0) if math.isnan(low) else (low, mean, high, 0.0)
    start = min(map(min, ends.values()), default=0.0)
    width = max(map(max, ends.values()), default=0.0) - start or 1
    bars = {}
    for key, values in ends.items():
        bars[key] = tuple(round(100 * (value - start) / width, 1) for value in values)
    return bars
