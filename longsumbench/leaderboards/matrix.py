"""Systems × datasets: a measure of each system on each dataset, and ranks. Begin with `read_matrices`.

A dataset has one column: the first block of its leaderboard that has the measure. Oracles are left out. Checkpoints
that were not trained here have a matrix for themselves, with the baselines.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import scipy  # loads scipy.stats when it is used

from longsumbench.errors import UsageError, did_you_mean
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.leaderboards.table import find_datasets, how_to_compute, read_table
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import name_runs


@dataclass(frozen=True)
class MatrixColumn:
    """A dataset: the first block of its leaderboard that has the measure.

    `labels` has (model, variant) → the name of such rows on all datasets.
    """

    dataset: str
    measure: str
    block: LeaderboardBlock
    labels: Mapping[tuple[str, str], str]

    @cached_property
    def rows(self) -> dict[str, ResultRow]:
        """Label → its row, best first, without oracles; of rows of one variant, the others have that of their table."""
        rows = [row for row in self.block.rows if self.measure in row.means]
        rows.sort(key=lambda row: -row.means[self.measure].mean)
        labelled: dict[str, ResultRow] = {}
        for row in rows:
            if not row.representative.oracle:
                label = self.labels[row.representative.key.model, row.representative.variant]
                labelled[row.label if label in labelled else label] = row
        return labelled

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Label → rank from 1 among the systems that learned; equal means share their average rank."""
        means = {}
        for label, row in self.rows.items():
            if row.ranked:
                means[label] = -row.means[self.measure].mean
        ranks = scipy.stats.rankdata(list(means.values()))
        return dict(zip(means, ranks.tolist(), strict=True))


@dataclass(frozen=True)
class Matrix:
    """A measure of each system on each dataset.

    Attributes:
        zero_shot: True for checkpoints that were not trained here.
        without: datasets without a run that has the measure.
    """

    columns: tuple[MatrixColumn, ...]
    zero_shot: bool = False
    without: tuple[str, ...] = ()

    @cached_property
    def systems(self) -> list[str]:
        """Labels; those with the most datasets first, then by mean rank."""
        labels: set[str] = set().union(*(column.rows for column in self.columns))
        return sorted(labels, key=lambda label: (-self.count(label), self.mean_rank(label), label))

    def mean_rank(self, system: str) -> float:
        """Return the mean of a system's ranks; infinite if it learned on no dataset."""
        ranks = [column.ranks[system] for column in self.columns if system in column.ranks]
        return float(np.mean(ranks)) if ranks else math.inf

    def count(self, system: str) -> int:
        """Return the number of datasets that a system has."""
        return sum(system in column.rows for column in self.columns)


def read_matrices(results: Results, measure: str | None = None) -> list[Matrix]:
    """Return the matrices of all finished runs, as `build_matrices` does.

    `measure` is a type of ROUGE, or of another metric; default: the ranking score of each dataset.

    Raises:
        UsageError: there are no finished runs, or none has the measure.
    """
    names = [measure] if measure else None
    blocks = {}
    for dataset in find_datasets(results):
        blocks[dataset] = read_table(results, dataset, names=names).comparable
    return build_matrices(blocks, measure)


def build_matrices(
    blocks: Mapping[str, Sequence[LeaderboardBlock]], measure: str | None = None
) -> list[Matrix]:
    """Return the matrices of tables (name of a dataset → its blocks): of trained systems, and of checkpoints.

    Raises:
        UsageError: none has the measure.
    """
    rows = chain.from_iterable(block.rows for tables in blocks.values() for block in tables)
    runs = {
        (row.representative.key.model, row.representative.variant): row.representative
        for row in rows
    }
    labels = {key: name.label for key, name in zip(runs, name_runs([*runs.values()]), strict=True)}
    # A dataset may have a column in both matrices, in one, or in none
    columns: dict[bool, dict[str, MatrixColumn]] = {False: {}, True: {}}
    for dataset, tables in blocks.items():
        for block in tables:
            column = MatrixColumn(dataset, measure or block.ranked_by, block, labels)
            if column.rows:
                columns[block.zero_shot].setdefault(dataset, column)
    without = tuple(name for name in blocks if name not in {**columns[False], **columns[True]})
    matrices = []
    for zero_shot, members in columns.items():
        if members:
            matrices.append(Matrix(tuple(members.values()), zero_shot, without))
    if not matrices:
        names: set[str] = set()
        for tables in blocks.values():
            for block in tables:
                names = names.union(*(row.means for row in block.rows))
        likely = how_to_compute(str(measure)) or did_you_mean(str(measure), sorted(names))
        raise UsageError(
            f"no finished run has a number '{measure}'{likely}; --columns help lists all"
        )
    return matrices
