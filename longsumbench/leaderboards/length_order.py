"""Whether the order of systems is that of the length of their outputs.

The rank correlation of mean words and mean scores has an interval over examples: it says how stable the correlation of
these systems is, if other examples were drawn. It does not say that other systems would show it. So the correlation must
also be larger than those of 97.5 % of the random orders of as many systems.
"""

from collections.abc import Sequence

import numpy as np

from longsumbench.leaderboards.seed_groups import ScoresOfRuns, SeedGroup, aligned_scores
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED, MEAN_RESAMPLES, Estimate
from longsumbench.metrics.rank_statistics import percentile_interval, spearman
from longsumbench.metrics.statistics import resampled_means
from longsumbench.runs.record import RunRecord

_FEWEST = 5  # of four systems, one of 24 orders has a correlation of 1: p = 0.04
LENGTHS_APART = 1.5  # ratio of the longest outputs to the shortest, above which lengths differ
_WEAK = 0.5  # a correlation that may be weaker is no order by length, however many systems have it
_BY_CHANCE = 1.96  # × 1 / √(systems − 1): what 2.5 % of random orders exceed


def order_by_length(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> Estimate | None:
    """Return Spearman's rank correlation of the mean words and mean scores of the ranked rows, with its interval.

    The interval is over examples: the scores are drawn, the words are the means of all examples.

    None unless the order of the rows is shown to be that of their lengths.
    It is not shown for fewer than five rows, for lengths that hardly differ, or if scores or lengths are missing.
    """
    ranked = [row for row in rows if row.ranked]
    words = np.array([row.words or np.nan for row in ranked])
    if len(ranked) < _FEWEST or not words.max() > LENGTHS_APART * words.min():
        return None
    runs: list[RunRecord] = []
    for row in ranked:
        runs += row.runs
    values = aligned_scores(runs, runs[0].evaluation.ranked_by, scores)
    if values is None:
        return None
    ends = np.cumsum([len(row.runs) for row in ranked])
    parts = np.split(values, ends[:-1], axis=1)
    of_rows = np.stack([part.mean(axis=1) for part in parts], axis=1)
    means = resampled_means(of_rows, MEAN_RESAMPLES, BOOTSTRAP_SEED)
    correlations = spearman(words, np.vstack([of_rows.mean(axis=0), means]))
    low, high = percentile_interval(correlations, None)
    if low < _WEAK or correlations[0] < _BY_CHANCE / np.sqrt(len(words) - 1):
        return None
    return Estimate(float(correlations[0]), low, high)
