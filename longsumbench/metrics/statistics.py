"""How sure a mean is, and a difference of two: resampling over examples, seeded.

A mean has a percentile bootstrap interval. Two systems are compared on the same examples, by the differences of their
scores: `approximate_randomization`, which the suite's tables use, or `paired_bootstrap`. Several comparisons are
corrected by `holm`. Values may be 0–1 or 0–100; every interval and difference is in their unit.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.special
from numpy.typing import NDArray

from longsumbench.errors import DataError

_NUMBERS_AT_ONCE = 2**22  # of approximate randomization in one array, 8 bytes each
_DRAND48_FACTOR, _DRAND48_SUMMAND = 0x5DEECE66D, 0xB  # of the generator behind Perl's rand
_ROUNDING = 1e-12  # of a sum's terms: sums that differ by less are the same


class PairedTest(NamedTuple):
    """What a test made of the differences of two systems.

    Attributes:
        difference: the mean.
        low, high: its 95 % interval; NaN from approximate randomization, which gives none.
        p: two-sided; how often systems that do not differ would show this difference or a larger one.
    """

    difference: float
    low: float
    high: float
    p: float


def bootstrap_interval(
    values: Sequence[float] | NDArray[np.float64], resamples: int, seed: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of the mean of some values, in their unit.

    Args:
        values: one an example.
        resamples: how many samples of the same size are drawn with replacement.
        seed: of the drawing.
        confidence: the share of the resampled means that lies inside.

    Raises:
        DataError: there are no values, or one is not a number.
    """
    columns = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    low, high = bootstrap_intervals(columns, resamples, seed, confidence)[0]
    return float(low), float(high)


def interval_of_shares(
    values: NDArray[np.float64], resamples: int, seed: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of the mean of some shares; where all are 0, or all 1, the exact binomial one.

    Resampling equal values would tell of no doubt at all: nothing right out of 37 still allows for 9 in a hundred.

    Args:
        values: one an example, 0–1.
        resamples: how many samples of the same size are drawn with replacement.
        seed: of the drawing.
        confidence: the share of the resampled means that lies inside.
    """
    doubt = ((1 - confidence) / 2) ** (1 / len(values)) if len(values) else 0.0
    if len(values) and (values == 0).all():
        return 0.0, 1 - doubt
    if len(values) and (values == 1).all():
        return doubt, 1.0
    return bootstrap_interval(values, resamples, seed, confidence)


def bootstrap_intervals(
    values: NDArray[np.float64], resamples: int, seed: int, confidence: float = 0.95
) -> NDArray[np.float64]:
    """Return the percentile intervals of the means of several columns, on the same resamples.

    Args:
        values: [examples, columns].
        resamples: how many samples of the same size are drawn with replacement.
        seed: of the drawing.
        confidence: the share of the resampled means that lies inside.

    Returns:
        [columns, 2]: low and high, in the unit of the values.

    Raises:
        DataError: there are no values, or one is not a number.
    """
    means = resampled_means(_finite(values, "an interval"), resamples, seed)
    tail = (1 - confidence) / 2
    return np.quantile(means, [tail, 1 - tail], axis=0).T


def intervals_over_repeats(
    values: NDArray[np.float64], resamples: int, seed: int, confidence: float = 0.95
) -> NDArray[np.float64]:
    """Return the percentile intervals of the means of several columns that were measured repeatedly (once a seed).

    Both examples and repeats are drawn with replacement, each from all of theirs, so that an interval tells what other
    examples and other seeds would bring; how far repeats lie from their mean is stretched by √(R / (R − 1)), for a few
    differ less from their own mean than from the true one. Of 3 seeds that differ little such an interval held the true
    mean 94 times in 100, 87 times where seeds outweigh examples; resampling examples alone, 90 and 61 (simulated).

    Args:
        values: [examples, repeats, columns]; NaN where a column does not apply to an example, which it then leaves out.
        resamples: how many samples of the same size are drawn.
        seed: of the drawing.
        confidence: the share of the resampled means that lies inside.

    Returns:
        [columns, 2]: low and high, in the unit of the values; NaN for a column that applies to none.
    """
    count, repeats, columns = values.shape
    applies = np.asarray(np.isfinite(values).all(axis=1))
    sums = np.where(applies[:, None, :], values, 0.0).reshape(count, -1)
    drawn = resampled_means(np.hstack([sums, applies]), resamples, seed)
    with np.errstate(invalid="ignore"):  # of a resample without any example to which the column applies
        means = drawn[:, : repeats * columns].reshape(-1, repeats, columns) / drawn[:, None, repeats * columns :]
    times = np.random.default_rng([seed, repeats]).multinomial(repeats, np.full(repeats, 1 / repeats), resamples)
    centre = means.mean(axis=1)
    stretch = math.sqrt(repeats / (repeats - 1)) if repeats > 1 else 1.0
    mixed = centre + stretch * ((times[:, :, None] * means).sum(axis=1) / repeats - centre)
    tail = (1 - confidence) / 2
    bounds = np.full((columns, 2), np.nan)
    known = applies.any(axis=0)
    bounds[known] = np.nanquantile(mixed[:, known], [tail, 1 - tail], axis=0).T
    return bounds


def resampled_means(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Draw samples with replacement and average each: [examples, columns] → [resamples, columns].

    One resample is in memory at a time, as the number of times it holds each example.
    """
    count, columns = values.shape
    draw = np.random.default_rng(seed)
    means = np.empty((resamples, columns))
    for row in range(resamples):
        times = np.bincount(draw.integers(0, count, count), minlength=count)
        means[row] = times @ values / count
    return means


def perl_intervals(values: NDArray[np.float64], resamples: int = 1_000) -> NDArray[np.float64]:
    """Return what ROUGE-1.5.5 makes of several columns with `-c 95 -r RESAMPLES`: its averages and intervals.

    Its resamples are always the same: number i is drawn by Perl's `rand` after `srand(i)`, which on Linux is drand48.
    The average that it prints is the mean of the resampled means, not of the values; both bounds lie between two
    sorted means, at the fraction of the upper one. Rounded to five digits of 0–1, this equals its output if the values
    are its own (perl mode) and stand in its order: sorted as strings by "evaluation id.system".

    Args:
        values: [examples, columns].
        resamples: how many samples of the same size are drawn with replacement; two or more.

    Returns:
        [columns, 3]: average, low and high, in the unit of the values.

    Raises:
        DataError: there are no values, or one is not a number.
    """
    count = len(_finite(values, "an interval"))
    factors = np.cumprod(np.full(count, _DRAND48_FACTOR, dtype=np.uint64))  # these wrap at 2**64, a multiple of 2**48
    sums = np.uint64(_DRAND48_SUMMAND) * np.cumsum(np.concatenate([np.ones(1, dtype=np.uint64), factors[:-1]]))
    means = np.empty((resamples, values.shape[1]))
    for seed in range(resamples):
        states = (factors * np.uint64((seed << 16) + 0x330E) + sums) & np.uint64(2**48 - 1)
        times = np.bincount((np.ldexp(states.astype(np.float64), -48) * count).astype(np.int64), minlength=count)
        means[seed] = times @ values / count
    ranked = np.sort(means, axis=0)
    tail = resamples * 2.5 / 100
    lower, upper = int(tail), int(resamples - tail - 1)
    fraction = resamples - tail - 1 - upper
    bounds = [ranked[place] + (ranked[place + 1] - ranked[place]) * fraction for place in (lower, upper)]
    return np.stack([means.mean(axis=0), *bounds], axis=1)


def paired_bootstrap(
    differences: Sequence[float] | NDArray[np.float64], resamples: int = 10_000, seed: int = 1
) -> PairedTest:
    """Test by drawing examples with replacement whether two systems differ.

    The p-value is the share of resampled means that lie as far from the mean as the mean lies from 0. Resamples vary
    less than new examples would: at 5 %, it calls 11 % of equal systems different on ten examples, 6 % on fifty.

    Args:
        differences: one an example, first system's score minus the second's.
        resamples: how many samples of the same size are drawn.
        seed: of the drawing.

    Raises:
        DataError: there are no differences, or one is not a number.
    """
    values = _finite(differences, "a paired test")
    means = resampled_means(values.reshape(-1, 1), resamples, seed)[:, 0]
    low, high = np.quantile(means, [0.025, 0.975])
    (p,) = _bootstrap_p_values(values.reshape(-1, 1), means.reshape(-1, 1))
    return PairedTest(float(values.mean()), float(low), float(high), float(p))


def bootstrap_p_values(differences: NDArray[np.float64], resamples: int = 10_000, seed: int = 1) -> NDArray[np.float64]:
    """Return the p-values of the paired bootstrap of several columns, on the same resamples.

    Args:
        differences: [examples, columns].
        resamples: how many samples of the same size are drawn.
        seed: of the drawing.

    Returns:
        [columns]

    Raises:
        DataError: there are no differences, or one is not a number.
    """
    values = _finite(differences, "a paired test")
    return _bootstrap_p_values(values, resampled_means(values, resamples, seed))


def approximate_randomization(
    differences: Sequence[float] | NDArray[np.float64], resamples: int = 10_000, seed: int = 1
) -> PairedTest:
    """Test by swapping the two systems' outputs at random, example by example, whether they differ.

    The p-value is the share of swaps that bring a mean difference at least as far from 0. It is exact but for the
    drawing, with any number of examples: of equal systems at most 5 % are called different at 5 %.

    Args:
        differences: one an example, first system's score minus the second's.
        resamples: how many times all examples are swapped or not.
        seed: of the drawing.

    Raises:
        DataError: there are no differences, or one is not a number.
    """
    values = _finite(differences, "a paired test")
    (p,) = randomization_p_values(values.reshape(-1, 1), resamples, seed)
    return PairedTest(float(values.mean()), math.nan, math.nan, float(p))


def randomization_p_values(
    differences: NDArray[np.float64], resamples: int = 10_000, seed: int = 1
) -> NDArray[np.float64]:
    """Return the p-values of approximate randomization of several columns, on the same swaps.

    A difference of 0 never counts, so an example that a column lacks may stand in it as 0.

    Args:
        differences: [examples, columns].
        resamples: how many times all examples are swapped or not.
        seed: of the drawing.

    Returns:
        [columns]

    Raises:
        DataError: there are no differences, or one is not a number.
    """
    values = _finite(differences, "a paired test")
    bound = np.abs(values.sum(axis=0)) - _ROUNDING * np.abs(values).sum(axis=0)
    rows_at_once = max(1, _NUMBERS_AT_ONCE // max(values.shape))
    blocks = _signs(resamples, len(values), seed, rows_at_once)
    far = sum((np.abs(signs @ values) >= bound).sum(axis=0) for signs in blocks)
    return np.asarray((far + 1) / (resamples + 1))


def holm(p_values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the p-values corrected for being several (Holm 1979), in their order.

    The chance that any of the equal systems is called different stays at the level that is asked for.

    Raises:
        DataError: one is not a number from 0 to 1.
    """
    values = np.asarray(p_values, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise DataError("a correction needs p-values from 0 to 1; one is outside, or not a number")
    order = np.argsort(values)
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(np.minimum(values[order] * np.arange(len(values), 0, -1), 1))
    return corrected


def smallest_detectable_difference(
    differences: Sequence[float] | NDArray[np.float64], significance: float = 0.05, power: float = 0.8
) -> float:
    """Return the mean difference that `approximate_randomization` finds with a given chance, in the differences' unit.

    (t(1 − significance / 2) + t(power)) · standard deviation / √n, with n − 1 degrees of freedom: swaps of normal
    differences follow Student's t. Of simulated differences of this mean 75 to 80 % are found with 7 to 50 examples at
    5 %; 62 % with 6, the fewest with which anything is found (benchmarks/paired_tests.py).

    Args:
        differences: one an example.
        significance: the level of the test.
        power: the chance that such a difference is found.

    Returns:
        The difference; infinite where nothing can be found: m examples that differ have 2^m swaps, so no p-value is
        below 2 / 2^m. Infinite, too, where all differences are equal, for then their spread is unknown.

    Raises:
        DataError: there are no differences, or one is not a number.
    """
    values = _finite(differences, "a paired test")
    smallest_p = 2.0 ** (1 - np.count_nonzero(values))
    if smallest_p > significance or np.ptp(values) == 0:
        return math.inf
    deviations = scipy.special.stdtrit(len(values) - 1, [1 - significance / 2, power]).sum()
    return float(deviations * values.std(ddof=1) / math.sqrt(len(values)))


def _bootstrap_p_values(values: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compare the resampled means, [resamples, columns], with those of the values, [examples, columns]."""
    if len(values) == 1:  # one example shows nothing of the spread
        return np.ones(values.shape[1])
    mean = values.mean(axis=0)
    far = np.abs(means - mean) >= np.abs(mean) - _ROUNDING * np.abs(values).mean(axis=0)
    return np.asarray((far.sum(axis=0) + 1) / (len(means) + 1))


def _signs(resamples: int, count: int, seed: int, rows_at_once: int) -> Iterator[NDArray[np.float64]]:
    """Draw signs, +1 or -1, as [resamples, count] in arrays of some rows; the draws do not depend on how many."""
    draw = np.random.default_rng(seed)
    words = -(-count // 64)
    for start in range(0, resamples, rows_at_once):
        rows = min(rows_at_once, resamples - start)
        drawn = draw.integers(0, 2**64, (rows, words), dtype=np.uint64).astype("<u8")
        bits = np.unpackbits(drawn.view(np.uint8), axis=1, count=count)
        yield 1 - 2 * bits.astype(np.float64)


def _finite(values: Sequence[float] | NDArray[np.float64], user: str) -> NDArray[np.float64]:
    """Return values as an array; no values, or one that is not a number, is an error that names who needs them."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) == 0:
        raise DataError(f"{user} needs at least one value; there is none")
    if not np.isfinite(array).all():
        raise DataError(f"{user} needs finite values; one is infinite or not a number")
    return array
