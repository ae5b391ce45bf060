"""What a dataset's page shows of a table: columns to choose from, rows with their runs, intervals on an axis."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from longsumbench.leaderboards.columns import columns_of
from longsumbench.leaderboards.comparability import numbers_shown
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import ComparableRows
from longsumbench.leaderboards.table import leaderboard_block
from longsumbench.render.tables import Block

_MOST_METRICS = 12
BY_PLACE = ("_position_", "_distance_")  # in names of measures that pictures show together
_COLUMN_KINDS = {  # kind → its columns, besides the scores
    "words": ("length",),
    "cost": ("seconds", "summarize_seconds", "peak_memory_gb", "price"),
    "reading": ("source_seen", "source_copied", "outputs_cut", "repetitive", "length_ratio"),
    "system": ("parameters", "context", "released", "prompt", "steps"),
}
SHOWN_KINDS = ("scores", "words", "cost")  # until the reader chooses


class ShownRow(NamedTuple):
    """A row of a table."""

    group: SeedGroup
    cells: Sequence[str]
    interval: tuple[float, ...] | None  # low, mean, high of the ranking score in percent of the axis, if it is ranked
    best: bool  # in the set of best systems


class ShownBlock(NamedTuple):
    """A block of comparable rows; `kinds` has an entry for each column, empty for one that is always shown."""

    block: Block
    kinds: Sequence[str]
    rows: Sequence[ShownRow]
    ranked_by: str
    score: int  # place of the column with the ranking score


def shown_block(comparable: ComparableRows, table: Sequence[ComparableRows]) -> ShownBlock:
    """Return a block with all columns that a reader may choose.

    Without a set of best systems, the rows that are not distinguishable from the best are the best ones.
    """
    rows, tests, ranked_by = comparable.rows, comparable.tests, comparable.rows[0].first.ranked_by
    numbers = numbers_shown([row.first for row in rows])
    measured = dict.fromkeys(name for row in rows for name in row.numbers)
    others = [name for name in measured if name not in numbers and not any(word in name for word in BY_PLACE)]
    kinds = {"scores": [*numbers], "other metrics": others[:_MOST_METRICS], **_COLUMN_KINDS}
    kind_of = {name: kind for kind, names in kinds.items() for name in names}
    block = leaderboard_block(comparable, table, "f", (*kind_of, "run"))
    headings = {column.heading: name for name, column in columns_of(row.first for row in rows).items()}
    names = [headings.get(heading, "") for heading in block.columns]
    best = tests.best_set or {key for key, name in tests.tied() if name == ranked_by}
    best = {*best, *([] if tests.best_set else [row.key for row in rows if row.ranked][:1])}
    bars, pairs = _intervals(rows, ranked_by), zip(rows, block.rows, strict=True)
    shown = [ShownRow(row, cells, bars.get(row.key), row.key in best) for row, cells in pairs]
    return ShownBlock(block, [kind_of.get(name, "") for name in names], shown, ranked_by, names.index(ranked_by))


def _intervals(rows: Sequence[SeedGroup], name: str) -> dict[str, tuple[float, ...]]:
    """Return key of a ranked row → low, mean and high, in percent of the axis from the lowest to the highest end."""
    numbers = {row.key: row.numbers[name] for row in rows if row.ranked and name in row.numbers}
    ends = {
        key: [number.mean if math.isnan(end) else end for end in (number.low, number.mean, number.high)]
        for key, number in numbers.items()
    }
    start, end = min(map(min, ends.values()), default=0.0), max(map(max, ends.values()), default=0.0)
    return {key: tuple(round(100 * (v - start) / (end - start or 1), 1) for v in each) for key, each in ends.items()}
