"""What the runs of a system measured with the same settings: the mean over their seeds, and how sure it is.

records --one_a_seed--> a Point --with_numbers--> its means and 95 % intervals
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from longsumbench.api.config import Scoring
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED, PERCENT
from longsumbench.metrics.statistics import intervals_over_repeats
from longsumbench.runs.record import RunRecord, measured_mean

# How an interval came about: of the only run; resampled over examples and seeds; around the intervals of all seeds.
INTERVAL_OF_RUN, RESAMPLED, RANGE = "run", "examples and seeds", "range of seeds"

SeedScores = Callable[[RunRecord], pd.DataFrame | None]


class Estimate(NamedTuple):
    """A mean over examples and seeds, 0–100 or in its own unit, and its 95 % interval, None where it is not known."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class CurvePoint:
    """The runs of a system with the same settings, one a seed.

    Attributes:
        runs: by seed.
        repeated: earlier runs with a seed of theirs, which do not count.
        numbers: type of ROUGE, or measure → what all the runs made of it.
        interval: how its intervals came about: `INTERVAL_OF_RUN`, `RESAMPLED` or `RANGE`.
    """

    runs: tuple[RunRecord, ...]
    repeated: tuple[RunRecord, ...]
    numbers: Mapping[str, Estimate]
    interval: str


def latest_per_seed(records: Sequence[RunRecord]) -> CurvePoint:
    """Put together the runs of a place; of a seed that was run twice (by other versions), the later run."""
    latest = sorted(records, key=lambda record: (record.finished, record.run_id))
    by_seed = {_seeds(record): record for record in latest}
    runs = tuple(by_seed[seeds] for seeds in sorted(by_seed, key=_by_size))
    return CurvePoint(runs, tuple(record for record in latest if record not in runs), {}, INTERVAL_OF_RUN)


def _by_size(seeds: Sequence[int | None]) -> list[int]:
    return [-1 if seed is None else seed for seed in seeds]


def _seeds(record: RunRecord) -> tuple[Any, ...]:
    """Return the seeds of a run whose outcome depends on one: it can have one of its own for training and decoding."""
    if record.seed is None:
        return ()
    return record.seed, *(record.config.get(section, {}).get("seed") for section in ("train", "decode"))


def average_seeds(point: CurvePoint, scores: SeedScores) -> CurvePoint:
    """Average over the seeds of a point what all of them measured."""
    first, *others = point.runs
    kinds = [kind for kind in (*ROUGE_HEADINGS, *first.measures) if all(measured_mean(run, kind) for run in point.runs)]
    found = {kind: [Estimate(*_known(run, kind)) for run in point.runs] for kind in kinds}
    if not others:
        return replace(point, numbers={kind: numbers[0] for kind, numbers in found.items()})
    means = {kind: sum(one.mean for one in numbers) / len(numbers) for kind, numbers in found.items()}
    around = {kind: _around(numbers) for kind, numbers in found.items()}
    resampled = _resampled(point.runs, kinds, scores)
    bounds = around if resampled is None else {**around, **resampled}
    how = RANGE if resampled is None else RESAMPLED
    return replace(point, numbers={kind: Estimate(means[kind], *bounds[kind]) for kind in kinds}, interval=how)


def _known(record: RunRecord, kind: str) -> tuple[float, float | None, float | None]:
    found = measured_mean(record, kind)
    assert found is not None
    return found


def _around(numbers: Sequence[Estimate]) -> tuple[float | None, float | None]:
    """Return the lowest end of any interval and the highest, as the pictures of fact recall show seeds."""
    low, high = [one.low for one in numbers], [one.high for one in numbers]
    return (
        min((bound for bound in low if bound is not None), default=None),
        max((bound for bound in high if bound is not None), default=None),
    )


def _resampled(
    runs: Sequence[RunRecord], kinds: Sequence[str], scores: SeedScores
) -> dict[str, tuple[float, float]] | None:
    """Return the intervals of the means over seeds, by examples and seeds; None where scores of one are not at hand.

    A number that is the same for every example and seed has none: resampled, it would seem to leave no doubt.
    """
    columns = [f"{kind}_f" if kind in ROUGE_HEADINGS else kind for kind in kinds]
    tables: list[pd.DataFrame] = []
    for run in runs:
        table = scores(run)
        if table is None or not set(columns) <= set(table) or (tables and set(table.index) != set(tables[0].index)):
            return None
        tables.append(table.sort_index())
    values = np.stack([table[columns].to_numpy(dtype=float) for table in tables], axis=1)
    resamples = max(run.config.get("score", {}).get("resamples", Scoring.resamples) for run in runs)
    bounds = intervals_over_repeats(values, resamples, BOOTSTRAP_SEED)
    in_units = set[str]().union(*(run.units for run in runs))
    found = {}
    for kind, (low, high) in zip(kinds, bounds.tolist(), strict=True):
        if kind in in_units and low < high:
            found[kind] = low, high
        elif low < high:
            found[kind] = PERCENT * max(0.0, low), PERCENT * min(1.0, high)
    return found
