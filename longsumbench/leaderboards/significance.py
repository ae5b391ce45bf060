"""Which numbers of a table cannot be told from the best of their column: paired tests on the runs' per-example scores.

Every shown number of every ranked run is tested against the best run of its column by approximate randomization; the
p-values are corrected over all the tests of the runs that may be compared. The best is chosen by the same scores, which
no correction makes up for: of 20 equal systems the last ones differ from it at 5 % in a quarter of the tables (2 % of
the rows), as simulations show.
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
from longsumbench.metrics.statistics import holm, randomization_p_values, smallest_detectable_difference
from longsumbench.report.tables import TIED
from longsumbench.runs.record import SHORT_ID, Results, RunRecord, measured_mean

LEVEL, _POWER = 0.05, 0.8
RESAMPLES = 10_000
RESAMPLES_A_TEST = 100  # or more than that: no p-value is below 1 / resamples, and the correction multiplies by tests


@dataclass(frozen=True)
class AgainstBest:
    """What the tests of runs against the best of each column found.

    Attributes:
        p_values: (run id, number) → corrected p-value of its difference from the best run of that number.
        note: how was tested, what could have been found, and what could not be tested; empty where nothing was to be.
    """

    p_values: Mapping[tuple[str, str], float] = field(default_factory=dict)
    note: str = ""

    def tied(self) -> frozenset[tuple[str, str]]:
        """Return the (run id, number) that cannot be told from the best."""
        return frozenset(key for key, p in self.p_values.items() if p >= LEVEL)


def read_all_scores(results: Results, records: Sequence[RunRecord]) -> dict[str, pd.DataFrame]:
    """Return run id → its per-example scores, 0–1, of the runs that have a table of them."""
    found = {record.run_id: scores_at_hand(results, record) for record in records}
    return {run: scores for run, scores in found.items() if scores is not None}


def scores_at_hand(results: Results, record: RunRecord) -> pd.DataFrame | None:
    """Return a run's per-example scores, 0–1; None if there are none, or if they are damaged, which is reported."""
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
        DataError: the file is missing, no table of scores, or does not belong to the record.
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


def against_best(members: Sequence[RunRecord], scores: Mapping[str, pd.DataFrame], part: str = "f") -> AgainstBest:
    """Test every shown number of the ranked runs against the best run of its column.

    A number that equals the best one needs no test.

    Args:
        members: runs that may be compared, best first; oracles are passed over.
        scores: run id → per-example scores, 0–1; a run without them is not tested.
        part: of ROUGE, that is shown: "f", "p" or "r".
    """
    ranked = [record for record in members if not record.oracle]
    differences: dict[tuple[str, str], pd.Series] = {}
    untested: dict[str, str] = {}
    for name, (highest, best) in best_runs(ranked, numbers_shown(members, part), part).items():
        for record in ranked:
            if (number := measured_mean(record, name, part)) is None or number[0] == highest:
                continue
            column = f"{name}_{part}" if name in ROUGE_HEADINGS else name
            paired = _differences(scores.get(best.run_id), scores.get(record.run_id), column)
            if paired is None:
                untested[record.run_id] = f"{record.model} {record.run_id[:SHORT_ID]}"
            else:
                differences[record.run_id, name] = paired
    if not differences:
        return AgainstBest({}, "No row is tested against the best, for want of scores.csv." if untested else "")
    table = pd.DataFrame(dict(enumerate(differences.values()))).sort_index()
    resamples = max(RESAMPLES, RESAMPLES_A_TEST * len(differences))
    corrected = holm(randomization_p_values(table.fillna(0).to_numpy(), resamples))
    told = _told(table, resamples)
    if untested:
        told += f" Not tested, for want of scores.csv beside them or the best: {', '.join(untested.values())}."
    return AgainstBest(dict(zip(differences, corrected.tolist(), strict=True)), told)


def _differences(best: pd.DataFrame | None, other: pd.DataFrame | None, column: str) -> pd.Series | None:
    """Return best minus other, 0–1, by the examples to which both numbers apply; None where one has no scores."""
    if best is None or other is None or column not in best or column not in other:
        return None
    paired = (best[column] - other[column]).dropna()
    return paired if len(paired) else None


def _told(differences: pd.DataFrame, resamples: int) -> str:
    """Say how the tests were made and between what bounds their smallest detectable differences lie, 0–100."""
    tests = differences.shape[1]
    corrected = f"Holm's correction for {tests:,} {'tests' if tests > 1 else 'test'}"
    columns = [PERCENT * column.dropna().to_numpy() for _, column in differences.items()]
    detectable = [smallest_detectable_difference(column, LEVEL / tests, _POWER) for column in columns]
    return (
        f"{TIED}: not distinguishable from the best of its column (approximate randomization over examples, "
        f"{resamples:,} resamples, p ≥ {LEVEL} after {corrected}); {_power(detectable)}."
    )


def _power(detectable: Sequence[float]) -> str:
    """Say which differences the tests would have found, and how many tests could not have found any."""
    finite = [difference for difference in detectable if math.isfinite(difference)]
    if not finite:
        return "no difference could have been found, with so few examples that differ"
    blind = len(detectable) - len(finite)
    rest = f"; {blind} of the tests could not have found any, with so few examples that differ" if blind else ""
    return f"a difference of {_range(finite)} would have been found 4 times in 5{rest}"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}, by row and column,"
