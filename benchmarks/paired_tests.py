"""How often the paired test of two systems is wrong, and how often it finds a difference that is there.

python benchmarks/paired_tests.py [--simulations 4000]

Simulated systems have ROUGE-like scores: beta-distributed, and alike on the same example. Equal systems should be
called different at 5 % in 4 to 6 % of the simulations; one that is a point better on 1,000 examples should be found as
often as the smallest detectable difference says, and one that is better by that difference four times in five, however
few the examples are. Systems that differ on few examples, by 0 or 1, should be called different in at most 6 %.
"""

import argparse
import math
import time
from statistics import NormalDist

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from tabulate import tabulate

from longsumbench.metrics.statistics import MeanOverSeeds, paired_effect

LEVEL = 0.05
MEAN = 1 / 3  # of a score
# What two systems are: the concentrations (a + b) of their beta distributions; the lower, the wider.
EQUAL = {"same distribution": (12, 12), "same mean, other spread": (12, 24)}
CORRELATIONS = (0.5, 0.8)  # of two systems' scores on an example, before they are made beta
POINT = 0.01
FEW = (5, 6, 7, 8, 10, 20, 50)  # examples
SPARSE = (
    0.01,
    0.03,
    0.1,
)  # share of 400 examples on which one of two equal systems is right and the other is not


def main() -> None:
    """Print the measured rates beside what is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=4_000)
    options = parser.parse_args()
    begun = time.perf_counter()
    rows, same = [], EQUAL["same distribution"]
    for name, spreads in EQUAL.items():
        for examples in (100, 1_000):
            differences = draw(
                np.random.default_rng(0), examples, options.simulations, spreads, CORRELATIONS[0]
            )
            rows.append(
                [f"{name}, {examples:,} examples", "4 to 6 %", f"{rejected(differences):.1%}"]
            )
    for share in SPARSE:
        random = np.random.default_rng(1)
        signs = random.choice(
            [-1, 0, 1], (400, options.simulations), p=[share / 2, 1 - share, share / 2]
        )
        rows.append(
            [
                f"equal, other on {share:.0%} of 400 examples",
                "at most 6 %",
                f"{rejected(signs):.1%}",
            ]
        )
    for correlation in CORRELATIONS:
        differences = draw(np.random.default_rng(2), 1_000, options.simulations, same, correlation)
        asked, rate = (
            f"{power(POINT, 1_000, same, correlation):.1%}",
            f"{rejected(differences + POINT):.1%}",
        )
        rows.append([f"1 point better, 1,000 examples, correlation {correlation}", asked, rate])
    for examples in FEW:
        differences = draw(
            np.random.default_rng(examples), examples, options.simulations, same, CORRELATIONS[0]
        )
        difference = detectable(differences) if 2.0 ** (1 - examples) < LEVEL else 10 * POINT
        asked = "80 %" if 2.0 ** (1 - examples) < LEVEL else "nothing detectable"
        rate = f"{rejected(differences + difference):.1%}"
        rows.append([f"{100 * difference:.1f} points better, {examples} examples", asked, rate])
    print(f"{options.simulations:,} simulations a row, p < {LEVEL}")
    print(tabulate(rows, headers=["systems", "asked", "called different"]))
    print(f"{time.perf_counter() - begun:.0f} s")


def detectable(differences: NDArray[np.float64]) -> float:
    """Return the smallest detectable difference of equal systems, [examples, simulations].

    It is computed from the mean variance of all simulations, as the spread is then known.
    """
    examples, columns = len(differences), (differences - differences.mean()).T
    errors = [paired_effect(column[:, None]).error for column in columns]
    error = math.sqrt(np.mean(np.square(errors)))
    return MeanOverSeeds(0.0, error, example_degrees=examples - 1.0).detectable(LEVEL, 0.8)


def rejected(differences: NDArray[np.float64]) -> float:
    """Return the share of simulations, [examples, simulations], in which the systems are called different."""
    return float(
        np.mean([paired_effect(column[:, None]).p_value() < LEVEL for column in differences.T])
    )


def draw(
    random: np.random.Generator,
    examples: int,
    count: int,
    spreads: tuple[int, int],
    correlation: float,
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
    at_half = paired_effect(many[:, None]).detectable(LEVEL, 0.5) * math.sqrt(len(many) / examples)
    normal = NormalDist()
    deviations = normal.inv_cdf(
        1 - LEVEL / 2
    )  # of the mean, which the test asks for: what is found half of the time
    return normal.cdf(deviations * (difference / at_half - 1))


if __name__ == "__main__":
    main()
