"""How often approximate randomization is wrong, and how often it finds a difference that is there.

python benchmarks/paired_tests.py [--simulations 4000] [--resamples 1000]

Simulated systems have ROUGE-like scores: beta-distributed, and alike on the same example. Equal systems should be
called different at 5 % in 4 to 6 % of the simulations; one that is a point better on 1,000 examples should be found as
often as `smallest_detectable_difference` says, and one that is better by that difference four times in five, however
few the examples are.
"""

import argparse
import math
import time
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from tabulate import tabulate

from longsumbench.metrics.statistics import approximate_randomization, smallest_detectable_difference

LEVEL = 0.05
AT_ONCE = 100  # simulations on the same resamples; the next ones have their own
MEAN = 1 / 3  # of a score
# What two systems are: the concentrations (a + b) of their beta distributions; the lower, the wider.
EQUAL = {"same distribution": (12, 12), "same mean, other spread": (12, 24)}
CORRELATIONS = (0.5, 0.8)  # of two systems' scores on an example, before they are made beta
POINT = 0.01
FEW = (5, 6, 7, 8, 10, 20, 50)  # examples


def main() -> None:
    """Print the measured rates beside what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=4_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    options = parser.parse_args()
    begun = time.perf_counter()
    rows = []
    for name, spreads in EQUAL.items():
        for examples in (100, 1_000):
            rate = rejected(options.simulations, options.resamples, examples, spreads, CORRELATIONS[0], 0.0)
            rows.append([f"{name}, {examples:,} examples", "4 to 6 %", f"{rate:.1%}"])
    for correlation in CORRELATIONS:
        spreads = EQUAL["same distribution"]
        rate = rejected(options.simulations, options.resamples, 1_000, spreads, correlation, POINT)
        asked = f"{power(POINT, 1_000, spreads, correlation):.1%}"
        rows.append([f"1 point better, 1,000 examples, correlation {correlation}", asked, f"{rate:.1%}"])
    spreads = EQUAL["same distribution"]
    for examples in FEW:
        differences = draw(np.random.default_rng(examples), examples, options.simulations, spreads, CORRELATIONS[0])
        difference, rate = detected(differences, options.resamples)
        asked = "nothing detectable" if math.isinf(difference) else "80 %"
        better = "10 points" if math.isinf(difference) else f"{100 * difference:.1f} points"
        rows.append([f"{better} better, {examples} examples", asked, f"{rate:.1%}"])
    print(f"{options.simulations:,} simulations a row, {options.resamples:,} resamples a test, p ≤ {LEVEL}")
    print(tabulate(rows, headers=["systems", "asked", "called different"]))
    print(f"{time.perf_counter() - begun:.0f} s")


def detected(differences: NDArray[np.float64], resamples: int) -> tuple[float, float]:
    """Return the smallest detectable difference of equal systems, and how often one of it is found.

    Where nothing is detectable (infinite), systems are 10 points apart.

    Args:
        differences: [examples, simulations].
        resamples: of each test.
    """
    each = [smallest_detectable_difference(column, LEVEL) for column in differences.T]
    difference = math.sqrt(np.mean(np.square(each)))  # as the spread is known from all simulations together
    planted = 10 * POINT if math.isinf(difference) else difference
    return difference, float((approximate_randomization(differences + planted, resamples) <= LEVEL).mean())


def rejected(
    simulations: int, resamples: int, examples: int, spreads: tuple[int, int], correlation: float, better: float
) -> float:
    """Return the share of simulations in which the systems are called different."""
    found = 0
    for seed, count in enumerate(batches(simulations)):
        differences = draw(np.random.default_rng(seed), examples, count, spreads, correlation) + better
        found += int((approximate_randomization(differences, resamples, seed) <= LEVEL).sum())
    return found / simulations


def batches(simulations: int) -> Iterator[int]:
    """Yield how many simulations share their resamples, until there were enough."""
    for start in range(0, simulations, AT_ONCE):
        yield min(AT_ONCE, simulations - start)


def draw(
    random: np.random.Generator, examples: int, count: int, spreads: tuple[int, int], correlation: float
) -> NDArray[np.float64]:
    """Draw the differences of two systems of equal mean: [examples, count].

    A Gaussian copula: correlated normal numbers, of which each system makes beta-distributed scores.
    """
    shared, *own = random.normal(size=(3, examples, count))
    first, second = (
        beta_quantiles(math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * each, spread)
        for each, spread in zip(own, spreads, strict=True)
    )
    return first - second


def beta_quantiles(normal: NDArray[np.float64], spread: int) -> NDArray[np.float64]:
    """Turn standard normal numbers into beta-distributed ones, read off a fine table of quantiles."""
    grid = np.linspace(-8, 8, 4_001)
    quantiles = scipy.stats.beta.ppf(scipy.stats.norm.cdf(grid), MEAN * spread, (1 - MEAN) * spread)
    return np.asarray(np.interp(normal, grid, quantiles))


def power(difference: float, examples: int, spreads: tuple[int, int], correlation: float) -> float:
    """Return how often a difference is found, by the model of the smallest detectable one.

    That one grows with z(power): where it is the planted difference, the power is the computed one.
    """
    many = draw(np.random.default_rng(0), 1_000_000, 1, spreads, correlation)[:, 0]
    at_half = smallest_detectable_difference(many, LEVEL, power=0.5) * math.sqrt(len(many) / examples)
    normal = NormalDist()
    deviations = normal.inv_cdf(1 - LEVEL / 2)  # of the mean, which the test asks for: what is found half of the time
    return normal.cdf(deviations * (difference / at_half - 1))


if __name__ == "__main__":
    main()
