"""Systems × datasets: a number of each system on each dataset, and ranks. Begin with `read_matrix`.

A dataset has one column: the first block of its leaderboard that has the number. Oracles are left out. Checkpoints
that were not trained here have a matrix for themselves, with the baselines.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import scipy  # loads scipy.stats when it is used

from longsumbench.errors import UsageError, did_you_mean
from longsumbench.leaderboards.significance import ComparableRows
from longsumbench.leaderboards.table import find_datasets, how_to_compute, read_table
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import name_runs


@dataclass(frozen=True)
class MatrixColumn:
    """A dataset: the first block of its leaderboard that has the number.

    Attributes:
        first: a run, for what all runs of the block have in common.
        cells: label of the system and its settings → the number, best first.
        ranks: label → rank from 1 among the systems that learned; equal means share their average rank.
        tied: labels of systems that are not distinguishable from the best.
        one_seed: labels of trained systems with one seed, which are never called the best.
    """

    dataset: str
    number: str
    first: RunRecord
    cells: Mapping[str, Estimate]
    ranks: Mapping[str, float]
    tied: frozenset[str] = frozenset()
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
    without: tuple[str, ...] = ()
    untrained: "Matrix | None" = None

    def mean_rank(self, system: str) -> float:
        """Return the mean of a system's ranks; infinite if it learned on no dataset."""
        ranks = [column.ranks[system] for column in self.columns if system in column.ranks]
        return float(np.mean(ranks)) if ranks else math.inf

    def count(self, system: str) -> int:
        """Return the number of datasets that a system has."""
        return sum(system in column.cells for column in self.columns)


def read_matrix(results: Results, number: str | None = None) -> Matrix:
    """Return the matrix of all finished runs.

    `number` is a type of ROUGE, or a measure; default: the ranking score of each dataset.

    Raises:
        UsageError: there are no finished runs, or none has the number.
    """
    names = [number] if number else None
    blocks = {}
    for dataset in find_datasets(results):
        blocks[dataset] = read_table(results, dataset, names=names).comparable
    return matrix_of_tables(blocks, number)


def matrix_of_tables(
    blocks: Mapping[str, Sequence[ComparableRows]], number: str | None = None
) -> Matrix:
    """Return the matrix of tables: name of a dataset → its blocks of comparable rows.

    Raises:
        UsageError: none has the number.
    """
    trained: list[MatrixColumn] = []
    checkpoints: list[MatrixColumn] = []
    without = []
    runs: dict[tuple[str, str], RunRecord] = {}
    for block in chain.from_iterable(blocks.values()):
        runs |= {(row.first.key.model, row.first.variant): row.first for row in block.rows}
    labels = {key: name.label for key, name in zip(runs, name_runs([*runs.values()]), strict=True)}
    for dataset, comparable in blocks.items():
        columns = [_column(dataset, comparable, number, kind, labels) for kind in (False, True)]
        # A dataset may have a column in both matrices, in one, or in none
        trained += filter(None, columns[:1])
        checkpoints += filter(None, columns[1:])
        if not any(columns):
            without.append(dataset)
    if not (trained or checkpoints):
        names: set[str] = set()
        for tables in blocks.values():
            for block in tables:
                names = names.union(*(row.numbers for row in block.rows))
        likely = how_to_compute(str(number)) or did_you_mean(str(number), sorted(names))
        raise UsageError(
            f"no finished run has a number '{number}'{likely}; --columns help lists all"
        )
    untrained = matrix_of(checkpoints) if checkpoints else None
    return replace(matrix_of(trained), without=tuple(without), untrained=untrained)


def matrix_of(columns: Sequence[MatrixColumn]) -> Matrix:
    """Return the matrix of some columns."""
    labels: set[str] = set().union(*(column.cells for column in columns))
    matrix = Matrix(tuple(columns), ())

    def order(label: str) -> tuple[int, float, str]:
        return -matrix.count(label), matrix.mean_rank(label), label

    return replace(matrix, systems=tuple(sorted(labels, key=order)))


def _column(
    dataset: str,
    comparable: Sequence[ComparableRows],
    number: str | None,
    zero_shot: bool,
    names: Mapping[tuple[str, str], str],
) -> MatrixColumn | None:
    """Return the column of the first block that has the number, is `zero_shot` or is not; None without one."""
    for block in comparable:
        name = number or block.rows[0].first.evaluation.ranked_by
        rows = [row for row in block.rows if name in row.numbers and not row.first.oracle]
        if block.zero_shot != zero_shot or not rows:
            continue
        # The best first: notes and the brief table rely on it
        rows.sort(key=lambda row: -row.numbers[name].mean)
        tests = block.tests.tied()
        labels: dict[
            str, str
        ] = {}  # key of a row → name; rows of one variant have that of their table
        for row in rows:
            label = names[row.first.key.model, row.first.variant]
            labels[row.key] = row.label if label in labels.values() else label
        cells = {labels[row.key]: row.numbers[name] for row in rows}
        ranked = {labels[row.key]: row.numbers[name] for row in rows if row.ranked}
        ranks = rank_systems(ranked)
        tied = frozenset(labels[row.key] for row in rows if (row.key, name) in tests)
        one_seed = frozenset(labels[row.key] for row in rows if row.one_seed)
        return MatrixColumn(dataset, name, rows[0].first, cells, ranks, tied, one_seed)
    return None


def rank_systems(cells: Mapping[str, Estimate]) -> dict[str, float]:
    """Return label → rank, the highest mean first; equal means share their average rank."""
    ranks = scipy.stats.rankdata([-cell.mean for cell in cells.values()])
    return dict(zip(cells, ranks.tolist(), strict=True))
