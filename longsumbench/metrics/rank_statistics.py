"""How alike a measure and people order outputs: τ-b, Spearman, pairs, close pairs, partial τ; Krippendorff's α.

Bootstrapped statistics are arrays [draws] that begin with the estimate. An undefined value is NaN.
"""

from collections.abc import Sequence

import numpy as np
import scipy  # loads a part when it is used: scipy.stats takes half a second

from longsumbench.metrics.statistics import Groups, Numbers, number_groups


def draw_counts(resamples: int, size: int, seed: int, groups: Groups | None = None) -> Numbers:
    """Return how often each item is drawn, [draws, items]; the first row has each item once.

    Of `groups`, the number of each item's group, as many are drawn as there are, each with all its items.
    """
    numbers = np.arange(size) if groups is None else number_groups(groups)
    count = numbers.max() + 1
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), resamples)
    return np.vstack([np.ones(size), drawn.take(numbers, axis=1)])


def percentile_interval(draws: Numbers, size: int | None) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean over `size` items; NaN if it is undefined.

    Percentiles are too narrow for few items. These are further out, by √(n/(n−1)) times Student's instead of the normal
    distribution's quantile (Hesterberg 2015); not without a size.
    """
    defined = draws[1:][np.isfinite(draws[1:])]
    if not np.isfinite(draws[0]) or not len(defined) or (size is not None and size < 2):
        return np.nan, np.nan
    tail = 0.025
    if size is not None:
        tail = scipy.special.ndtr(
            scipy.special.stdtrit(size - 1, tail) * np.sqrt(size / (size - 1))
        )
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def tau_b(
    first: Numbers, second: Numbers, weights: Numbers | float = 1.0, most: Numbers | float = np.inf
) -> Numbers:
    """Return Kendall's τ-b over the last axis, [..., items] → [...]; pairs with a missing value are left out.

    Items have weights: how often each is drawn. Pairs whose first scores differ by more than `most` are left out.
    """
    gaps, signs, pairs = _pairs(first, second, weights)
    return _cosine(np.sign(gaps), signs, pairs * (np.abs(gaps) <= most))


def spearman(first: Numbers, second: Numbers) -> Numbers:
    """Return Spearman's ρ over the last axis, [..., items] → [...]; items with a missing value are left out."""
    present = (np.isfinite(first) & np.isfinite(second)).astype(np.float64)
    ranks = []  # doubled, with a mean of 0
    for scores in map(np.nan_to_num, (first, second)):
        signs = np.sign(scores[..., :, None] - scores[..., None, :])
        ranks.append((signs * present[..., None, :]).sum(axis=-1))
    return _cosine(ranks[0], ranks[1], present)


# Begin to read here: it computes all statistics of a measure.
def rank_agreement(
    scores: Numbers,
    people: Numbers,
    length: Numbers,
    counts: Numbers,
    systems: Numbers | None = None,
) -> dict[str, Numbers]:
    """Return how a measure agrees with people within documents, or by the systems' means: statistic → [draws].

    Args:
        scores: [documents, systems], NaN where missing.
        people: as the scores.
        length: as the scores; the partial τ holds it constant.
        counts: [draws, documents], from `draw_counts`.
        systems: [draws, systems]: compare the systems' means; `tau_both` draws documents and systems.
    """
    if systems is not None:
        scores, people, length = _system_means((scores, people, length), counts)
    gaps, signs, pairs = _pairs(scores, people)
    # half of the pairs are close: those with the smallest differences, of all documents or of each draw
    sizes = np.where(pairs > 0, np.abs(gaps), np.inf)
    sizes = np.sort(sizes.reshape(1 if systems is None else len(gaps), -1))
    middle = np.maximum(np.isfinite(sizes).sum(axis=-1, keepdims=True) - 1, 0) // 2
    most = np.take_along_axis(sizes, middle, axis=-1)
    calibrating = slice(None if systems is None else 1)
    right = calibrated_accuracy(gaps, signs, pairs, calibrating)
    statistics = {
        "tau": tau_b(scores, people),
        "spearman": spearman(scores, people),
        "accuracy": mean_over(right, pairs),
        "close": tau_b(scores, people, most=most),
    }
    if systems is None:
        for name, each in statistics.items():
            statistics[name] = mean_over(each, np.isfinite(each) * counts)
        return {**statistics, "partial": _partial_tau(scores, people, length, counts)}
    partial = _partial_tau(scores, people, length, np.eye(len(scores)))
    return {**statistics, "tau_both": tau_b(scores, people, systems), "partial": partial}


def _system_means(tables: Sequence[Numbers], counts: Numbers) -> list[Numbers]:
    """Return the means of tables over documents where the first two have values, each [draws, systems]."""
    present = (np.isfinite(tables[0]) & np.isfinite(tables[1])).astype(np.float64)
    means = []
    for table in tables:
        with np.errstate(invalid="ignore"):
            total = counts @ (np.nan_to_num(table) * present)
            means.append(np.round(total / (counts @ present), 12))
    return means


def pooled_agreement(scores: Numbers, people: Numbers) -> dict[str, Numbers]:
    """Return τ-b and Spearman's ρ over all outputs together, each [1]; scipy's, whose time grows as n·log n."""
    present = np.isfinite(scores) & np.isfinite(people)
    ranks = [scipy.stats.rankdata(values[present]) for values in (scores, people)]
    first, second = (rank - (len(rank) + 1) / 2 for rank in ranks)
    tau = scipy.stats.kendalltau(*ranks).statistic if len(first) > 1 else np.nan
    return {
        "tau": np.array([tau]),
        "spearman": _cosine(first[None], second[None], np.ones_like(first)),
    }


def calibrated_accuracy(
    gaps: Numbers, signs: Numbers, pairs: Numbers, chosen: slice = slice(None)
) -> Numbers:
    """Return 1 for each pair that a measure orders as people do, else 0, with tie calibration (Deutsch et al. 2023).

    Scores that differ by at most ε are tied. ε maximizes the mean accuracy of the `chosen` groups.

    Args:
        gaps: differences of scores, [groups, pairs].
        signs: +1, 0 or -1: how people order the pair.
        pairs: weights; 0 for a missing pair.
        chosen: groups.
    """
    # rounded, so that equal differences are equal
    right, tied, sizes = np.sign(gaps) == signs, signs == 0, np.round(np.abs(gaps), 12)
    weights = np.divide(
        pairs, pairs.sum(axis=-1, keepdims=True), out=np.zeros_like(pairs), where=pairs > 0
    )
    gains = (weights * (tied.astype(np.float64) - right))[chosen].ravel()
    order = np.argsort(sizes[chosen].ravel(), kind="stable")
    steps, sums = sizes[chosen].ravel()[order], np.round(np.cumsum(gains[order]), 12)
    # of equal differences, all or none are ties
    sums = np.where(np.append(steps[1:] > steps[:-1], True), sums, 0)
    threshold = steps[np.argmax(sums)] if sums.max(initial=0) > 0 else 0.0
    return np.asarray(np.where(sizes <= threshold, tied, right), dtype=np.float64)


def krippendorff_alpha(judgements: Numbers, counts: Numbers) -> Numbers:
    """Return Krippendorff's α for interval data, 1 − observed / expected disagreement, [draws].

    Args:
        judgements: [annotators, documents, systems]; outputs with fewer than two are left out.
        counts: [draws, documents].
    """
    number = np.isfinite(judgements).sum(axis=0)
    values, number = np.where(number > 1, judgements, np.nan), np.where(number > 1, number, 0)
    spread = (
        number
        * np.nansum((values - average_first_axis(values)) ** 2, axis=0)
        / np.maximum(number - 1, 1)
    )
    parts = (
        number,
        np.nansum(values, axis=0),
        np.nansum(values**2, axis=0),
        spread,
    )  # each [documents, systems]
    total, first, second, observed = (counts @ part.sum(axis=-1) for part in parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (second - first**2 / total) / (total - 1)
        return np.asarray(
            np.where(expected > 1e-12 * second, 1 - observed / total / expected, np.nan)
        )


def average_first_axis(values: Numbers) -> Numbers:
    """Average the first axis without missing values; NaN if all are missing."""
    return mean_over(
        np.moveaxis(values, 0, -1), np.moveaxis(np.isfinite(values), 0, -1).astype(np.float64)
    )


def mean_over(values: Numbers, weights: Numbers) -> Numbers:
    """Return the weighted mean over the last axis; NaN if no value has a weight."""
    total, sums = weights.sum(axis=-1), (np.nan_to_num(values) * weights).sum(axis=-1)
    return np.asarray(np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 0))


def _pairs(
    first: Numbers, second: Numbers, weights: Numbers | float = 1.0
) -> tuple[Numbers, Numbers, Numbers]:
    """Return differences of the first scores, signs of those of the second, and weights, each [..., pairs]."""
    left, right = np.triu_indices(first.shape[-1], 1)
    present = (np.isfinite(first) & np.isfinite(second)) * weights
    gaps, others = (
        np.nan_to_num(scores[..., left] - scores[..., right]) for scores in (first, second)
    )
    return gaps, np.sign(others), present[..., left] * present[..., right]


def _cosine(first: Numbers, second: Numbers, weights: Numbers) -> Numbers:
    """Return Σ w·x·y / √(Σ w·x² · Σ w·y²) over the last axis; NaN if a side is 0: its scores are constant."""
    products = [
        (weights * x * y).sum(axis=-1)
        for x, y in ((first, second), (first, first), (second, second))
    ]
    norm = np.sqrt(products[1] * products[2])
    return np.asarray(np.divide(products[0], norm, out=np.full_like(norm, np.nan), where=norm > 0))


def _partial_tau(first: Numbers, second: Numbers, third: Numbers, counts: Numbers) -> Numbers:
    """Return Kendall's partial τ-b of two scores given a third, over the pairs of all groups together, [draws]."""
    weights = _pairs(first, second)[2]
    sides = [np.sign(_pairs(scores, second)[0]) for scores in (first, second, third)]

    def add(one: Numbers, other: Numbers) -> Numbers:
        return np.asarray(counts @ (weights * one * other).sum(axis=-1))

    def tau(one: Numbers, other: Numbers) -> Numbers:
        return np.asarray(add(one, other) / np.sqrt(add(one, one) * add(other, other)))

    with np.errstate(divide="ignore", invalid="ignore"):
        direct, by_first, by_second = (tau(sides[i], sides[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
        rest = (1 - by_first**2) * (1 - by_second**2)
        partial = (direct - by_first * by_second) / np.sqrt(rest)
    return np.where(rest > 1e-9, partial, np.nan)
