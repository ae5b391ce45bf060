"""Bootstrap intervals."""

import numpy as np
import pytest
import scipy.stats

from longsumbench.errors import DataError
from longsumbench.statistics import bootstrap_interval, bootstrap_intervals, interval_of_shares, resampled_means

SCORES = np.random.default_rng(7).beta(2, 5, size=200) * 100


def test_agrees_with_scipy() -> None:
    """The interval is scipy's percentile interval, up to the noise of drawing."""
    peer = scipy.stats.bootstrap((SCORES,), np.mean, n_resamples=20_000, method="percentile", rng=3)
    low, high = bootstrap_interval(SCORES, resamples=20_000, seed=1)
    assert (low, high) == pytest.approx(tuple(peer.confidence_interval), abs=0.1)


def test_by_hand() -> None:
    """Of two values 0 and 1 a resample's mean is 0, ½ or 1 with chances ¼, ½, ¼: the middle 40 % is ½ alone."""
    assert bootstrap_interval([0.0, 1.0], resamples=1_000, seed=1, confidence=0.4) == (0.5, 0.5)
    assert bootstrap_interval([0.0, 1.0], resamples=1_000, seed=1, confidence=0.9) == (0.0, 1.0)


def test_means_are_of_resampled_values() -> None:
    """Every resampled mean of two values is one of the three that are possible, in the expected shares."""
    means = resampled_means(np.array([[0.0], [1.0]]), 4_000, seed=2)
    assert set(means.ravel()) == {0.0, 0.5, 1.0}
    assert np.mean(means == 0.5) == pytest.approx(0.5, abs=0.03)


def test_seeded() -> None:
    """The same seed gives the same interval; another seed, another."""
    first = bootstrap_interval(SCORES, 500, seed=1)
    assert bootstrap_interval(SCORES, 500, seed=1) == first
    assert bootstrap_interval(SCORES, 500, seed=2) != first


def test_columns_share_resamples() -> None:
    """A column has the same interval alone as beside others, and twice the values give twice the interval."""
    pair = bootstrap_intervals(np.stack([SCORES, 2 * SCORES], axis=1), 500, seed=1)
    assert tuple(pair[0]) == pytest.approx(bootstrap_interval(SCORES, 500, seed=1))
    assert pair[1] == pytest.approx(2 * pair[0])


def test_one_value() -> None:
    """One value, or equal ones, have an interval of no width."""
    assert bootstrap_interval([41.5], 100, seed=1) == (41.5, 41.5)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")]])
def test_refuses(values: list[float]) -> None:
    """No values, or one that is not a number, is an error and not an interval."""
    with pytest.raises(DataError, match="an interval needs"):
        bootstrap_interval(values, 100, seed=1)


def test_shares_that_all_agree_leave_doubt() -> None:
    """Nothing right out of 37: up to 1 − 0.025^(1/37) = 9.5 %; all right is its mirror; else it is the bootstrap's."""
    low, high = interval_of_shares(np.zeros(37), 100, seed=1)
    assert (low, high) == (0, pytest.approx(0.0949, abs=1e-4))
    assert interval_of_shares(np.ones(37), 100, seed=1) == (pytest.approx(1 - high), 1)
    mixed = np.array([0.0, 1, 1, 0.5])
    assert interval_of_shares(mixed, 100, seed=1) == bootstrap_interval(mixed, 100, seed=1)
