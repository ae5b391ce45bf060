"""What a dataset's page shows of a table: columns to choose from, rows with their runs, intervals on an axis."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from longsumbench.leaderboards.comparability import heading_of, numbers_shown
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import DISTINGUISHED, ComparableRows
from longsumbench.metrics.aggregate import PERCENT, read_scores
from longsumbench.metrics.evaluate import score_column
from longsumbench.runs.results import split_read_by
from longsumbench.views.columns import columns_of
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.tables import Block

_MOST_METRICS = 12
_QUARTERS, _ROWS_BY_LENGTH, _FEWEST_EXAMPLES = 4, 10, 40
BY_PLACE = ("_position_", "_distance_")  # in names of measures that pictures show together
_COLUMN_KINDS = {  # kind → its columns, besides the scores
    "words": ("length",),
    "cost": ("seconds", "summarize_seconds", "peak_memory_gb", "price"),
    "reading": ("source_seen", "source_copied", "outputs_cut", "repetitive", "length_ratio"),
    "system": ("parameters", "context", "released", "prompt", "steps"),
}
_FEWEST_MARKS = 2
SHOWN_KINDS = ("scores", "words", "cost")  # until the reader chooses


class ShownRow(NamedTuple):
    """A row of a table."""

    group: SeedGroup
    cells: Sequence[str]
    interval: (
        tuple[float, ...] | None
    )  # low, mean, high of the ranking score in percent of the axis, if it is ranked
    best: bool  # it may be the best


class ShownBlock(NamedTuple):
    """A block of comparable rows; `kinds` has an entry for each column, empty for one that is always shown."""

    block: Block
    kinds: Sequence[str]
    rows: Sequence[ShownRow]
    ranked_by: str
    score: int  # place of the column with the ranking score


def shown_block(comparable: ComparableRows, table: Sequence[ComparableRows]) -> ShownBlock:
    """Return a block with all columns that a reader may choose."""
    rows, ranked_by = comparable.rows, comparable.rows[0].first.evaluation.ranked_by
    numbers = numbers_shown([row.first for row in rows])
    measured = dict.fromkeys(name for row in rows for name in row.numbers)
    others = [
        name
        for name in measured
        if name not in numbers and not any(word in name for word in BY_PLACE)
    ]
    kinds = {"scores": [*numbers], "other metrics": others[:_MOST_METRICS], **_COLUMN_KINDS}
    kind_of = {name: kind for kind, names in kinds.items() for name in names}
    block = leaderboard_block(comparable, table, "f", (*kind_of, "run"))
    headings = {
        column.heading: name for name, column in columns_of(row.first for row in rows).items()
    }
    names = [headings.get(heading, "") for heading in block.columns]
    best = rows_at_the_top(comparable)
    bars, pairs = _intervals(rows, ranked_by), zip(rows, block.rows, strict=True)
    shown_rows = [ShownRow(row, cells, bars.get(row.key), row.key in best) for row, cells in pairs]
    return ShownBlock(
        block,
        [kind_of.get(name, "") for name in names],
        shown_rows,
        ranked_by,
        names.index(ranked_by),
    )


def settings_on_card(rows: Sequence[ShownRow]) -> dict[str, str]:
    """Return key of a row → the settings in which it differs from the card's other rows of its model.

    A model's only row has all its settings.
    """
    texts = {}
    for row in rows:
        same_model = [
            shown.group
            for shown in rows
            if shown.group.first.key.model == row.group.first.key.model
        ]
        shared = (
            set.intersection(*(set(_settings_of(group)) for group in same_model))
            if same_model[1:]
            else set()
        )
        texts[row.group.key] = ", ".join(
            part for part in _settings_of(row.group) if part not in shared
        )
    return texts


def _settings_of(group: SeedGroup) -> tuple[str, ...]:
    return group.table_settings or group.settings


def axis_ticks(low: float, high: float, marks: Sequence[float] = ()) -> list[float]:
    """Return where an axis from `low` to `high` has ticks: at `marks` if two lie there, else at round numbers."""
    ticks = [mark for mark in marks if low <= mark <= high]
    if len(ticks) >= _FEWEST_MARKS:
        return ticks
    if not high > low:
        return [low]
    step = 2 * 10.0 ** math.floor(math.log10(high - low))
    while math.floor(high / step) - math.ceil(low / step) < _FEWEST_MARKS:  # fewer than three ticks
        step /= 2
    return [
        round(place * step, 12)
        for place in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]


def rows_at_the_top(comparable: ComparableRows) -> set[str]:
    """Return the keys of the rows that may be the best: the model confidence set, or the best row and its ties.

    There are none if the test of any ranked row is missing, or decides nothing.
    """
    tests = comparable.tests
    ranked = [row for row in comparable.rows if row.ranked]
    if tests.best_set:
        return {*tests.best_set}
    if any(row.one_seed for row in ranked[:1]):
        return set()
    name = comparable.rows[0].first.evaluation.ranked_by
    tied, below = tests.tied(), tests.with_outcome(DISTINGUISHED)
    if any((row.key, name) not in tied | below for row in ranked[1:]):
        return set()
    return {row.key for row in ranked[:1]} | {
        row.key for row in ranked[1:] if (row.key, name) in tied
    }


def _intervals(rows: Sequence[SeedGroup], name: str) -> dict[str, tuple[float, ...]]:
    """Return key of a ranked row → low, mean and high, in percent of the axis from the lowest to the highest end."""
    numbers = {row.key: row.numbers[name] for row in rows if row.ranked and name in row.numbers}
    ends = {
        key: [
            number.mean if math.isnan(end) else end
            for end in (number.low, number.mean, number.high)
        ]
        for key, number in numbers.items()
    }
    start, end = (
        min(map(min, ends.values()), default=0.0),
        max(map(max, ends.values()), default=0.0),
    )
    return {
        key: tuple(round(100 * (v - start) / (end - start or 1), 1) for v in each)
        for key, each in ends.items()
    }


def scores_by_length(shown: ShownBlock, folders: Mapping[str, Path]) -> Block | None:
    """Return the mean ranking scores of the best rows by the length of the source, in four equal parts of the examples.

    Sources are counted in words. None if the texts are not here, or for few examples. `folders` are those of the runs.

    Raises:
        DataError: the scores of a run are damaged.
    """
    rows = [row.group for row in shown.rows if row.group.ranked][:_ROWS_BY_LENGTH]
    split = next(
        filter(None, (split_read_by(folders[run.run_id], run) for row in rows for run in row.runs)),
        None,
    )
    if split is None:
        return None
    column, scores = (
        score_column(shown.ranked_by),
        dict[str, pd.Series](),
    )  # label → score of each example
    for row in rows:
        files = [folders[run.run_id] / "scores.csv" for run in row.runs]
        tables = [
            table[column]
            for file in files
            if file.is_file() and column in (table := read_scores(file))
        ]
        if tables:
            scores[row.label] = PERCENT * pd.concat(tables).groupby(level=0).mean()
    words = pd.Series(split.source_words, index=split.ids).loc[
        lambda each: each.index.isin({*pd.DataFrame(scores).index})
    ]
    if len(words) < _FEWEST_EXAMPLES:
        return None
    quarters = pd.qcut(words.rank(method="first"), _QUARTERS, labels=False)
    ends, cells = words.groupby(quarters).agg(["min", "max"]), list[tuple[str, ...]]()
    for label, each in scores.items():
        cells.append((label, *(f"{mean:.1f}" for mean in each.groupby(quarters).mean())))
    columns = ("system", *(f"{low:,}–{high:,} words" for low, high in ends.itertuples(index=False)))
    heading = f"{heading_of(shown.ranked_by)} by the length of the source"
    return Block(heading, (), columns, "l" + "r" * _QUARTERS, cells)
