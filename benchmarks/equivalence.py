"""How often the test that rows are alike is wrong, if the true difference is exactly the margin.

python benchmarks/equivalence.py [--simulations 1000]

Scores are those of benchmarks/familywise_error.py: quantiles of a beta distribution (like ROUGE) or 0 and 1 (like the
recall of a fact), with effects of the example, of the seed and of both. "alike" and "not alike" are how often the tests
say so at 5 %. Exactly at the margin, each is wrong. Of several rows, only the last one differs from the others.

Exits with 1 if a rate is above 6 % by more than two standard errors of the simulation.
"""

import argparse
import itertools
import math
import sys
import time

import numpy as np
from familywise_error import KINDS, LEVEL, draw, is_too_high
from tabulate import tabulate

from longsumbench.metrics.statistics import MeanOverSeeds, mean_over_seeds
from longsumbench_reproduction.papers.claims import largest_difference

SEEDS, EXAMPLES = (3, 5), (100, 200, 400)
PARTS, OF_SEEDS = (0.7, 0.9), (0.3, 1.0, 3.0, 10.0)  # as in familywise_error
ROWS = (2, 3, 12)
SAME = 0.7  # weight of what the rows have in common on an example


def main() -> None:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=1_000)
    simulations, begun = parser.parse_args().simulations, time.perf_counter()
    cases = itertools.product(KINDS, ROWS, SEEDS, EXAMPLES, PARTS, OF_SEEDS)
    table, num_wrong = [], 0
    for number, (kind, rows, *case) in enumerate(cases):
        if rows == 2 or (case[1:3] == [EXAMPLES[1], PARTS[0]]):
            rates = error_rates(
                kind,
                rows,
                int(case[0]),
                int(case[1]),
                *case[2:],
                simulations=simulations,
                seed=number,
            )
            num_wrong += is_wrong(rates, simulations)
            table.append([kind, rows, *case, *(f"{rate:.1%}" for rate in rates)])
            print(*table[-1], file=sys.stderr)
    headers = [
        "scores",
        "rows",
        "seeds",
        "examples",
        "examples' part",
        "seeds' variance",
        "alike",
        "not alike",
    ]
    print(tabulate(table, headers))
    print(
        f"{simulations:,} simulations a row; {num_wrong} rows are wrong; {time.perf_counter() - begun:.0f} s"
    )
    sys.exit(1 if num_wrong else 0)


def error_rates(
    kind: str,
    rows: int,
    seeds: int,
    examples: int,
    part: float,
    of_seeds: float,
    *,
    simulations: int,
    seed: int,
) -> tuple[float, float]:
    """Return how often rows are called alike and not alike, if the largest true difference is the margin."""
    random, score = np.random.default_rng(seed), KINDS[kind][0]
    shared = SAME * random.normal(size=(simulations, examples, 1))
    rest = math.sqrt(1 - SAME**2)
    scores = [
        score(shared + rest * draw(random, (simulations, examples, seeds), part, of_seeds))
        for _ in range(rows)
    ]
    margin = float(scores[0].std()) / 2
    scores[-1] = scores[-1] + margin
    verdicts = []
    for index in range(simulations):
        pairs = itertools.combinations([row[index] for row in scores], 2)
        effects: list[MeanOverSeeds] = [mean_over_seeds(one - other) for one, other in pairs]
        verdicts.append([p < LEVEL for p in largest_difference(effects, margin)])
    alike, not_alike = np.mean(verdicts, axis=0).tolist()
    return alike, not_alike


def is_wrong(rates: tuple[float, float], simulations: int) -> bool:
    """Return True if a rate is above 6 %, beyond chance."""
    return any(is_too_high(rate, simulations) for rate in rates)


if __name__ == "__main__":
    main()
