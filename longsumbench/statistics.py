"""How sure a mean is: percentile bootstrap over examples."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longsumbench.errors import DataError


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
    if len(values) == 0:
        raise DataError("an interval needs at least one value; there is none")
    if not np.isfinite(values).all():
        raise DataError("an interval needs finite values; one is infinite or not a number")
    means = resampled_means(values, resamples, seed)
    tail = (1 - confidence) / 2
    return np.quantile(means, [tail, 1 - tail], axis=0).T


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
