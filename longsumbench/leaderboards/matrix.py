"""Systems × datasets: a number of each system on each dataset, and ranks.

    Results --read_matrix--> Matrix --update_matrix--> matrix.csv, matrix.md, matrix.tex

A dataset has one column: the first block of its leaderboard that has the number. Oracles are left out. Checkpoints
that were not trained here have a matrix for themselves, with the baselines.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.stats

from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import format_count
from longsumbench.leaderboards.columns import how_to_compute
from longsumbench.leaderboards.comparability import heading_of
from longsumbench.leaderboards.significance import METHOD, ComparableRows
from longsumbench.leaderboards.table import find_datasets, read_table
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.results import Results
from longsumbench.views import tables
from longsumbench.views.tables import Block, Stressed, Tied, csv_text, with_bounds

_NOT_TRAINED = "systems that were not trained here"
_UNTRAINED_NOTE = (
    "Checkpoints as they are, and the baselines. Their training texts may include these."
)
MATRIX_HEADING = "Systems × datasets"


@dataclass(frozen=True)
class MatrixColumn:
    """A dataset: the first block of its leaderboard that has the number.

    Attributes:
        texts: split and number of examples ("test split, 400 examples").
        cells: label of the system and its settings → the number, best first.
        ranks: label → rank from 1 among the systems that learned; equal means share their average rank.
        tied: labels of systems that are not distinguishable from the best.
        one_seed: labels of trained systems with one seed, which are never called the best.
    """

    dataset: str
    number: str
    texts: str
    cells: Mapping[str, Estimate]
    ranks: Mapping[str, float]
    tied: frozenset[str]
    one_seed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Matrix:
    """A number of each system on each dataset.

    Attributes:
        systems: labels; those with the most datasets first, then by mean rank.
        without: datasets without a run that has the number.
        untrained: the matrix of checkpoints that were not trained here; None if there are none.
    """

    columns: tuple[MatrixColumn, ...]
    systems: tuple[str, ...]
    without: tuple[str, ...]
    untrained: "Matrix | None" = None

    def mean_rank(self, system: str) -> float:
        """Return the mean of a system's ranks; infinite if it learned on no dataset."""
        ranks = [column.ranks[system] for column in self.columns if system in column.ranks]
        return float(np.mean(ranks)) if ranks else math.inf

    def count(self, system: str) -> int:
        """Return the number of datasets that a system has."""
        return sum(system in column.cells for column in self.columns)

    @property
    def empty(self) -> int:
        """The number of empty cells."""
        return sum(len(self.columns) - self.count(system) for system in self.systems)


def read_matrix(results: Results, number: str | None = None) -> Matrix:
    """Return the matrix of all finished runs.

    `number` is a type of ROUGE, or a measure; default: the ranking score of each dataset.

    Raises:
        UsageError: there are no finished runs, or none has the number.
    """
    datasets = find_datasets(results)
    return matrix_of_tables(
        {
            name: read_table(results, name, names=number and [number]).comparable
            for name in datasets
        },
        number,
    )


def matrix_of_tables(
    blocks: Mapping[str, Sequence[ComparableRows]], number: str | None = None
) -> Matrix:
    """Return the matrix of tables: name of a dataset → its blocks of comparable rows.

    Raises:
        UsageError: none has the number.
    """
    trained, untrained = (
        {
            dataset: _column(dataset, comparable, number, kind)
            for dataset, comparable in blocks.items()
        }
        for kind in (False, True)
    )
    columns = [column for column in trained.values() if column]
    checkpoints = [column for column in untrained.values() if column]
    if not (columns or checkpoints):
        names = {
            name
            for tables in blocks.values()
            for block in tables
            for row in block.rows
            for name in row.numbers
        }
        likely = how_to_compute(str(number)) or did_you_mean(str(number), sorted(names))
        raise UsageError(
            f"no finished run has a number '{number}'{likely}; --columns help lists all"
        )
    without = tuple(dataset for dataset in blocks if not (trained[dataset] or untrained[dataset]))
    return replace(
        matrix_of(columns, without), untrained=matrix_of(checkpoints) if checkpoints else None
    )


def matrix_of(columns: Sequence[MatrixColumn], without: tuple[str, ...] = ()) -> Matrix:
    """Return the matrix of some columns; `without` are datasets that have no column."""
    labels = dict.fromkeys(label for column in columns for label in column.cells)
    matrix = Matrix(tuple(columns), tuple(labels), without)
    ordered = sorted(
        labels, key=lambda label: (-matrix.count(label), matrix.mean_rank(label), label)
    )
    return replace(matrix, systems=tuple(ordered))


def _column(
    dataset: str, comparable: Sequence[ComparableRows], number: str | None, zero_shot: bool
) -> MatrixColumn | None:
    """Return the column of the first block that has the number, is `zero_shot` or is not; None without one."""
    for block in (block for block in comparable if block.zero_shot == zero_shot):
        name = number or block.rows[0].first.evaluation.ranked_by
        rows = [row for row in block.rows if name in row.numbers and not row.first.oracle]
        if not rows:
            continue
        rows.sort(key=lambda row: -row.numbers[name].mean)
        cells = {row.label: row.numbers[name] for row in rows}
        tied = frozenset(row.label for row in rows if (row.key, name) in block.tests.tied())
        first = rows[0].first
        texts = f"{first.key.split} split, {format_count(first.evaluation.n, 'example')}"
        ranks = ranked({row.label: row.numbers[name] for row in rows if row.ranked})
        one_seed = frozenset(row.label for row in rows if row.one_seed)
        return MatrixColumn(dataset, name, texts, cells, ranks, tied, one_seed)
    return None


def ranked(cells: Mapping[str, Estimate]) -> dict[str, float]:
    """Return label → rank, the highest mean first; equal means share their average rank."""
    ranks = scipy.stats.rankdata([-cell.mean for cell in cells.values()])
    return dict(zip(cells, ranks.tolist(), strict=True))


def matrix_blocks(matrix: Matrix, brief: bool = False) -> list[Block]:
    """Return the tables of a matrix: of trained systems, and of checkpoints that were not trained here.

    Arguments as in `matrix_block`.
    """
    blocks = [matrix_block(matrix, brief)] if matrix.columns else []
    if matrix.untrained is not None:
        block = matrix_block(matrix.untrained, brief)
        earlier_lines = {line for table in blocks for line in table.footnotes}
        lines = tuple(line for line in block.footnotes if line not in earlier_lines)
        blocks.append(
            replace(block, heading=_NOT_TRAINED, notes=(_UNTRAINED_NOTE,), footnotes=lines)
        )
    return blocks


def matrix_block(matrix: Matrix, brief: bool = False) -> Block:
    """Return the table: a row for each system, a column for each dataset.

    A brief table leaves out the systems that have one dataset, if others have more, and counts them. The best system of
    each dataset is always shown.
    """
    several = any(matrix.count(system) > 1 for system in matrix.systems)
    best = {next(iter(column.ranks or column.cells)) for column in matrix.columns}
    rows = []
    for system in matrix.systems:
        if brief and several and matrix.count(system) < 2 and system not in best:
            continue
        cells = [_matrix_cell(column, system) for column in matrix.columns]
        rank = matrix.mean_rank(system)
        rows.append(
            [
                system,
                *cells,
                f"{rank:.1f}" if math.isfinite(rank) else "",
                str(matrix.count(system)),
            ]
        )
    headings = [
        column.dataset.replace("_", "_\n") + f"\n{heading_of(column.number)}"
        for column in matrix.columns
    ]
    fewest = sorted(range(len(headings)), key=lambda place: len(matrix.columns[place].cells))
    notes = _matrix_notes(matrix)
    if left_out := len(matrix.systems) - len(rows):
        notes = (
            *notes,
            f"Other systems with one dataset, only in leaderboard/matrix.md: {left_out}.",
        )
    return Block(
        "",
        (),
        ("system", *headings, "mean\nrank", "data-\nsets"),
        f"l{'r' * (len(headings) + 2)}",
        rows,
        optional=tuple(headings[place] for place in fewest),
        tied=f"not distinguishable from the best ({METHOD})",
        footnotes=notes,
    )


def _matrix_cell(column: MatrixColumn, system: str) -> str:
    if system not in column.cells:
        return ""
    text = f"{column.cells[system]:.1f}"
    if system not in column.ranks:
        return f"({text})"
    best = column.ranks[system] == min(column.ranks.values()) and len(column.ranks) > 1
    if best and system not in column.one_seed:
        return Stressed(text)
    return Tied(text) if system in column.tied else text


def _matrix_notes(matrix: Matrix) -> tuple[str, ...]:
    texts = "; ".join(f"{column.dataset}: {column.texts}" for column in matrix.columns)
    notes = [
        f"Means over seeds (0–100) ± half their 95 % interval. Each dataset has the first block of its leaderboard "
        f"({texts}).",
        "Mean rank: over the datasets that a system has; equal means share their average rank.",
    ]
    if any(len(column.ranks) < len(column.cells) for column in matrix.columns):
        notes.append("In parentheses: systems that are not ranked on the dataset.")
    if matrix.empty:
        cells = format_count(len(matrix.systems) * len(matrix.columns), "cell")
        notes.append(
            f"{matrix.empty:,} of {cells} are empty: the system has no comparable run on the dataset."
        )
    if matrix.without:
        notes.append(f"No run has the number on {', '.join(matrix.without)}.")
    return tuple(notes)


def matrix_csv(matrix: Matrix) -> str:
    """Return a row for each system: of each dataset the number, its interval and rank; empty where it has no run.

    If there are checkpoints that were not trained here, the column `block` says in which of the two tables a row is.
    """
    rows = _csv_rows(matrix)
    if matrix.untrained is not None:
        untrained = [{**row, "block": "not trained here"} for row in _csv_rows(matrix.untrained)]
        rows = [{**row, "block": "trained here"} for row in rows] + untrained
    return csv_text(rows)


def _csv_rows(matrix: Matrix) -> list[dict[str, Any]]:
    rows = []
    for system in matrix.systems:
        row: dict[str, Any] = {
            "system": system,
            "mean_rank": None if math.isinf(rank := matrix.mean_rank(system)) else rank,
            "datasets": matrix.count(system),
        }
        for column in matrix.columns:
            row |= with_bounds(f"{column.dataset}_{column.number}", column.cells.get(system))
            row[f"{column.dataset}_rank"] = column.ranks.get(system)
        rows.append(row)
    return rows


def update_matrix(results: Results, number: str | None = None) -> Matrix:
    """Write `leaderboard/matrix.csv`, `.md` and `.tex`; return the matrix.

    `number` is a type of ROUGE, or a measure; default: the ranking score of each dataset.

    Raises:
        UsageError: there are no finished runs, or none has the number.
    """
    with results.leaderboard_lock("matrix"):
        matrix = read_matrix(results, number)
        blocks = matrix_blocks(matrix)
        results.write_leaderboard(
            {
                "matrix.csv": matrix_csv(matrix),
                "matrix.md": tables.markdown(MATRIX_HEADING, blocks),
                "matrix.tex": tables.latex(MATRIX_HEADING, blocks),
            }
        )
    return matrix
