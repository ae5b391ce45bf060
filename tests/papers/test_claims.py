"""Verdicts on differences: hand-worked cases, the correction for several tests, and the agreement with intervals."""

import math
from itertools import combinations

import equivalence
import numpy as np
import pytest
import scipy.stats
from support.run_records import record

from longsumbench.leaderboards.seed_groups import PairDifference, compare_examples
from longsumbench.metrics.statistics import MeanOverSeeds, holm, mean_over_seeds
from longsumbench.papers.claims import Claim, claim_about_texts, judge_claims
from longsumbench.papers.page import (
    ALIKE_ROWS,
    NOT_TESTED,
    ONE_SEED,
    OUTCOMES,
    REPRODUCED,
    REVERSED,
    UNDECIDED,
    UNLIKE_ROWS,
)
from longsumbench.papers.paper_tables import AlikeRows, Ordering

PAPER, PAIR = Ordering("a > b", source="§5"), AlikeRows(("a", "b"))
RUNS = [record("a", 30, seed=1)]


def effect_of(mean: float, p: float, degrees: float = 40.0) -> MeanOverSeeds:
    """Return an effect with this two-sided p-value."""
    return MeanOverSeeds(mean, abs(mean) / float(scipy.stats.t.isf(p / 2, degrees)), degrees)


def ordered(mean: float, p: float) -> Claim:
    """Return a claimed ordering over nine examples and three seeds."""
    return Claim(PAPER, "d", [PairDifference(effect_of(mean, p), 9, 3)], runs=RUNS)


def test_a_mean_of_examples() -> None:
    """The test is a paired t test of the known values; an unknown value counts nowhere, and none gives None."""
    known = [1.0, 2.0, 3.5, -1.0, 0.5, 2.5, -2.0, 1.5]
    found = compare_examples(np.array([*known, math.nan])[:, None])
    assert found is not None
    assert (found.examples, found.seeds, found.effect.example_degrees) == (8, 1, 7)
    expected = scipy.stats.ttest_1samp(known, 0)
    assert found.effect.p_value() == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    assert found.effect.mean - found.effect.half_width() == pytest.approx(low)
    assert found.effect.mean + found.effect.half_width() == pytest.approx(high)
    assert compare_examples(np.array([[math.nan]])) is None


def test_several_seeds_are_compared_over_examples_and_seeds() -> None:
    """With a column for each seed, the effect is that of `mean_over_seeds`."""
    values = np.random.default_rng(1).normal(1, 1, (30, 3))
    found = compare_examples(values)
    assert found == (mean_over_seeds(values), 30, 3, False)


def test_a_significant_difference_is_reproduced_or_reversed() -> None:
    """A significant difference is reproduced or reversed by its sign; others are undecided, or not tested."""
    claims = [ordered(1.0, 0.001), ordered(-1.0, 0.002), Claim(PAPER, "d", obstacle=NOT_TESTED, reason="no runs")]
    claims += [ordered(1.0, 0.04)._replace(reason="with care")]
    found = judge_claims(claims)
    assert [one.outcome for one in found] == [REPRODUCED, REVERSED, NOT_TESTED, REPRODUCED]
    assert [one.p for one in found if one.p is not None] == pytest.approx(holm([0.001, 0.002, 0.04]).tolist())
    assert [one.reason for one in found] == ["9 examples, 3 seeds"] * 2 + ["no runs", "9 examples, 3 seeds; with care"]
    assert [(one.n, one.seeds, one.runs) for one in found[2:]] == [(None, None, ""), (9, 3, RUNS[0].run_id)]
    more = judge_claims([*claims, claim_about_texts(PAPER, "d", PairDifference(effect_of(1.0, 0.04), 9), "")])
    assert [one.outcome for one in more[3:]] == [UNDECIDED, UNDECIDED]  # 0.04 is tested twice, so p is 0.08
    assert (more[-1].reason, more[-1].n, more[-1].seeds) == ("9 examples", 9, None)  # no runs


def test_an_obstacle_is_no_test() -> None:
    """A claim with an obstacle shows its difference without interval and p, and does not cost the others power."""
    claims = [ordered(1.0, 0.03), *[ordered(5.0, 0.001)._replace(obstacle=ONE_SEED)] * 9]
    first, second, *_ = judge_claims(claims)
    assert (first.outcome, first.p) == (REPRODUCED, pytest.approx(0.03))
    assert (second.outcome, second.difference, second.low, second.high, second.p) == (ONE_SEED, 5.0, None, None, None)


@pytest.mark.parametrize(
    ("mean", "error", "outcome"),
    [
        (0.1, 0.1, ALIKE_ROWS),
        (-0.1, 0.1, ALIKE_ROWS),
        (2.0, 0.1, UNLIKE_ROWS),
        (-2.0, 0.1, UNLIKE_ROWS),
        (0.9, 0.3, UNDECIDED),
    ],
)
def test_alike_by_hand(mean: float, error: float, outcome: str) -> None:
    """With a margin of 1: a 90 % interval inside it is alike, one outside is not, and one across it is undecided."""
    claim = Claim(PAIR, "d", [PairDifference(MeanOverSeeds(mean, error, 60.0), 9, 3)], margin=1.0, runs=RUNS)
    (verdict,) = judge_claims([claim])
    half = error * float(scipy.stats.t.isf(0.05, 60))
    assert (verdict.outcome, verdict.reason) == (outcome, "9 examples, 3 seeds; margin 1")
    assert (verdict.low, verdict.high) == (pytest.approx(mean - half), pytest.approx(mean + half))


def test_several_rows_are_alike_if_all_pairs_are() -> None:
    """Of three rows one pair decides: the least alike one; its difference has no sign."""
    means = {"all": (0.1, 0.1, 0.2), "one": (0.1, -2.0, 0.2), "wide": (0.1, 0.9, 0.2)}
    outcomes = {}
    for name, several in means.items():
        comparisons = [PairDifference(MeanOverSeeds(mean, 0.1, 60.0), 9, 3) for mean in several]
        (verdict,) = judge_claims([Claim(AlikeRows(("a", "b", "c")), "d", comparisons, margin=1.0, runs=RUNS)])
        outcomes[name] = (verdict.outcome, verdict.difference)
    assert outcomes == {"all": (ALIKE_ROWS, 0.2), "one": (UNLIKE_ROWS, 2.0), "wide": (UNDECIDED, 0.9)}
    assert AlikeRows(("a", "b", "c")).claim == "all 3 rows ~ each other"


def test_intervals_agree_with_outcomes() -> None:
    """Of random claims, undecided ones have an interval with 0 or across the margin, and others do not."""
    random = np.random.default_rng(5)
    seen = set()
    for _ in range(100):
        claims = []
        for _ in range(int(random.integers(1, 8))):
            rows = int(random.choice([2, 2, 4]))
            scores = random.normal(random.normal(0, 0.5, rows)[:, None, None], 1, (rows, 40, 3))
            effects = [mean_over_seeds(one - other) for one, other in combinations(scores, 2)]
            comparisons = [PairDifference(effect, 40, 3) for effect in effects]
            alike = rows > 2 or random.random() < 0.5
            paper = AlikeRows(tuple("abcd"[:rows])) if alike else PAPER
            claims.append(Claim(paper, "d", comparisons, margin=0.6 if alike else None, runs=RUNS))
        for claim, verdict in zip(claims, judge_claims(claims), strict=True):
            assert verdict.low is not None
            assert verdict.high is not None
            seen.add(verdict.outcome)
            if claim.margin is None:
                assert (verdict.low <= 0 <= verdict.high) == (verdict.outcome == UNDECIDED)
                continue
            inside = -claim.margin < verdict.low and verdict.high < claim.margin
            outside = verdict.low > claim.margin or verdict.high < -claim.margin
            assert (inside, outside) == (verdict.outcome == ALIKE_ROWS, verdict.outcome == UNLIKE_ROWS)
    assert seen == {REPRODUCED, REVERSED, UNDECIDED, ALIKE_ROWS, UNLIKE_ROWS}
    assert seen < set(OUTCOMES)


@pytest.mark.parametrize(("rows", "seeds"), [(2, 3), (2, 5), (4, 3)])
def test_rows_at_the_margin(rows: int, seeds: int) -> None:
    """Exactly at the margin, rows are called alike in at most 5 % of simulations, and not alike in at most 5 %.

    benchmarks/equivalence.py has more cases and simulations.
    """
    rates = equivalence.error_rates("like ROUGE", rows, seeds, 60, 0.7, 1.0, simulations=400, seed=3)
    assert not equivalence.is_wrong(rates, 400)
    assert not equivalence.is_wrong((0.05, 0.05), 400)
    assert equivalence.is_wrong((0.05, 0.12), 400)
    assert max(rates) > 0
