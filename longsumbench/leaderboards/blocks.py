"""The blocks of a leaderboard: rows of comparable systems, best first, with their scores and costs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from longsumbench.formatting import format_count
from longsumbench.leaderboards.columns import Column, columns_of
from longsumbench.leaderboards.comparability import describe_difference, numbers_shown
from longsumbench.leaderboards.notes import describe_method, describe_untrained, footnotes
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import ComparableRows, best_rows
from longsumbench.render.tables import Block, Stressed, Tied
from longsumbench.runs.record import SHORT_ID, ranking_score

_WHO, _COST = ("system", "settings"), ("length", "source_seen", "source_copied", "seconds", "run")
_CHECKPOINT_COLUMNS = (
    "price",
    "parameters",
    "context",
    "released",
    "prompt",
    "length_ratio",
)  # shown if facts about any system are known
_FIRST_LEFT_OUT = (
    "seconds",
    "source_copied",
    "source_seen",
    "seeds",
    "seed",
    "length",
)  # after scores that do not rank


def leaderboard_block(
    comparable: ComparableRows, table: Sequence[ComparableRows], part: str = "f", column_names: Sequence[str] = ()
) -> Block:
    """Return the ranking of comparable systems, followed by their oracles.

    Args:
        comparable: the systems.
        table: all blocks of the table; the heading describes how this one differs from the first.
        part: the part of ROUGE that the rows have as F, a key of `ROUGE_PARTS`.
        column_names: the columns after system and settings; empty for the default ones.
    """
    rows, tests = comparable.rows, comparable.tests
    number = next(number for number, block in enumerate(table, 1) if block is comparable)
    heading = (f"block {number}: " if table[1:] else "") + describe_block(comparable, table)
    if unlike := describe_difference(rows[0].first, table[0].rows[0].first):
        heading += f"; not comparable with the first block: {unlike}"
    columns, optional = _columns(rows, part, column_names)
    names = {column.name for column in columns}
    block = table_block(columns, row_cells(comparable, columns), describe_method(tests))
    return replace(
        block,
        heading=heading,
        notes=(untrained,) if (untrained := describe_untrained(rows)) else (),
        optional=tuple(column.heading for column in optional),
        footnotes=footnotes(comparable, names, part),
    )


def describe_block(comparable: ComparableRows, table: Sequence[ComparableRows]) -> str:
    """Describe what comparable runs have in common: "test split, 183 examples, texts of my_texts".

    Own texts also have their fingerprint if other blocks of the table have other texts.
    """
    run, texts = comparable.rows[0].first, ""
    if path := run.settings.dataset.path:
        several = any(block.rows[0].first.fingerprint != run.fingerprint for block in table)
        texts = f", texts of {PurePath(path).name or path}" + (
            f" (fingerprint {run.fingerprint[:SHORT_ID]})" if several else ""
        )
    untrained = ", systems that were not trained here" if comparable.zero_shot else ""
    return f"{run.split} split, {format_count(run.n, 'example')}{texts}{untrained}"


def _columns(rows: Sequence[SeedGroup], part: str, column_names: Sequence[str]) -> tuple[list[Column], list[Column]]:
    """Return the columns of a block, and those that a narrow terminal leaves out, the least important first."""
    all_columns = columns_of((run for row in rows for run in row.runs), part)
    if column_names:
        columns = [all_columns[name] for name in dict.fromkeys((*_WHO, *column_names)) if name in all_columns]
        return columns, columns[:1:-1]
    ranked_by, seeds = ranking_score(rows[0].first), seeds_column(rows)
    numbers = list(numbers_shown([row.first for row in rows]))
    facts = _CHECKPOINT_COLUMNS if any(run.system for row in rows for run in row.runs) else ()
    names = [*_WHO, seeds, *numbers, *facts, *_COST]
    optional = [*(name for name in reversed(numbers) if name != ranked_by), *_FIRST_LEFT_OUT, *_CHECKPOINT_COLUMNS]
    return [all_columns[name] for name in names], [all_columns[name] for name in optional if name in names]


def seeds_column(rows: Sequence[SeedGroup]) -> str:
    """Return the name of the column of seeds: their number, or the seed itself if each row is a single run."""
    return "seeds" if any(len(row.runs) > 1 for row in rows) else "seed"


def row_cells(comparable: ComparableRows, columns: Sequence[Column]) -> list[list[str]]:
    """Return for each row its place and its cells; oracles and systems that did not learn have no place and marks."""
    ranked, tied = [row for row in comparable.rows if row.ranked], comparable.tests.tied()
    best = {}
    if len(ranked) > 1:
        names = numbers_shown([row.first for row in comparable.rows])
        best = {name: row.numbers[name].mean for name, row in best_rows(ranked, names).items()}
    lines, place = [], 0
    for row in comparable.rows:
        cells = [column.cell(row) for column in columns]
        if not row.ranked:
            lines.append(["", *cells])
            continue
        place += 1
        for number, column in enumerate(columns):
            if column.name in row.numbers and row.numbers[column.name].mean == best.get(column.name):
                cells[number] = Stressed(cells[number])
            elif (row.key, column.name) in tied:
                cells[number] = Tied(cells[number])
        lines.append([str(place), *cells])
    return lines


def table_block(columns: Sequence[Column], cells: Sequence[Sequence[str]], method: str = "") -> Block:
    """Return a block of the lines of `row_cells`, without empty columns; `method` names the tests of its marks."""
    return Block(
        "",
        (),
        ("", *(column.heading for column in columns)),
        "r" + "".join(column.align for column in columns),
        cells,
        groups=("", *(column.group for column in columns)),
        tied="not distinguishable from the best" + (f" ({method})" if method else ""),
    ).without_empty_columns()
