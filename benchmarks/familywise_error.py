"""How often a table of comparisons over examples and seeds has a false verdict, and intervals miss the true mean.

python benchmarks/familywise_error.py [--draws 10000] [--simulations 4000] [--results results/reference] [--groups]

All systems are equal, so every verdict is false. A score is the sum of effects of its example, of its seed and of both
(the rest). "seeds' variance" is the variance of a run's mean due to its seed, relative to that due to its examples.
Three tests are compared, each at 5 % with Holm's correction for the claims of a table. The claims are independent.

* this test: `mean_over_seeds` of the package;
* the test before: of the package until it was replaced; kept here to compare with;
* t over seeds: a t test of the seeds' means, without regard to the examples.

The first table has normal scores with 50 and 400 examples; examples have 30, 70 or 90 % of the variance of a score
without its seed. The cells are the highest of these cases. The second table has the variances of each published page:
those of the differences of its claims. The third one tests the package's functions with simulated scores like ROUGE
(beta-distributed) and of 0 and 1 (like the recall of a fact): tables of one claim and of twelve, one claim about
systems without common seeds ("other seeds"), and how many intervals contain the true mean ("covered").

Normal scores are not drawn: their mean squares are scaled chi-squares, and the mean is independent of them.

Two more tables, with --groups alone, are about examples that share a source. Of two equal systems, `paired_effect` takes
the examples as independent, then as groups. The differences are normal, and groups have 0, 10 or 30 % of their variance.
Then the scores of each two systems on QMSum, with equal means, are swapped at random, meeting by meeting. The last table
looks twice: results are tested after three seeds and, if nothing is decided, after six, each at half the level.

Exits with 1 if this test has a false verdict in more than 6 % of the tables, or its intervals contain the true mean in
less than 94 %, beyond two standard errors of the simulation; in more than 5.5 % with the groups of a dataset; or in more
than 5 % of two looks.
"""

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from numpy.typing import NDArray
from tabulate import tabulate

from longsumbench.leaderboards.seed_groups import ScoresOfRuns, aligned_scores, group_rows_by_seed
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.leaderboards.table import read_table, take_statistic_as_f
from longsumbench.metrics.statistics import (
    Groups,
    interval_over_seeds,
    mean_over_seeds,
    number_groups,
    paired_effect,
)
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_model import read_all_written
from longsumbench_reproduction.papers.paper_tables import find_paper_table

LEVEL, MOST, MOST_OF_DATASETS = 0.05, 0.06, 0.055
SEEDS, CLAIMS, EXAMPLES = (3, 5, 8), (1, 2, 4, 8, 12), (50, 400)
MOST_CLAIMS = max(CLAIMS)
PARTS = (0.3, 0.7, 0.9)  # of the variance of a score that its example has in all seeds
OF_SEEDS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
SIMULATED_PART, SIMULATED_OF_SEEDS = 0.7, (0.0, 1.0, 10.0)
SHARED = 0.7  # weight of what two systems have in common on an example
RIGHT = 0.3  # mean of scores of 0 and 1
BETA = (4.0, 8.0)
NUM_GROUPS, BETWEEN = (6, 10, 15, 35, 100), (0.0, 0.1, 0.3)
# Sizes of groups
DATASETS = {"SQuALITY": ("permutation", [5] * 52), "aclsum_aspects": ("permutation", [3] * 100)}
DRAWN_SIZES = {
    "8": ("integers", 8, 9),
    "4 to 12": ("integers", 4, 13),
    "skewed": ("lognormal", 1.2, 1),
}
GROUP_SIZE, LOOKS = 5, (3, 6)  # examples, seeds
SWAPS = 2_000

Scores = NDArray[np.float64]  # [simulations, examples, seeds]


class Variances(NamedTuple):
    """The variances of the effects in a score, and the size of its table."""

    examples: float
    seeds: float
    rest: float
    num_examples: int
    num_seeds: int


class Squares(NamedTuple):
    """Mean squares, divided by the number of scores: [draws]."""

    examples: NDArray[np.float64]
    seeds: NDArray[np.float64]
    rest: NDArray[np.float64]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--simulations", type=int, default=4_000)
    parser.add_argument(
        "--results", type=Path, default=Path(__file__).parents[1] / "results" / "reference"
    )
    parser.add_argument(
        "--groups", action="store_true", help="only the tables about groups, and two looks"
    )
    options = parser.parse_args()
    begun = time.perf_counter()
    results, num_wrong = Results(options.results), 0
    if not options.groups:
        num_wrong += print_grid(options.draws) + print_pages(results, options.draws)
        num_wrong += print_simulated(options.simulations)
    pairs = list(read_grouped(results))
    num_wrong += print_groups(np.bincount(pairs[0][1]), options.simulations)
    print_swapped(pairs)
    num_wrong += print_looks(options.simulations)
    print(f"{num_wrong} rates are wrong; {time.perf_counter() - begun:.0f} s")
    sys.exit(1 if num_wrong else 0)


def print_grid(draws: int) -> int:
    """Print the false verdicts of normal scores; return how many rates of this test are too high."""
    rows, num_wrong = [], 0
    for seeds, of_seeds in itertools.product(SEEDS, OF_SEEDS):
        cases = [
            Variances(part, of_seeds / examples, 1 - part, examples, seeds)
            for examples, part in itertools.product(EXAMPLES, PARTS)
        ]
        cells = []
        for claims in CLAIMS:
            rates = [
                familywise_rates([case] * claims, draws, seed) for seed, case in enumerate(cases)
            ]
            num_wrong += sum(is_too_high(rate[THIS], draws) for rate in rates)
            cells.append(
                " / ".join(f"{100 * max(rate[name] for rate in rates):.1f}" for name in TESTS)
            )
        rows.append([seeds, of_seeds, *cells])
    print("False verdicts in % of the tables, by the number of claims: " + " / ".join(TESTS))
    print(tabulate(rows, ["seeds", "seeds' variance", *map(str, CLAIMS)], disable_numparse=True))
    return num_wrong


def print_pages(results: Results, draws: int) -> int:
    """Print the false verdicts at the variances of published pages; return how many rates are too high."""
    rows, num_wrong = [], 0
    for name, claims in read_page_variances(results):
        rates = familywise_rates(claims, draws, seed=1)
        num_wrong += is_too_high(rates[THIS], draws)
        ratios = [
            claim.seeds * claim.num_examples / (claim.examples + claim.rest) for claim in claims
        ]
        size = [len(claims), claims[0].num_seeds, f"{min(ratios):.1f} to {max(ratios):.1f}"]
        rows.append([name, *size, *(f"{rate:.1%}" for rate in rates.values())])
    print(
        tabulate(
            rows, ["page", "claims", "seeds", "seeds' variance", *TESTS], disable_numparse=True
        )
    )
    return num_wrong


def familywise_rates(claims: Sequence[Variances], draws: int, seed: int) -> dict[str, float]:
    """Return how often each test has a false verdict on any of the claims of a table."""
    random = np.random.default_rng(seed)
    none_rejected = dict.fromkeys(TESTS, 1.0)
    for claim in claims:
        rates = rejection_rates(claim, LEVEL / len(claims), draws, random)
        for name, rate in rates.items():
            none_rejected[name] *= 1 - rate
    return {name: 1 - share for name, share in none_rejected.items()}


def rejection_rates(
    claim: Variances, level: float, draws: int, random: np.random.Generator
) -> dict[str, float]:
    """Return how often each test rejects a true mean of 0."""
    of_rest = claim.rest / claim.num_examples / claim.num_seeds
    of_examples = claim.examples / claim.num_examples
    of_seeds = claim.seeds / claim.num_seeds
    degrees = claim.num_examples - 1, claim.num_seeds - 1
    squares = Squares(
        (of_examples + of_rest) * _draw_squares(degrees[0], draws, random),
        (of_seeds + of_rest) * _draw_squares(degrees[1], draws, random),
        of_rest * _draw_squares(degrees[0] * degrees[1], draws, random),
    )
    error = math.sqrt(of_examples + of_seeds + of_rest)
    rates = {}
    for name, half_widths in TESTS.items():
        outside = 2 * scipy.special.ndtr(-half_widths(squares, *degrees, level) / error)
        rates[name] = float(outside.mean())
    return rates


def _draw_squares(degrees: int, draws: int, random: np.random.Generator) -> NDArray[np.float64]:
    return random.chisquare(degrees, draws) / degrees


def half_widths(
    squares: Squares, example_degrees: int, seed_degrees: int, level: float
) -> NDArray[np.float64]:
    """Return half of the intervals of this test."""
    of_examples = squares.examples * _quantile(example_degrees, level) ** 2
    return np.sqrt(of_examples + squares.seeds * _quantile(seed_degrees, level) ** 2)


def half_widths_before(
    squares: Squares, example_degrees: int, seed_degrees: int, level: float
) -> NDArray[np.float64]:
    """Return half of the intervals of the test before.

    It subtracted the rest from the variance of seeds, and its degrees of freedom were Satterthwaite's, at most a mean
    of those of examples and seeds.
    """
    differ = squares.seeds > squares.rest
    seeds, rest = np.where(differ, squares.seeds, 0.0), np.where(differ, squares.rest, 0.0)
    variance = squares.examples + seeds - rest
    terms = squares.examples**2 / example_degrees + seeds**2 / seed_degrees
    satterthwaite = variance**2 / (terms + rest**2 / example_degrees / seed_degrees)
    share = ((seeds - rest) / variance) ** 0.85
    weighted = 1 / ((1 - share) / example_degrees + share / seed_degrees)
    return np.sqrt(variance) * _quantile(np.minimum(satterthwaite, weighted), level)


def half_widths_over_seeds(
    squares: Squares, _: int, seed_degrees: int, level: float
) -> NDArray[np.float64]:
    """Return half of the intervals of a t test of the seeds' means."""
    return np.sqrt(squares.seeds) * _quantile(seed_degrees, level)


def _quantile(degrees: float | NDArray[np.float64], level: float) -> NDArray[np.float64]:
    return np.asarray(scipy.special.stdtrit(degrees, 1 - level / 2))


THIS, BEFORE, OVER_SEEDS = "this test", "the test before", "t over seeds"
TESTS = {THIS: half_widths, BEFORE: half_widths_before, OVER_SEEDS: half_widths_over_seeds}


def is_too_high(rate: float, draws: int, most: float = MOST) -> bool:
    """Return True if a rate is above the limit by more than two standard errors of the simulation."""
    return rate - 2 * math.sqrt(rate * (1 - rate) / draws) > most


def read_page_variances(results: Results) -> Iterator[tuple[str, list[Variances]]]:
    """Yield the name of each published page and the variances of its claims on two rows with two seeds or more."""
    records = {
        run.run_id: run for dataset in results.datasets() for run in results.records(dataset)
    }
    for page in read_all_written(results):
        statistic = find_paper_table(page.name).part
        runs = [records[run_id] for run_id in page.runs]
        scores = read_all_scores(results, runs, f"f{statistic}")
        if statistic != "f":
            runs, scores = take_statistic_as_f(runs, statistic, scores)
        runs_of_page = {run.run_id: run for run in runs}
        claims = []
        for claim in page.claims:
            members = [runs_of_page[run_id] for run_id in claim.runs.split()]
            differences = read_differences(members, claim.measure, scores)
            if differences is not None:
                claims.append(estimate_variances(differences))
        if claims:
            yield page.name, claims


def read_differences(
    runs: Sequence[RunRecord], name: str, scores: ScoresOfRuns
) -> NDArray[np.float64] | None:
    """Return the differences of two rows, [examples, seeds]; None if these are not two rows with as many seeds."""
    rows = group_rows_by_seed(runs, scores)
    aligned = (
        aligned_scores([run for row in rows for run in row.runs], name, scores)
        if len(rows) == 2
        else None
    )
    if aligned is None:
        return None
    first, second = np.split(aligned.values, [len(rows[0].runs)], axis=1)
    sizes = {first.shape[1], second.shape[1]}
    if max(sizes) == 1 or len(sizes - {1}) > 1:
        return None
    return first - second  # a single run is compared with each seed of the other row


def estimate_variances(values: NDArray[np.float64]) -> Variances:
    """Return the variances of the effects in scores, [examples, seeds], from their mean squares."""
    examples, seeds = values.shape
    noises = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    rest = float((noises**2).sum() / (examples - 1) / (seeds - 1))
    of_examples = max(0.0, float(values.mean(axis=1).var(ddof=1)) - rest / seeds)
    of_seeds = max(0.0, float(values.mean(axis=0).var(ddof=1)) - rest / examples)
    return Variances(of_examples, of_seeds, rest, examples, seeds)


def print_simulated(simulations: int) -> int:
    """Print how often the package's tests and intervals are wrong, of simulated scores; return how many rates are."""
    rows, num_wrong = [], 0
    cases = itertools.product(KINDS, SEEDS, EXAMPLES, SIMULATED_OF_SEEDS)
    for number, (kind, seeds, examples, of_seeds) in enumerate(cases):
        score, mean = KINDS[kind]
        shape = (simulations, examples, seeds)
        random = np.random.default_rng(number)
        shared = SHARED * random.normal(size=(simulations, examples, 1))
        first, second = (
            score(shared + math.sqrt(1 - SHARED**2) * draw(random, shape, SIMULATED_PART, of_seeds))
            for _ in range(2)
        )
        paired = [mean_over_seeds(values) for values in first - second]
        unpaired = [mean_over_seeds(*values) for values in zip(first, second, strict=True)]
        cells = []
        for effects, claims in ((paired, 1), (paired, MOST_CLAIMS), (unpaired, 1)):
            rejected = np.mean(
                [abs(effect.mean) > effect.half_width(1 - LEVEL / claims) for effect in effects]
            )
            rate = 1 - (1 - float(rejected)) ** claims
            doubt = 2 * claims * math.sqrt(rejected * (1 - rejected) / simulations)
            num_wrong += rate - doubt > MOST
            cells.append(f"{rate:.1%}")
        bounds = np.array([interval_over_seeds(values, is_share=True) for values in first])
        missed = 1 - float(((bounds[:, 0] <= mean) & (mean <= bounds[:, 1])).mean())
        num_wrong += is_too_high(missed, simulations)
        rows.append([kind, seeds, examples, of_seeds, *cells, f"{1 - missed:.1%}"])
    headers = [
        "scores",
        "seeds",
        "examples",
        "seeds' variance",
        "1 claim",
        f"{MOST_CLAIMS} claims",
        "other seeds",
    ]
    print(tabulate(rows, [*headers, "covered"], disable_numparse=True))
    return num_wrong


def read_grouped(results: Results) -> Iterator[tuple[Scores, Groups]]:
    """Yield the differences of each two systems on QMSum, [examples], with the numbers of the meetings."""
    block = read_table(results, "qmsum").comparable[0]
    scores = read_all_scores(results, block.records())
    for pair in itertools.combinations(block.records(), 2):
        aligned = aligned_scores(pair, pair[0].evaluation.ranked_by, scores)
        assert aligned is not None
        assert aligned.groups is not None
        differences = aligned.values[:, 0] - aligned.values[:, 1]
        yield differences, number_groups(aligned.groups)


def print_groups(meetings: Groups, simulations: int) -> int:
    """Print the false verdicts on examples in groups; return how many rates are too high with sizes of a dataset.

    `meetings` are the numbers of questions about the meetings of QMSum.
    """
    rows, num_wrong = [], 0
    cases: dict[str, Sequence[Any]] = {"QMSum": ("permutation", meetings), **DATASETS}
    for name, number in itertools.product(DRAWN_SIZES, NUM_GROUPS):
        cases[f"{name}, {number} groups"] = (*DRAWN_SIZES[name], number)
    for name, sizes in cases.items():
        rates = [grouped_rates(sizes, share, simulations) for share in BETWEEN]
        if sizes[0] == "permutation":
            num_wrong += sum(is_too_high(rate[1], simulations, MOST_OF_DATASETS) for rate in rates)
        rows.append([name, *map(before_and_after, rates)])
    print("False verdicts by the share of variance between groups: as independent / groups, %")
    print(tabulate(rows, ["sizes", *map(str, BETWEEN)], disable_numparse=True))
    return num_wrong


def grouped_rates(sizes: Sequence[Any], between: float, simulations: int) -> Scores:
    """Return the shares of false verdicts on examples as independent, and as groups.

    `sizes` are a method of numpy's generator and its arguments.
    """
    random, verdicts = np.random.default_rng(1), []
    method, *numbers = sizes
    for _ in range(simulations):
        drawn = getattr(random, method)(*numbers).round().clip(1).astype(int)
        groups = np.repeat(np.arange(len(drawn)), drawn)
        effects = random.normal(size=len(drawn))[groups], random.normal(size=len(groups))
        verdicts.append(decide(np.sqrt([between, 1 - between]) @ effects, groups))
    shares: Scores = np.mean(verdicts, axis=0)
    return shares


def decide(differences: Scores, groups: Groups) -> list[bool]:
    """Return whether two systems are called different, with examples as independent, and as groups."""
    both = (paired_effect(differences[:, None], groups=each) for each in (None, groups))
    return [abs(effect.mean) > effect.half_width(1 - LEVEL) for effect in both]


def before_and_after(rates: Scores) -> str:
    """Format two shares in per cent."""
    return " / ".join(f"{100 * rate:.1f}" for rate in rates)


def print_swapped(pairs: Sequence[tuple[Scores, Groups]]) -> None:
    """Print how often two systems are called different, with equal means and scores swapped at random by meeting."""
    random, rates = np.random.default_rng(1), []
    for values, groups in pairs:
        signs = random.choice((-1.0, 1.0), (SWAPS, groups.max() + 1))[:, groups]
        swapped = (values - values.mean()) * signs
        rates.append(np.mean([decide(each, groups) for each in swapped], axis=0))
    print(
        f"{len(rates)} pairs of systems on QMSum, {SWAPS:,} swaps by meeting: mean, lowest, highest"
    )
    for summary in (np.mean, np.min, np.max):
        print(before_and_after(summary(rates, axis=0)))


def print_looks(simulations: int) -> int:
    """Print the probability of a false verdict in either of two looks; return how many are too high."""
    rows, num_wrong = [], 0
    for of_seeds, examples in itertools.product(SIMULATED_OF_SEEDS, EXAMPLES):
        random, verdicts = np.random.default_rng(1), []
        groups = np.arange(examples) // GROUP_SIZE
        for _ in range(simulations):
            (scores,) = draw(random, (1, examples, max(LOOKS)), SIMULATED_PART, of_seeds)
            scores += math.sqrt(BETWEEN[1]) * random.normal(size=(examples, 1))[groups]
            effects = [paired_effect(scores[:, :seeds], groups=groups) for seeds in LOOKS]
            verdicts.append(any(effect.p_value() < LEVEL / 2 for effect in effects))
        rate = float(np.mean(verdicts))
        num_wrong += is_too_high(rate, simulations, LEVEL)
        rows.append([of_seeds, examples, f"{rate:.1%}"])
    print("False verdicts in either of two looks, after three and six seeds, each at 2.5 %")
    print(tabulate(rows, ["seeds' variance", "examples", "wrong"], disable_numparse=True))
    return num_wrong


def draw(random: np.random.Generator, shape: Sequence[int], part: float, of_seeds: float) -> Scores:
    """Draw standard normal numbers with effects of the example, of the seed and of both."""
    simulations, examples, seeds = shape
    variances = (part, of_seeds / examples, 1 - part)
    shapes = ((simulations, examples, 1), (simulations, 1, seeds), shape)
    effects = (
        math.sqrt(each) * random.normal(size=size)
        for each, size in zip(variances, shapes, strict=True)
    )
    return np.asarray(sum(effects) / math.sqrt(sum(variances)))


def like_rouge(normal: Scores) -> Scores:
    """Turn standard normal numbers into beta-distributed ones."""
    grid = np.linspace(-8, 8, 4_001)
    return np.asarray(
        np.interp(normal, grid, scipy.special.betaincinv(*BETA, scipy.special.ndtr(grid)))
    )


def right_or_wrong(normal: Scores) -> Scores:
    """Turn standard normal numbers into 0 and 1."""
    return np.asarray(normal < scipy.special.ndtri(RIGHT), dtype=float)


KINDS: dict[str, tuple[Callable[[Scores], Scores], float]] = {
    "like ROUGE": (like_rouge, BETA[0] / sum(BETA)),
    "0 or 1": (right_or_wrong, RIGHT),
}


if __name__ == "__main__":
    main()
