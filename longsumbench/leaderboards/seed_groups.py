"""The runs of a system with the same settings, one per seed, and their averages.

records --latest_per_seed--> SeedGroup --average_seeds--> means and 95 % intervals
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED, PERCENT, Estimate
from longsumbench.metrics.statistics import intervals_over_repeats
from longsumbench.runs.record import RunRecord, measured_mean

# The interval of the only run; resampled over examples and seeds; from the lowest to the highest end of any seed.
INTERVAL_OF_RUN, RESAMPLED, RANGE = "run", "examples and seeds", "range of seeds"

SeedScores = Callable[[RunRecord], pd.DataFrame | None]


@dataclass(frozen=True)
class SeedGroup:
    """The runs of a system with the same settings, one per seed.

    Attributes:
        runs: ordered by seed.
        repeated: earlier runs with the same seeds; they are ignored.
        numbers: type of ROUGE, or measure → its mean over `runs`.
        interval: how the intervals were computed: `INTERVAL_OF_RUN`, `RESAMPLED` or `RANGE`.
    """

    runs: tuple[RunRecord, ...]
    repeated: tuple[RunRecord, ...]
    numbers: Mapping[str, Estimate]
    interval: str


def latest_per_seed(records: Sequence[RunRecord]) -> SeedGroup:
    """Group runs with the same settings; the latest run of each seed counts."""
    latest = sorted(records, key=lambda record: (record.finished, record.run_id))
    by_seed = {_seeds(record): record for record in latest}
    runs = tuple(by_seed[seeds] for seeds in sorted(by_seed, key=_by_size))
    return SeedGroup(runs, tuple(record for record in latest if record not in runs), {}, INTERVAL_OF_RUN)


def _by_size(seeds: Sequence[int | None]) -> list[int]:
    return [-1 if seed is None else seed for seed in seeds]


def _seeds(record: RunRecord) -> tuple[int | None, ...]:
    """Return the run's seeds of sampling, training and decoding; empty if its outcome depends on none."""
    if record.seed is None:
        return ()
    return record.seed, record.settings.train.seed, record.settings.decode.seed


def average_seeds(point: SeedGroup, scores: SeedScores) -> SeedGroup:
    """Average the numbers that all runs of a group have."""
    found = {}
    for kind in (*ROUGE_HEADINGS, *point.runs[0].measures):
        numbers = [number for run in point.runs if (number := measured_mean(run, kind))]
        if len(numbers) == len(point.runs):
            found[kind] = pool_estimates(numbers)
    if len(point.runs) == 1:
        return replace(point, numbers=found)
    resampled = _resampled(point.runs, list(found), scores)
    numbers_found = {kind: Estimate(found[kind].mean, *bounds) for kind, bounds in (resampled or {}).items()}
    return replace(point, numbers=found | numbers_found, interval=RANGE if resampled is None else RESAMPLED)


def pool_estimates(numbers: Sequence[Estimate]) -> Estimate:
    """Average a number over seeds. The interval reaches from the lowest to the highest end of the seeds' intervals."""
    mean = sum(number.mean for number in numbers) / len(numbers)
    return Estimate(mean, min(number.low for number in numbers), max(number.high for number in numbers))


def _resampled(
    runs: Sequence[RunRecord], kinds: Sequence[str], scores: SeedScores
) -> dict[str, tuple[float, float]] | None:
    """Return intervals of the means, resampled over examples and seeds; None if the scores of a run are missing.

    A number that is the same for all examples and seeds has no interval: an empty one would look exact.
    """
    columns = [f"{kind}_f" if kind in ROUGE_HEADINGS else kind for kind in kinds]
    tables: list[pd.DataFrame] = []
    for run in runs:
        table = scores(run)
        if table is None or not set(columns) <= set(table) or (tables and set(table.index) != set(tables[0].index)):
            return None
        tables.append(table.sort_index())
    values = np.stack([table[columns].to_numpy(dtype=float) for table in tables], axis=1)
    resamples = max(run.settings.score.resamples for run in runs)
    bounds = intervals_over_repeats(values, resamples, BOOTSTRAP_SEED)
    in_units = set[str]().union(*(run.units for run in runs))
    found = {}
    for kind, (low, high) in zip(kinds, bounds.tolist(), strict=True):
        if kind in in_units and low < high:
            found[kind] = low, high
        elif low < high:
            found[kind] = PERCENT * max(0.0, low), PERCENT * min(1.0, high)
    return found
