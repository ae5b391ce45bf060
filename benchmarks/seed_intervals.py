"""How often the intervals over examples and seeds contain the true mean, and how often equal systems differ.

python benchmarks/seed_intervals.py [--simulations 4000]

A score is the sum of an effect of its example, of its seed and of both, as a quantile of a beta distribution (like
ROUGE) or as 0 or 1 (like the recall of a fact). "examples' part" is the share of the variance of an outcome that other
seeds of the system have, too. "seeds" is the variance of a run's mean due to its seed, relative to that due to its
examples. The coverage is printed next to that of resampling both examples and seeds (percentile bootstrap, as before).

Exits with 1 if the coverage of any case is outside 93 to 97 % by more than two standard errors of the simulation, or
equal systems are called different at 5 % in more than 7 %.
"""

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import scipy.special
from numpy.typing import NDArray
from tabulate import tabulate

from longsumbench.metrics.statistics import interval_over_seeds, mean_over_seeds

COVERED, FALSE = (0.93, 0.97), 0.07
SEEDS, EXAMPLES = (3, 5, 10), (20, 50, 200, 400)
PARTS = (0.7, 0.9)  # of the variance of an outcome that its example has in all seeds
OF_SEEDS = (0.0, 0.3, 3.0, 10.0)
RIGHT = 0.3  # mean of scores of 0 and 1
BETA = (4.0, 8.0)
RESAMPLES, RESAMPLED = 200, 200  # of the bootstrap; simulations in which it is computed

Scores = NDArray[np.float64]  # [simulations, examples, seeds]


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=4_000)
    options = parser.parse_args()
    begun = time.perf_counter()
    rows, wrong = coverage(options.simulations)
    headers = ["scores", "seeds", "examples", "examples' part", "seeds' variance", "covered", "resampled both"]
    print(tabulate(rows, headers))
    found = false_positives(options.simulations)
    print(tabulate([[*case, f"{rate:.1%}"] for case, rate in found], ["compared", "seeds", "examples", "different"]))
    wrong += sum(rate > FALSE for _, rate in found)
    print(f"{options.simulations:,} simulations a row; {wrong} rows are wrong; {time.perf_counter() - begun:.0f} s")
    sys.exit(1 if wrong else 0)


def coverage(simulations: int) -> tuple[list[list[object]], int]:
    """Return a row for each case, and how many are covered too rarely or too often."""
    rows: list[list[object]] = []
    wrong = 0
    for (name, (score, mean)), *case in itertools.product(KINDS.items(), SEEDS, EXAMPLES, PARTS, OF_SEEDS):
        seeds, examples, part, of_seeds = int(case[0]), int(case[1]), *case[2:]
        values = score(draw(np.random.default_rng(len(rows)), (simulations, examples, seeds), part, of_seeds))
        covered = np.mean([low <= mean <= high for low, high in (interval_over_seeds(one, True) for one in values)])
        before = np.mean([low <= mean <= high for low, high in map(resampled_both, values[:RESAMPLED])])
        doubt = 2 * math.sqrt(covered * (1 - covered) / simulations)
        outside = covered + doubt < COVERED[0] or covered - doubt > COVERED[1]
        wrong += int(outside)
        print(name, *case, f"{covered:.1%}", file=sys.stderr)
        rows.append([name, *case, f"{covered:.1%}{' wrong' if outside else ''}", f"{before:.0%}"])
    return rows, wrong


def draw(random: np.random.Generator, shape: Sequence[int], part: float, of_seeds: float) -> Scores:
    """Draw standard normal numbers with effects of the example, of the seed and of both."""
    simulations, examples, seeds = shape
    variances = (part, of_seeds / examples, 1 - part)
    shapes = ((simulations, examples, 1), (simulations, 1, seeds), shape)
    effects = (math.sqrt(each) * random.normal(size=size) for each, size in zip(variances, shapes, strict=True))
    return np.asarray(sum(effects) / math.sqrt(sum(variances)))


def like_rouge(normal: Scores) -> Scores:
    """Turn standard normal numbers into beta-distributed ones."""
    grid = np.linspace(-8, 8, 4_001)
    return np.asarray(np.interp(normal, grid, scipy.special.betaincinv(*BETA, scipy.special.ndtr(grid))))


def right_or_wrong(normal: Scores) -> Scores:
    """Turn standard normal numbers into 0 and 1."""
    return np.asarray(normal < scipy.special.ndtri(RIGHT), dtype=float)


KINDS: dict[str, tuple[Callable[[Scores], Scores], float]] = {
    "like ROUGE": (like_rouge, BETA[0] / sum(BETA)),
    "0 or 1": (right_or_wrong, RIGHT),
}


def resampled_both(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the percentile interval of resampling both, with deviations of seeds scaled by √(S / (S − 1))."""
    examples, seeds = values.shape
    random = np.random.default_rng(1)
    times = random.multinomial(examples, np.full(examples, 1 / examples), RESAMPLES)
    means = times @ values / examples
    drawn = random.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES)
    centre = means.mean(axis=1)
    mixed = centre + math.sqrt(seeds / (seeds - 1)) * ((drawn * means).sum(axis=1) / seeds - centre)
    low, high = np.quantile(mixed, [0.025, 0.975])
    return float(low), float(high)


def false_positives(simulations: int) -> list[tuple[tuple[str, int, int], float]]:
    """Return how often two equal systems differ at 5 %: on common seeds, on other seeds, and against one without."""
    found = []
    for seeds, examples in itertools.product(SEEDS, (50, 400)):
        for of_seeds in (0.1, 3.0):
            random = np.random.default_rng(2)
            shape = (simulations, examples, seeds)
            shared = random.normal(size=(simulations, examples, 1))
            one, other = (like_rouge(0.7 * shared + 0.7 * draw(random, shape, 0.6, of_seeds)) for _ in range(2))
            alone = like_rouge(0.7 * shared + 0.7 * draw(random, (simulations, examples, 1), 0.6, 0.0))
            mean = other.mean() - alone.mean()  # the effects of seeds change the mean of a score
            compared = {
                "common seeds": [mean_over_seeds(first - second) for first, second in zip(one, other, strict=True)],
                "other seeds": [mean_over_seeds(first, second) for first, second in zip(one, other, strict=True)],
                "no seeds": [
                    mean_over_seeds(first - second + mean) for first, second in zip(alone, other, strict=True)
                ],
            }
            for name, tests in compared.items():
                rate = float(np.mean([test.p_value() <= 0.05 for test in tests]))
                found.append(((f"{name}, seeds' variance {of_seeds}", seeds, examples), rate))
    return found


if __name__ == "__main__":
    main()
