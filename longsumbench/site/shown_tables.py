"""What a dataset's page shows of a table: columns to choose from, rows with their runs, intervals and drawings.

Begin with `show_block`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longsumbench.formatting import describe_interval
from longsumbench.leaderboards.comparability import heading_of, numbers_shown
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import (
    DISTINGUISHED,
    UNDISTINGUISHED,
    ComparableRows,
)
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord
from longsumbench.views.leaderboard import leaderboard_block
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
_OUTCOME_TEXTS = {  # outcomes whose own words are not enough
    DISTINGUISHED: "the test tells them apart",
    UNDISTINGUISHED: "the test does not tell them apart",
}


@dataclass(frozen=True)
class ShownRow:
    """A row of a table.

    Attributes:
        difference: of its ranking score from that of the best row, with the half width of the interval; empty if the
            row is not ranked.
        interval: low, mean and high of the difference, and the best row, in percent of the axis; None if the row is
            not ranked.
        best: True if it may be the best.
    """

    group: SeedGroup
    cells: Sequence[str]
    difference: str
    interval: tuple[float, ...] | None
    best: bool


@dataclass(frozen=True)
class ShownBlock:
    """A block of comparable rows.

    Attributes:
        kinds: for each column, the kind by which readers choose it; empty for one that is always shown.
        score: place of the column with the ranking score.
        leads: sentences on how far the best row is ahead of the next one, and of the best baseline.
    """

    block: Block
    kinds: Sequence[str]
    rows: Sequence[ShownRow]
    ranked_by: str
    score: int
    leads: Sequence[str]


def show_block(comparable: ComparableRows, table: Sequence[ComparableRows]) -> ShownBlock:
    """Return a block with all columns that a reader may choose."""
    rows, ranked_by = comparable.rows, comparable.rows[0].first.evaluation.ranked_by
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
    best = rows_at_the_top(comparable)
    differences = _differences_from_best(comparable)
    bars = _bars(differences)
    texts = {key: f"{number:.1f}".replace("-", "−") for key, number in differences.items()}
    shown_rows = []
    for row, cells in zip(rows, block.rows, strict=True):
        difference, bar = texts.get(row.key, ""), bars.get(row.key)
        shown_rows.append(ShownRow(row, cells, difference, bar, row.key in best))
    kinds = [kind_of.get(name, "") for name in block.names]
    leads = _leads([row for row in shown_rows if row.interval], comparable, differences)
    return ShownBlock(block, kinds, shown_rows, ranked_by, block.names.index(ranked_by), leads)


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


def rows_at_the_top(comparable: ComparableRows) -> set[str]:
    """Return the keys of the rows that may be the best: the model confidence set, or the best row and its ties.

    There are none if the test of any ranked row is missing, or decides nothing.
    """
    tests = comparable.tests
    if tests.best_set:
        return {*tests.best_set}
    ranked = [row for row in comparable.rows if row.ranked]
    if not ranked or ranked[0].one_seed:
        return set()
    name = comparable.rows[0].first.evaluation.ranked_by
    # Every rival needs a test: without one, nobody is called the best
    top = {ranked[0].key}
    for row in ranked[1:]:
        if (row.key, name) in tests.tied():
            top.add(row.key)
        elif (row.key, name) not in tests.with_outcome(DISTINGUISHED):
            return set()
    return top


def _differences_from_best(comparable: ComparableRows) -> dict[str, Estimate]:
    """Return key of a ranked row → its difference from the best row, which is the first; NaN bounds without a test."""
    name = comparable.rows[0].first.evaluation.ranked_by
    ranked = [row for row in comparable.rows if row.ranked and name in row.numbers]
    differences = {}
    for row in ranked:
        mean = row.numbers[name].mean - ranked[0].numbers[name].mean
        judged = comparable.tests.differences.get((row.key, name))
        differences[row.key] = (
            Estimate(*judged[:3]) if judged else Estimate(mean, math.nan, math.nan)
        )
    return differences


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


def _leads(
    ranked: Sequence[ShownRow],
    comparable: ComparableRows,
    differences: Mapping[str, Estimate],
) -> list[str]:
    """Return how far the best row is ahead of the next one and of the best baseline, and what the tests say."""
    name = comparable.rows[0].first.evaluation.ranked_by
    baselines = [row for row in ranked if _is_baseline(row.group.first)][:1]
    rivals = [*ranked[1:2], *(row for row in baselines if row not in ranked[:2])]
    sentences: list[str] = []
    for row in rivals:
        subject = "It" if sentences else ranked[0].group.label
        rival = f"{row.group.label}, the best baseline" if row in baselines else row.group.label
        mean, low, high = differences[row.group.key]
        judged = comparable.tests.differences.get((row.group.key, name))
        outcome, interval = "not tested", ""
        if judged:
            outcome = judged.outcome
            interval = describe_interval(-high, -low, judged.confidence, ".1f")
        lead = f"{subject} has {abs(mean):.1f} more {heading_of(name)} than {rival}"
        lead += interval.replace("-", "−")
        sentences.append(f"{lead}: {_OUTCOME_TEXTS.get(outcome, outcome)}.")
    return sentences


def _is_baseline(run: RunRecord) -> bool:
    """Return True if nothing was trained here, and no summarizer was loaded or imported."""
    return not (run.trained or run.imported or run.system.checkpoint)
