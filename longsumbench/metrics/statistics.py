"""Intervals of means and tests of differences, by seeded resampling over examples.

Examples that share a source are one group (questions about a meeting): groups are drawn, swapped and counted as degrees
of freedom. `groups` are numbers, one per example; None: each example is a group of its own.

A mean has a percentile bootstrap interval; over several seeds, its interval and test are in closed form
(`mean_over_seeds`). So are tests whether a difference is smaller or larger than a margin. Two systems are compared by
the differences of their scores on the same examples (`paired_effect`). `holm` corrects several comparisons. Values may
be 0–1 or 0–100; every interval and difference is in their unit.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # loads a part when it is used
from numpy.typing import NDArray

from longsumbench.errors import DataError

Numbers = NDArray[np.float64]
Groups = NDArray[np.int64]

BOOTSTRAP_SEED = 1  # the same for every run, so that intervals depend on the scores alone
_NUMBERS_AT_ONCE = 2**22  # size of an array of swaps, 8 bytes each
_DRAND48_FACTOR, _DRAND48_SUMMAND = 0x5DEECE66D, 0xB  # of the generator of Perl's rand
_TAIL = 0.025  # outside a 95 % interval, on each side
_LEAST_P = 1e-300  # smaller p-values are not told apart
_P_ERROR = 1e-12  # relative
_SUM_ERROR = 1e-12  # per term of a sum: sums that differ by less are equal
_MOST_SWAPPED = 1_000  # examples: 2 to the power of minus this number is still larger than 0
_FEW_UNEQUAL = 14  # examples; with more, swaps have p-values below any level of a test


def bootstrap_interval(
    values: Sequence[float] | Numbers, resamples: int, groups: Groups | None = None
) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean of some values, in their unit.

    Args:
        values: one per example.
        resamples: number of samples of the same size, drawn with replacement.
        groups: of the examples.

    Raises:
        DataError: there are no values, or one is not finite.
    """
    columns = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    low, high = bootstrap_intervals(columns, resamples, groups)[0]
    return float(low), float(high)


def bootstrap_shares(
    values: Numbers, resamples: int, groups: Groups | None = None
) -> tuple[float, float]:
    """Return the percentile interval of a mean of shares; if all are 0, or all are 1, the exact binomial interval.

    A bootstrap interval of equal values has no width: with 0 of 37 right, the true share can still be 9 %. The
    arguments are those of `bootstrap_interval`.
    """
    number = count_groups(values, groups)
    if number > 1:
        bound = _TAIL ** (1 / number)
        if (values == 0).all():
            return 0.0, 1 - bound
        if (values == 1).all():
            return bound, 1.0
    return bootstrap_interval(values, resamples, groups)


def bootstrap_intervals(values: Numbers, resamples: int, groups: Groups | None = None) -> Numbers:
    """Return the percentile intervals of the means of several columns, [examples, columns], on the same resamples.

    The other arguments are those of `bootstrap_interval`.

    Returns:
        [columns, 2]: low and high, in the unit of the values; NaN for a single group.

    Raises:
        DataError: there are no values, or one is not finite.
    """
    if count_groups(_finite(values, "an interval"), groups) == 1:
        return np.full((values.shape[1], 2), math.nan)
    means = resampled_means(values, resamples, groups)
    return np.quantile(means, [_TAIL, 1 - _TAIL], axis=0).T


def count_groups(values: Numbers, groups: Groups | None) -> int:
    """Return the number of groups of some examples."""
    return len(values) if groups is None else len(np.unique(groups))


def number_groups(groups: Sequence[str] | Groups) -> Groups:
    """Number the groups of some examples from 0, in the order of their first examples."""
    _, first, numbers = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]


def sum_groups(values: Numbers, groups: Groups | None) -> Numbers:
    """Add up the values of each group, [examples, …] → [groups, …]; without groups, return the values.

    The groups are in the order of their first examples, so their numbers do not decide what is drawn.
    """
    if groups is None or count_groups(values, groups) == len(values):
        return values
    numbers = number_groups(groups)
    sums = np.zeros((numbers.max() + 1, *values.shape[1:]))
    np.add.at(sums, numbers, values)
    return sums


class MeanOverSeeds(NamedTuple):
    """A mean with its standard errors over other examples and over other seeds, each with its degrees of freedom.

    Intervals and tests are Student's. With the errors e and s, half of an interval is √((e · t_e)² + (s · t_s)²), where
    t_e and t_s are the quantiles of t with their degrees of freedom. The p-value is that of the interval that ends at
    the tested value. The errors are 0 if all values are equal, and that of examples is NaN if it is unknown. A single
    run has no error of seeds.
    """

    mean: float
    example_error: float
    example_degrees: float
    seed_error: float = 0.0
    seed_degrees: float = 1.0

    @property
    def error(self) -> float:
        """The standard error over other examples and seeds."""
        return math.hypot(self.example_error, self.seed_error)

    def p_value(self) -> float:
        """Return the two-sided p-value of a mean of 0; 1 if the spread is unknown."""
        return min(1.0, 2 * self._tail_beyond(abs(self.mean)))

    def half_width(self, confidence: float = 0.95) -> float:
        """Return half the width of the interval of the mean; NaN if the spread is unknown."""
        return self._half_with_tail((1 - confidence) / 2)

    def p_larger(self, margin: float) -> float:
        """Return the one-sided p-value of a mean from -margin to margin: small if |mean| is larger; 1 if unknown."""
        return self._tail_beyond(abs(self.mean) - margin)

    def p_smaller(self, margin: float) -> float:
        """Return the p-value of two one-sided tests (TOST): small if |mean| is smaller than a margin; 1 if unknown."""
        return self._tail_beyond(margin - abs(self.mean))

    def detectable(self, significance: float, power: float) -> float:
        """Return the mean that a test at a level detects with a given power; infinite if the spread is unknown."""
        if not self.error > 0:
            return math.inf
        return self._half_with_tail(significance / 2) + self._half_with_tail(1 - power)

    def _half_with_tail(self, tail: float) -> float:
        """Return half the width of the interval that leaves this probability on each side; NaN if unknown."""
        if not self.error > 0:
            return math.nan
        degrees = (self.example_degrees, self.seed_degrees)
        of_examples, of_seeds = scipy.special.stdtrit(degrees, tail).tolist()
        return math.hypot(self.example_error * of_examples, self.seed_error * of_seeds)

    def _tail_beyond(self, distance: float) -> float:
        """Return the probability on each side of the interval of which half is `distance`; 1 if unknown."""
        if not self.error > 0:
            return 1.0
        if distance < 0:
            return 1 - self._tail_beyond(-distance)
        low, high = math.log(_LEAST_P), math.log(0.5)
        # bisection on the logarithm of the probability
        while high - low > _P_ERROR:
            middle = (low + high) / 2
            if self._half_with_tail(math.exp(middle)) > distance:
                low = middle
            else:
                high = middle
        return math.exp(high)


def ratio_over_examples(
    parts: Numbers, wholes: Numbers, groups: Groups | None = None
) -> MeanOverSeeds:
    """Return Σ parts / Σ wholes, both one per example, with its standard error over other examples (linearized).

    Of groups, the error is CR2 (Bell and McCaffrey 2002), and the degrees of freedom are those of Satterthwaite for
    examples that are independent. With one example a group, both are those without groups.
    """
    ratio = float(parts.sum() / wholes.sum())
    if count_groups(parts, groups) < 2:
        return MeanOverSeeds(ratio, math.nan, math.nan)
    noises, sizes = sum_groups(parts - ratio * wholes, groups), sum_groups(wholes, groups)
    cases, total = len(noises), sizes.sum()
    if cases == len(parts):
        squares, degrees = (noises**2).sum() * cases / (cases - 1), float(cases - 1)
    else:
        squares = (noises**2 / (1 - sizes / total)).sum()
        degrees = _satterthwaite_degrees(sizes / total)
    error = float(np.sqrt(squares) / total)
    if error <= _SUM_ERROR * abs(ratio):
        error = 0.0
    return MeanOverSeeds(ratio, error, degrees)


def _satterthwaite_degrees(shares: Numbers) -> float:
    """Return the degrees of freedom of the CR2 variance of a mean over groups with these shares of the examples.

    The residuals of the means of two groups have the covariance -1/N; a group of n has the variance 1/n - 1/N. With the
    weights of CR2, the expected variance is 1/N, and this is the sum that remains of its square.
    """
    weights = shares**2 / (1 - shares)
    return float(1 / ((shares**2 - weights**2).sum() + weights.sum() ** 2))


# Begin to read here for tests; intervals of means are above.
def paired_effect(
    values: Numbers, second: Numbers | None = None, groups: Groups | None = None
) -> MeanOverSeeds:
    """Return the mean of paired differences, with its error over other examples and, of several runs, other seeds.

    With few examples, or equal differences, the error is at least so large that the p-value is not below 2^(1 − m): m
    examples (or groups) with unequal scores have 2^m swaps of the two outputs. So few examples are never significant,
    however alike their differences. benchmarks/paired_tests.py measures how often the test is wrong.

    Args:
        values: differences [examples, seeds]; of systems without common seeds, the scores of the first.
        second: [examples, other seeds], the scores of the second system without common seeds.
        groups: of the examples.
    """
    effect = mean_over_seeds(values, second, groups)
    unequal = int(np.count_nonzero(sum_groups(_example_means(values, second), groups)))
    enough = unequal > _FEW_UNEQUAL and effect.error > 0
    if unequal < 2 or enough or math.isnan(effect.error):
        return effect
    if effect.error == 0:  # equal differences
        effect = effect._replace(example_error=_SUM_ERROR * abs(effect.mean))
    factor = max(
        1.0, abs(effect.mean) / effect._half_with_tail(2.0 ** -min(unequal, _MOST_SWAPPED))
    )
    return effect._replace(
        example_error=factor * effect.example_error, seed_error=factor * effect.seed_error
    )


def holm_levels(p_values: Sequence[float] | Numbers, level: float = 0.05) -> Numbers:
    """Return the level at which `holm` tests each p-value, in their order: a p-value below it is significant.

    The k-th smallest of m is tested at level / (m − k + 1), until one is not significant. The others have its level. An
    interval of confidence 1 − level then contains 0 if, and only if, its difference is not significant.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values)
    steps = level / np.arange(len(values), 0, -1)
    failed = np.flatnonzero(values[order] >= steps)
    levels = np.empty_like(values)
    levels[order] = np.minimum(steps, steps[failed[0]] if len(failed) else 1.0)
    return levels


def mean_over_seeds(
    values: Numbers, second: Numbers | None = None, groups: Groups | None = None
) -> MeanOverSeeds:
    """Return the mean of some values, with its standard errors over other examples and, of several runs, other seeds.

    These are the errors of the mean of the examples' means, and of the mean of the seeds' means. What an example has
    only with one seed counts in both, so tests are rather too cautious. benchmarks/familywise_error.py measures how
    often they are wrong.

    Args:
        values: [examples, seeds]; with a single example, the error is NaN.
        second: [examples, other seeds] of a second system, for the difference of two systems without common seeds. Each
            has its own variance of seeds, and the smaller degrees of freedom count. A single seed has the variance of
            the other system.
        groups: of the examples.
    """
    systems = [values] if second is None else [values, second]
    of_examples = ratio_over_examples(_example_means(values, second), np.ones(len(values)), groups)
    numbers = [system.shape[1] for system in systems]
    variances = [system.mean(axis=0).var(ddof=1) for system in systems if system.shape[1] > 1]
    if not variances:
        return of_examples
    # if one has a single seed, its variance is taken to be that of the other
    if len(variances) < len(systems):
        variances *= len(systems)
    error = math.sqrt(np.dot(variances, np.reciprocal(np.array(numbers, dtype=float))))
    degrees = min(number for number in numbers if number > 1) - 1
    # equal means, but for rounding
    if error <= _SUM_ERROR * abs(of_examples.mean):
        return of_examples
    return of_examples._replace(seed_error=error, seed_degrees=float(degrees))


def _example_means(values: Numbers, second: Numbers | None) -> Numbers:
    means: Numbers = values.mean(axis=1)
    return means if second is None else means - second.mean(axis=1)


def interval_over_seeds(
    values: Numbers, is_share: bool, groups: Groups | None = None
) -> tuple[float, float]:
    """Return the 95 % interval of a mean over seeds and examples, in the unit of the values.

    Shares have an interval on the scale of arcsin √share, which stays between 0 and 1; if all are 0, or all are 1, the
    exact binomial interval of the examples. NaN if other values are all equal, or there is a single example or seed.
    `values` are [examples, seeds].
    """
    estimate = mean_over_seeds(values, groups=groups)
    if is_share and estimate.mean in (0.0, 1.0):
        return bootstrap_shares(values[:, 0], 1, groups)
    half = estimate.half_width()
    if not is_share:
        return estimate.mean - half, estimate.mean + half
    angle = math.asin(math.sqrt(estimate.mean))
    half /= 2 * math.sqrt(estimate.mean * (1 - estimate.mean))
    return math.sin(max(angle - half, 0.0)) ** 2, math.sin(min(angle + half, math.pi / 2)) ** 2


def resampled_means(values: Numbers, resamples: int, groups: Groups | None = None) -> Numbers:
    """Draw samples with replacement and average each: [examples, columns] → [resamples, columns].

    Of groups, as many are drawn as there are, each with all its examples.
    """
    sizes = sum_groups(np.ones(len(values)), groups)
    values = sum_groups(values, groups)
    count, columns = values.shape
    draw = np.random.default_rng(BOOTSTRAP_SEED)
    means = np.empty((resamples, columns))
    for row in range(resamples):
        times = np.bincount(draw.integers(0, count, count), minlength=count)
        means[row] = times @ values / (times @ sizes)
    return means


def perl_intervals(values: Numbers, resamples: int = 1_000) -> Numbers:
    """Return the averages and intervals of ROUGE-1.5.5 with `-c 95 -r RESAMPLES`, for several columns.

    Its resamples are fixed: number i is drawn with Perl's `rand` after `srand(i)`, which on Linux is drand48. Its
    average is the mean of the resampled means, not of the values. Both bounds are interpolated between two sorted
    means, with the fraction of the upper bound. Rounded to five digits of 0–1, this equals its output if the values
    are from perl mode and in its order: sorted as strings by "evaluation id.system".

    Args:
        values: [examples, columns].
        resamples: number of samples of the same size, drawn with replacement; at least two.

    Returns:
        [columns, 3]: average, low and high, in the unit of the values.

    Raises:
        DataError: there are no values, or one is not finite.
    """
    count = len(_finite(values, "an interval"))
    # these wrap at 2**64, a multiple of 2**48
    factors = np.cumprod(np.full(count, _DRAND48_FACTOR, dtype=np.uint64))
    terms = np.concatenate([np.ones(1, dtype=np.uint64), factors[:-1]])
    sums = np.uint64(_DRAND48_SUMMAND) * np.cumsum(terms)
    means = np.empty((resamples, values.shape[1]))
    for seed in range(resamples):
        states = (factors * np.uint64((seed << 16) + 0x330E) + sums) & np.uint64(2**48 - 1)
        drawn = (np.ldexp(states.astype(np.float64), -48) * count).astype(np.int64)
        times = np.bincount(drawn, minlength=count)
        means[seed] = times @ values / count
    ranked = np.sort(means, axis=0)
    tail = resamples * 2.5 / 100
    lower, upper = int(tail), int(resamples - tail - 1)
    fraction = resamples - tail - 1 - upper
    bounds = [
        ranked[index] + (ranked[index + 1] - ranked[index]) * fraction for index in (lower, upper)
    ]
    return np.stack([means.mean(axis=0), *bounds], axis=1)


def approximate_randomization(
    differences: Sequence[float] | Numbers, resamples: int = 10_000
) -> Numbers:
    """Test whether two systems differ, by swapping their outputs at random, example by example; return p-values.

    A p-value is the share of swaps with a mean difference at least as far from 0. It is valid for any number of
    examples: at 5 %, the test rejects at most 5 % of equal systems.

    Args:
        differences: [examples] or [examples, columns], first system's score minus the second's; of groups, their sums
            (`sum_groups`). All columns have the same swaps. A difference of 0 has no effect, so it can replace the value
            of an example to which a column does not apply.
        resamples: number of random swaps of all examples.

    Returns:
        A single p-value, or [columns].

    Raises:
        DataError: there are no differences, or one is not finite.
    """
    values = _finite(differences, "a paired test")
    bound = np.abs(values.sum(axis=0)) - _SUM_ERROR * np.abs(values).sum(axis=0)
    # a bounded number of swaps is in memory
    rows_at_once = max(1, _NUMBERS_AT_ONCE // max(values.shape))
    blocks = _draw_signs(resamples, len(values), rows_at_once)
    far = sum((np.abs(signs @ values) >= bound).sum(axis=0) for signs in blocks)
    return np.asarray((far + 1) / (resamples + 1))


def holm(p_values: Sequence[float] | Numbers) -> Numbers:
    """Return p-values corrected for multiple comparisons (Holm 1979), in their order.

    The probability of any false rejection stays at the level of the test.

    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values)
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(
        np.minimum(values[order] * np.arange(len(values), 0, -1), 1)
    )
    return corrected


def model_confidence_set(
    scores: Sequence[Numbers], resamples: int = 1_000, groups: Groups | None = None
) -> Numbers:
    """Return the p-value of each system for being among the best (Hansen, Lunde & Nason 2011, with T_R).

    The systems with p ≥ 5 % contain the best one with 95 % confidence; that it is chosen by the same scores is allowed
    for. Of a set, the system furthest below another one is tested: t = difference / its error, against the largest t of
    centred resamples. It leaves the set, and the next is tested. P-values never fall.

    Args:
        scores: of each system, [examples, seeds], on the same examples; higher is better.
        resamples: number of resamples, of examples and of each system's seeds.
        groups: of the examples.

    Raises:
        DataError: there are no scores, or one is not finite.
    """
    values = _finite(np.concatenate(scores, axis=1), "a model confidence set")
    draw, ends = np.random.default_rng(1), np.cumsum([each.shape[1] for each in scores])
    resampled = np.split(resampled_means(values, resamples, groups), ends[:-1], axis=1)
    means, errors = np.array([each.mean() for each in scores]), np.empty((resamples, len(scores)))
    for system, of_seeds in enumerate(resampled):
        center = of_seeds.mean(axis=1)
        indices = draw.integers(0, of_seeds.shape[1], of_seeds.shape)
        seed_means = np.take_along_axis(of_seeds, indices, axis=1).mean(axis=1)
        error = center - means[system] + _seed_factor(scores[system]) * (seed_means - center)
        errors[:, system] = error
    least = _SUM_ERROR * np.abs(values).max()
    gaps = _larger_than(means - means[:, None], least)  # [i, j]: how far i is below j
    gap_errors = np.empty_like(gaps)
    for system in range(len(means)):
        differences = _larger_than(errors - errors[:, [system]], least)
        gap_errors[system] = np.sqrt((differences**2).mean(axis=0))
    t, remaining = _ratio(gaps, gap_errors), list(range(len(means)))
    removed: dict[int, float] = {}  # system → its t, the furthest one first
    while len(remaining) > 1:
        below = t[np.ix_(remaining, remaining)].max(axis=1)
        removed[remaining.pop(int(below.argmax()))] = below.max()
    # t of the resamples, of the sets from the last to the first
    p_values, largest = np.ones(len(means)), np.zeros(resamples)
    for system, observed in reversed(removed.items()):
        differences = np.abs(_larger_than(errors[:, remaining] - errors[:, [system]], least))
        t_resampled = _ratio(differences, gap_errors[system, remaining])
        largest = np.maximum(largest, t_resampled.max(axis=1))
        p_values[system] = (largest >= observed).mean()
        remaining.append(system)
    order = list(removed)
    p_values[order] = np.maximum.accumulate(p_values[order])
    return p_values


def _larger_than(values: Numbers, least: float) -> Numbers:
    return np.where(np.abs(values) <= least, 0.0, values)


def _ratio(gaps: Numbers, error: Numbers) -> Numbers:
    """Divide gaps by their errors; without an error, a gap is infinite and no gap is 0."""
    return np.divide(gaps, error, out=np.where(gaps > 0, math.inf, 0.0), where=error > 0)


def _seed_factor(scores: Numbers) -> float:
    """Return the factor for resampled seeds: without the variance of the examples, and as wide as Student's t."""
    examples, seeds = scores.shape
    if min(examples, seeds) < 2 or not (spread := scores.mean(axis=0).var(ddof=1)):
        return 0.0
    noise = (
        (scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()).var()
        * examples
        * seeds
    )
    share = max(0.0, 1 - noise / (examples - 1) / (seeds - 1) / examples / spread)
    t = float(scipy.special.stdtrit(seeds - 1, 1 - _TAIL))
    return math.sqrt(share * seeds / (seeds - 1)) * t / 1.96


def _draw_signs(resamples: int, count: int, rows_at_once: int) -> Iterator[Numbers]:
    """Draw signs, +1 or -1: [resamples, count] in arrays of a few rows; the draws do not depend on `rows_at_once`."""
    draw = np.random.default_rng(1)
    words = -(-count // 64)
    for start in range(0, resamples, rows_at_once):
        rows = min(rows_at_once, resamples - start)
        integers = draw.integers(0, 2**64, (rows, words), dtype=np.uint64).astype("<u8")
        bits = np.unpackbits(integers.view(np.uint8), axis=1, count=count)
        yield 1 - 2 * bits.astype(np.float64)


def _finite(values: Sequence[float] | Numbers, user: str) -> Numbers:
    array = np.asarray(values, dtype=np.float64)
    if len(array) == 0:
        raise DataError(f"{user} needs at least one value; there is none")
    if not np.isfinite(array).all():
        raise DataError(f"{user} needs finite values; one is infinite or not a number")
    return array
