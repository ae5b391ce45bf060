"""Paired tests of every number in a table against the best of its column, on the runs' per-example scores.

The tests use approximate randomization. P-values are corrected (Holm) over all tests of a group of comparable runs. The
correction does not account for choosing the best run by the same scores. In simulations with 20 equal systems, a
quarter of the tables (2 % of the rows) have a significant difference at the 5 % level.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from longsumbench.errors import DataError
from longsumbench.leaderboards.blocks import best_runs, numbers_shown
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import PERCENT, read_scores
from longsumbench.metrics.statistics import approximate_randomization, holm, smallest_detectable_difference
from longsumbench.report.tables import TIED
from longsumbench.runs.record import Results, RunRecord, measured_mean

LEVEL, _POWER = 0.05, 0.8
RESAMPLES = 10_000
RESAMPLES_A_TEST = 100  # lower bound, since p-values are at least 1 / resamples and Holm multiplies them by the tests


@dataclass(frozen=True)
class AgainstBest:
    """The results of testing runs against the best of each column.

    Attributes:
        p_values: (run id, number) → corrected p-value of its difference from the best run of that number.
        note: method, detectable differences and untested runs; empty if there was nothing to test.
    """

    p_values: Mapping[tuple[str, str], float] = field(default_factory=dict)
    note: str = ""

    def tied(self) -> frozenset[tuple[str, str]]:
        """Return the (run id, number) pairs that are not distinguishable from the best."""
        return frozenset(key for key, p in self.p_values.items() if p >= LEVEL)


def read_all_scores(results: Results, records: Sequence[RunRecord]) -> dict[str, pd.DataFrame]:
    """Return run id → its per-example scores, 0–1; runs without them are left out."""
    found = {record.run_id: scores_at_hand(results, record) for record in records}
    return {run: scores for run, scores in found.items() if scores is not None}


def scores_at_hand(results: Results, record: RunRecord) -> pd.DataFrame | None:
    """Return a run's per-example scores, 0–1; None if they are missing or damaged. Reports damaged ones."""
    folder = results.run_folder(record)
    if not (folder / "scores.csv").exists():
        return None
    try:
        return read_scores_of_run(folder, record)
    except DataError as error:
        results.leave_out(error)
        return None


def read_scores_of_run(folder: Path, record: RunRecord) -> pd.DataFrame:
    """Read a run's per-example scores, 0–1.

    Raises:
        DataError: the file is missing, is not a table of scores, or does not belong to the record.
    """
    path, again = folder / "scores.csv", "run it again with overwrite=true"
    scores = read_scores(path)
    if len(scores) != record.n:
        raise DataError(f"scores of {len(scores):,} examples, not of {record.n:,}; {again}", path)
    columns = [f"{kind}_{part}" for kind in ROUGE_HEADINGS for part in "prf"]
    if lacking := [name for name in columns if name not in scores or not scores[name].between(0, 1).all()]:
        raise DataError(f"column {lacking[0]} is missing or not between 0 and 1; {again}", path)
    if infinite := [name for name in scores if np.isinf(scores[name]).any()]:
        raise DataError(f"column {infinite[0]} has an infinite number; {again}", path)
    if len(twice := scores.index[scores.index.duplicated()].unique()):
        raise DataError(f"{len(twice)} ids are there twice (first: '{twice[0]}'); {again}", path)
    return scores


def against_best(members: Sequence[RunRecord], scores: Mapping[str, pd.DataFrame]) -> AgainstBest:
    """Test every shown number of the ranked runs against the best run of its column.

    A number that equals the best one needs no test.

    Args:
        members: comparable runs, best first; oracles are skipped.
        scores: run id → per-example scores, 0–1; a run without them is not tested.
    """
    ranked = [record for record in members if not record.oracle]
    differences: dict[tuple[str, str], pd.Series] = {}
    untested: dict[str, str] = {}
    for name, (highest, best) in best_runs(ranked, numbers_shown(members)).items():
        column = f"{name}_f" if name in ROUGE_HEADINGS else name
        for record in ranked:
            if (number := measured_mean(record, name)) is None or number.mean == highest:
                continue
            paired = _differences(scores.get(best.run_id), scores.get(record.run_id), column)
            if paired is None:
                untested[record.run_id] = record.label
            else:
                differences[record.run_id, name] = paired
    if not differences:
        return AgainstBest({}, "No row is tested against the best: scores.csv is missing." if untested else "")
    table = pd.DataFrame(dict(enumerate(differences.values()))).sort_index()
    resamples = max(RESAMPLES, RESAMPLES_A_TEST * len(differences))
    corrected = holm(approximate_randomization(table.fillna(0).to_numpy(), resamples))
    note = _note(table, resamples)
    if untested:
        names = ", ".join(untested.values())
        note += f" Not tested, because their scores.csv or that of the best run is missing: {names}."
    return AgainstBest(dict(zip(differences, corrected.tolist(), strict=True)), note)


def _differences(best: pd.DataFrame | None, other: pd.DataFrame | None, column: str) -> pd.Series | None:
    """Return best minus other, 0–1, for each example that has both; None if scores are missing."""
    if best is None or other is None or column not in best or column not in other:
        return None
    paired = (best[column] - other[column]).dropna()
    return paired if len(paired) else None


def _note(differences: pd.DataFrame, resamples: int) -> str:
    """Describe the tests and the range of their smallest detectable differences (0–100)."""
    tests = differences.shape[1]
    corrected = f"Holm's correction for {tests:,} {'tests' if tests > 1 else 'test'}"
    columns = [PERCENT * column.dropna().to_numpy() for _, column in differences.items()]
    detectable = [smallest_detectable_difference(column, LEVEL / tests, _POWER) for column in columns]
    return (
        f"{TIED}: not distinguishable from the best of its column (approximate randomization over examples, "
        f"{resamples:,} resamples, p ≥ {LEVEL} after {corrected}); {_power(detectable)}."
    )


def _power(detectable: Sequence[float]) -> str:
    """Describe which differences the tests would have found, and how many tests could not find any."""
    finite = [difference for difference in detectable if math.isfinite(difference)]
    if not finite:
        return "too few examples differ to find any difference"
    blind = len(detectable) - len(finite)
    rest = f"; in {blind} of the tests too few examples differ to find any" if blind else ""
    return f"a difference of {_range(finite)} would have been found 4 times in 5{rest}"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}, by row and column,"
