"""Intervals of means, tests of paired differences, and what they may claim."""

import math
import shutil
import subprocess
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from longsumbench.errors import DataError
from longsumbench.metrics.statistics import (
    MeanOverSeeds,
    approximate_randomization,
    bootstrap_interval,
    bootstrap_shares,
    holm,
    holm_levels,
    interval_over_seeds,
    mean_over_seeds,
    paired_effect,
    perl_intervals,
)

SCORES = np.random.default_rng(7).beta(2, 5, size=200) * 100


def test_an_interval_by_hand() -> None:
    """Of 0, 0, 0, 0, 0 and 1, a resample's sum is at most 2 with a chance of 94 %, and at most 3 with one of 99 %."""
    assert bootstrap_interval([0.0, 0, 0, 0, 0, 1], resamples=4_000) == (0.0, 0.5)


def test_shares_that_all_agree_leave_doubt() -> None:
    """Nothing right out of 37: up to 1 − 0.025^(1/37) = 9.5 %; all right is its mirror. NaN has no interval."""
    low, high = bootstrap_shares(np.zeros(37), 100)
    assert (low, high) == (0, pytest.approx(0.0949, abs=1e-4))
    assert bootstrap_shares(np.ones(37), 100) == (pytest.approx(1 - high), 1)
    with pytest.raises(DataError, match="an interval needs"):
        bootstrap_shares(np.array([1.0, math.nan]), 100)


PERL = """
my @means;
for my $resample (0 .. $ARGV[0] - 1) {
    srand($resample);
    my $sum = 0;
    $sum += $ARGV[1 + int(rand($#ARGV))] for 1 .. $#ARGV;
    push @means, $sum / $#ARGV;
}
@means = sort { $a <=> $b } @means;
my $total = 0;
$total += $_ for @means;
printf "%.12f %.12f %.12f", $total / @means, $means[25], $means[974];
"""


def test_perl_draws_as_perl_does() -> None:
    """With 1,000 resamples the average and the bounds are what Perl's own rand makes of resamples seeded 0 to 999."""
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("perl")
    values = SCORES[:37].round(5)
    message = subprocess.run(
        [perl, "-e", PERL, "1000", *map(str, values)], capture_output=True, text=True, check=True
    )
    assert perl_intervals(values.reshape(-1, 1))[0] == pytest.approx(
        [float(part) for part in message.stdout.split()]
    )


def swaps_as_far(differences: NDArray[np.float64]) -> float:
    """The share of all swaps of outputs whose mean difference is as far from 0: the exact p-value."""
    swaps = np.array(list(product([-1, 1], repeat=len(differences)))) @ differences
    return float(np.mean(np.abs(swaps) >= abs(differences.sum()) - 1e-9))


@pytest.mark.parametrize("seed", range(6))
def test_a_paired_effect_against_all_swaps(seed: int) -> None:
    """On twelve examples the p-value is close to the share of all 4,096 swaps that are as far from 0."""
    differences = np.random.default_rng(seed).normal(0.5, 1, 12)
    exact = swaps_as_far(differences)
    assert paired_effect(differences[:, None]).p_value() == pytest.approx(exact, abs=0.02)
    assert approximate_randomization(differences, 20_000) == pytest.approx(exact, abs=0.012)


@given(st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=2, max_size=9))
def test_a_paired_effect_claims_no_more_than_its_swaps(differences: list[float]) -> None:
    """No p-value is below the least that swapping the unequal pairs can give; a single one is never significant."""
    unequal = sum(value != 0 for value in differences)
    least = 2 ** (1 - unequal) if unequal > 1 else 0.3
    assert paired_effect(np.array(differences)[:, None]).p_value() >= least * (1 - 1e-6)


def test_equal_differences_by_hand() -> None:
    """Seven times 0.1, in one run or in three, are 2 of 128 swaps; the interval at that level ends at 0."""
    for seeds in (1, 3):
        effect = paired_effect(np.full((7, seeds), 0.1))
        assert effect.p_value() == pytest.approx(2 / 128)
        assert effect.mean == pytest.approx(effect.half_width(1 - 2 / 128))
    assert paired_effect(np.zeros((7, 1))).p_value() == 1


def test_smallest_detectable_difference_by_hand() -> None:
    """Of a standard deviation of 10 over 100 examples it is (1.984 + 0.845) · 10 / √100, by Student's t of 99."""
    effect = paired_effect(np.array([10.0, -10.0] * 50)[:, None] * math.sqrt(99 / 100))
    assert effect.detectable(0.05, 0.8) == pytest.approx(2.8295, abs=1e-4)
    assert effect.detectable(0.01, 0.5) == pytest.approx(2.6264, abs=1e-4)


def test_a_mean_over_seeds_by_hand() -> None:
    """Of [[0, 4], [2, 6]], examples' means are 2 and 4, seeds' means 1 and 5: errors 1 and 2, with one degree each."""
    effect = mean_over_seeds(np.array([[0.0, 4.0], [2.0, 6.0]]))
    assert effect == pytest.approx((3, 1, 1, 2, 1))
    assert effect.error == pytest.approx(math.sqrt(5))
    assert effect.half_width() == pytest.approx(
        math.sqrt(5) * math.tan(0.475 * math.pi)
    )  # Student's t of 1 is Cauchy's
    assert effect.p_value() == pytest.approx(1 - 2 * math.atan(3 / math.sqrt(5)) / math.pi)


def test_other_seeds_are_unpaired() -> None:
    """With a constant added to a seed of each system, the error is that of both means, with the fewer degrees."""
    first = SCORES[:, None] + np.array([0.0, 2.0])
    second = SCORES[:, None] + np.array([1.0, 4.0, 4.0])
    effect = mean_over_seeds(first, second)
    assert effect.mean == pytest.approx(1 - 3)
    assert effect.error == pytest.approx(math.sqrt(2 / 2 + 3 / 3))  # variances 2 and 3
    assert effect.seed_degrees == 1
    one = mean_over_seeds(first[:, :1], second)
    assert (one.error, one.seed_degrees) == (pytest.approx(math.sqrt(3 + 3 / 3)), 2)
    assert mean_over_seeds(first[:, :1], second[:, :1]).seed_error == 0


EFFECTS = st.builds(
    MeanOverSeeds,
    st.floats(-40, 40).filter(lambda mean: abs(mean) > 1e-3),
    st.floats(0.1, 5),
    st.integers(1, 999).map(float),
    st.floats(0, 5),
    st.integers(1, 20).map(float),
)


@given(EFFECTS)
def test_the_p_value_is_that_of_the_interval_that_ends_at_zero(effect: MeanOverSeeds) -> None:
    """An interval of confidence 1 − p reaches from the mean to 0; those of more contain 0, those of less do not."""
    p = effect.p_value()
    assert 0 < p < 1
    if 1e-9 < p < 0.9:  # 1 − p has 16 digits
        assert effect.half_width(1 - p) == pytest.approx(abs(effect.mean), rel=1e-6)
        assert effect.half_width(1 - p * 1.01) < abs(effect.mean) < effect.half_width(1 - p * 0.99)
    assert effect.p_larger(0.0) == pytest.approx(p / 2, rel=1e-9)


@pytest.mark.parametrize("t", [0.0, 0.5, 3.0, 7.0, 20.0, 1e6])
def test_p_values_as_by_scipy(t: float) -> None:
    """With one source of variance the p-value is that of Student's t, to ten digits; the smallest one is about 0."""
    for degrees in (2.0, 7.0, 399.0):
        expected = pytest.approx(2 * scipy.stats.t.sf(t, degrees), rel=1e-10, abs=1e-299)
        assert MeanOverSeeds(t, 1.0, degrees).p_value() == expected
        assert MeanOverSeeds(-t, 0.0, 5.0, 1.0, degrees).p_value() == expected


@pytest.mark.parametrize(
    "values", [np.full((5, 3), 0.4), np.array([[0.1, 0.2, 0.4]]), np.array([[0.1]])]
)
def test_unknown_spread(values: NDArray[np.float64]) -> None:
    """Equal scores, or one example: no interval, p-values of 1, and nothing can be detected."""
    effect = mean_over_seeds(values)
    assert (effect.p_value(), effect.detectable(0.05, 0.8)) == (1, math.inf)
    assert (effect.p_smaller(0.5), effect.p_larger(0.01)) == (1, 1)
    assert np.isnan(interval_over_seeds(values, is_share=True)).all()


def test_intervals_of_shares_over_seeds() -> None:
    """They stay from 0 to 1, and are exact where all are 0 or 1; other units have symmetric ones."""
    few = np.zeros((40, 3))
    few[0, 0] = few[1, :] = 1
    low, high = interval_over_seeds(few, is_share=True)
    assert 0 <= low < few.mean() < high < 0.3
    assert sum(interval_over_seeds(few, is_share=False)) == pytest.approx(2 * few.mean())
    bound = 0.025 ** (1 / 40)
    assert interval_over_seeds(np.ones((40, 3)), is_share=True) == pytest.approx((bound, 1))


def test_holm_by_hand() -> None:
    """The smallest of four counts four times, the next three times, and none less than the one before."""
    assert holm([0.03, 0.01, 0.5, 0.04]).tolist() == pytest.approx([0.09, 0.04, 0.5, 0.09])
    assert holm([0.6, 0.7]).tolist() == [1, 1]
    assert holm([]).tolist() == []


@pytest.mark.parametrize(
    ("mean", "smaller", "larger"),
    [(0.0, 0.0, 1.0), (1.0, 0.5, 0.5), (-1.0, 0.5, 0.5), (3.0, 1.0, 0.0)],
)
def test_a_margin_by_hand(mean: float, smaller: float, larger: float) -> None:
    """Exactly at a margin of 1 both p-values are a half; far inside or outside one of them is 0."""
    effect = MeanOverSeeds(mean, 0.1, 50.0)
    assert (effect.p_smaller(1.0), effect.p_larger(1.0)) == pytest.approx(
        (smaller, larger), abs=1e-9
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_levels_of_holm(values: list[float]) -> None:
    """A p-value is below its level if, and only if, the corrected one is below 5 %."""
    below = np.array(values) < holm_levels(values)
    assert below.tolist() == (holm(values) < 0.05).tolist()
