"""Verdicts on differences: hand-worked cases, the correction for several tests, and the agreement with intervals."""

import json
from itertools import pairwise

import equivalence
import numpy as np
import pytest
import scipy.stats
from msgspec import structs
from support.run_records import record

from longsumbench.leaderboards.seed_groups import PairDifference, compare_examples
from longsumbench.metrics.statistics import MeanOverSeeds, holm, paired_effect
from longsumbench_reproduction.papers.claims import Claim, Part, evaluate_claims
from longsumbench_reproduction.papers.page_model import (
    ALIKE_ROWS,
    DEPENDS_ON_MEASURE,
    NOT_TESTED,
    ONE_SEED,
    REPRODUCED,
    REVERSED,
    UNDECIDED,
    UNLIKE_ROWS,
)
from longsumbench_reproduction.papers.paper_tables import PaperClaim, Statement

PAPER, PAIR = PaperClaim(orders=("a > b",), source="§5"), PaperClaim(alike=("a", "b"))
RUNS = [record("a", 30, seed=1)]


def effect_of(mean: float, p: float, degrees: float = 40.0) -> MeanOverSeeds:
    """Return an effect with this two-sided p-value."""
    return MeanOverSeeds(mean, abs(mean) / float(scipy.stats.t.isf(p / 2, degrees)), degrees)


def part_of(effect: MeanOverSeeds, pair: str = "a > b", dataset: str = "d") -> Part:
    """Return a comparison of two rows over nine examples and three seeds."""
    return Part(pair, dataset, "rouge1", PairDifference(effect, 9, 9, 3))


def test_unknown_values_count_nowhere() -> None:
    """A difference is over the examples with a value in both; without any, there is none."""
    known = np.array([[1.0], [2.0], [3.5], [-1.0]])
    difference = compare_examples(np.vstack([known, [[np.nan]]]))
    assert difference == PairDifference(paired_effect(known), 4, 4, 1)
    assert compare_examples(np.array([[np.nan]])) is None


def ordered(*parts: tuple[float, float], reason: str = "") -> Claim:
    """Return a claim with a part for each difference and p-value."""
    effects = [part_of(effect_of(*part), f"a > {place}") for place, part in enumerate(parts)]
    return Claim(PAPER, "probe", ("d",), effects, reason=reason, runs=RUNS)


def test_a_significant_difference_is_reproduced_or_reversed() -> None:
    """Its sign decides, with a p-value that is corrected for the number of tested claims."""
    untested = Claim(PAPER, "probe", ("d",)).not_tested("no runs")
    claims = [
        ordered((1.0, 0.001)),
        ordered((-1.0, 0.002)),
        untested,
        ordered((1.0, 0.04), reason="with care"),
    ]
    verdicts = evaluate_claims(claims)
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes == [REPRODUCED, REVERSED, NOT_TESTED, REPRODUCED]
    p_values = [verdict.p for verdict in verdicts if verdict.p is not None]
    assert p_values == pytest.approx(holm([0.001, 0.002, 0.04]).tolist())
    assert (verdicts[2].reason, verdicts[2].n, verdicts[2].runs) == ("no runs", None, "")
    assert verdicts[3].reason == "9 examples, 3 seeds; with care"
    assert (verdicts[3].n, verdicts[3].seeds, verdicts[3].runs) == (9, 3, RUNS[0].run_id)


# Of both parts, the difference and its p-value; the outcome, its p-value, and the part that decides
SEVERAL_PARTS = """
[[1, 0.01], [2, 0.04]] → reproduced, 0.04, a > 1 (the weakest of 2 parts)
[[1, 0.001], [-2, 0.02]] → reversed, 0.04, a > 1 (the most reversed of 2 parts)
[[1, 0.001], [-2, 0.03]] → undecided, 0.06, a > 1 (the most reversed of 2 parts)
[[-1, 0.5], [-2, 0.6]] → undecided, 1, a > 0 (the most reversed of 2 parts)
"""


@pytest.mark.parametrize("line", SEVERAL_PARTS.strip().splitlines())
def test_a_claim_of_several_parts_by_hand(line: str) -> None:
    """It is reproduced if all parts are, by the largest p-value; one reversed part, corrected for all, refutes it."""
    differences, expected = line.split(" → ")
    parts = json.loads(differences)
    (verdict,) = evaluate_claims([ordered(*parts)])
    assert f"{verdict.outcome}, {verdict.p:.4g}, {verdict.claim}" == expected
    assert [part.difference for part in verdict.parts] == [mean for mean, _ in parts]
    assert verdict.low is not None
    assert verdict.high is not None
    assert (verdict.low <= 0 <= verdict.high) == (verdict.outcome == UNDECIDED)


def test_datasets_and_measures_of_parts_are_named() -> None:
    """Parts with several datasets and measures name them."""
    effect, paper = (
        effect_of(1.0, 0.01),
        PaperClaim(orders=("a > b",), on="rouge1, rouge1 - rouge2"),
    )
    parts = [
        part_of(effect, dataset="d"),
        part_of(effect, dataset="e")._replace(measure="rouge1 - rouge2"),
    ]
    (verdict,) = evaluate_claims([Claim(paper, "probe", ("d", "e"), parts, runs=RUNS)])
    assert [part.claim for part in verdict.parts] == [
        "a > b on d in R-1",
        "a > b on e in R-1 minus R-2",
    ]
    assert verdict.measure == "rouge1, rouge1 - rouge2"


def test_equal_rows_are_rarely_called_different() -> None:
    """Without any difference, a claim of three parts is reproduced or reversed in at most 5 % of simulations.

    The parts have common rows, as "b > a" and "c > b" have. A part without a difference is enough: with others that
    hold clearly, the claim is hardly ever decided wrongly either.
    """
    random, simulations, wrong = np.random.default_rng(3), 600, [0, 0]
    for _ in range(simulations):
        scores = random.normal(0, 1, (4, 30, 1))
        for place, shifts in enumerate(([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 4.0])):
            shifted = scores + np.array(shifts)[:, None, None]
            effects = [paired_effect(higher - lower) for lower, higher in pairwise(shifted)]
            claim = Claim(PAPER, "probe", ("d",), list(map(part_of, effects)))
            wrong[place] += evaluate_claims([claim])[0].outcome != UNDECIDED
    assert max(wrong) / simulations < 0.05 + 2 * (0.05 * 0.95 / simulations) ** 0.5


def test_an_obstacle_is_no_test() -> None:
    """A claim with an obstacle shows its difference without interval and p, and does not cost the others power."""
    claims = [ordered((1.0, 0.03)), *[ordered((5.0, 0.001))._replace(obstacle=ONE_SEED)] * 9]
    first, second, *_ = evaluate_claims(claims)
    assert (first.outcome, first.p) == (REPRODUCED, pytest.approx(0.03))
    assert (second.outcome, second.difference) == (ONE_SEED, 5.0)
    assert second.low is second.high is second.p is None


@pytest.mark.parametrize(
    ("mean", "error", "outcome"),
    [
        (0.1, 0.1, ALIKE_ROWS),
        (2.0, 0.1, UNLIKE_ROWS),
        (-2.0, 0.1, UNLIKE_ROWS),
        (0.9, 0.3, UNDECIDED),
    ],
)
def test_alike_by_hand(mean: float, error: float, outcome: str) -> None:
    """With a margin of 1: a 90 % interval inside it is alike, one outside is not, and one across it is undecided."""
    part = part_of(MeanOverSeeds(mean, error, 60.0), "a ~ b")
    (verdict,) = evaluate_claims([Claim(PAIR, "probe", ("d",), [part], 1.0, runs=RUNS)])
    half = error * float(scipy.stats.t.isf(0.05, 60))
    assert (verdict.outcome, verdict.reason) == (outcome, "9 examples, 3 seeds; margin 1")
    assert (verdict.low, verdict.high) == (pytest.approx(mean - half), pytest.approx(mean + half))


def test_each_look_has_its_share_of_the_level() -> None:
    """With two looks a p-value counts twice; the interval contains 0 unless the difference is significant."""
    for looks, p, outcome in ((1, 0.03, REPRODUCED), (2, 0.03, UNDECIDED), (2, 0.02, REPRODUCED)):
        claim = ordered((1.0, p))._replace(statement=Statement(note="seen", looks=looks))
        (verdict,) = evaluate_claims([claim])
        assert (verdict.outcome, verdict.p) == (outcome, pytest.approx(looks * p))
        assert verdict.p_alone == verdict.p
        assert verdict.low is not None
        assert (verdict.low <= 0) == (outcome == UNDECIDED)


TWO_MEASURES = PaperClaim(orders=("a > b",), on="rouge1, rouge2")


# In both measures, the difference and its p-value; the outcome
BOTH_MEASURES = """
[[1, 0.01], [2, 0.02]] → reproduced
[[1, 0.01], [2, 0.2]] → depends on the measure
[[1, 0.01], [-2, 0.001]] → depends on the measure
[[-1, 0.01], [-2, 0.001]] → reversed
[[1, 0.2], [2, 0.3]] → undecided
"""


@pytest.mark.parametrize("line", BOTH_MEASURES.strip().splitlines())
def test_measures_have_to_agree(line: str) -> None:
    """A claim on two measures is decided if both are, in the same way; otherwise both outcomes are shown."""
    differences, outcome = line.split(" → ")
    first, second = json.loads(differences)
    parts = [part_of(effect_of(*first)), part_of(effect_of(*second))._replace(measure="rouge2")]
    (verdict,) = evaluate_claims([Claim(TWO_MEASURES, "probe", ("d",), parts, runs=RUNS)])
    assert verdict.outcome == outcome
    assert ("; R-1 " in verdict.reason) == (outcome == DEPENDS_ON_MEASURE)


def test_a_withdrawn_claim_costs_the_others_nothing() -> None:
    """It keeps the outcome that it had, is marked, and is in no family of tests."""
    old = ordered((1.0, 0.001))
    old = old._replace(paper=structs.replace(PAPER, withdrawn={"probe": "chosen late"}))
    first, second = evaluate_claims([old, ordered((1.0, 0.04))])
    assert (first.outcome, first.withdrawn, first.p) == (
        REPRODUCED,
        "chosen late",
        pytest.approx(0.001),
    )
    assert (second.outcome, second.withdrawn, second.p) == (REPRODUCED, "", pytest.approx(0.04))


THREE = PaperClaim(alike=("a", "b", "c"))


def test_several_rows_are_alike_if_all_pairs_are() -> None:
    """Of three rows one pair decides: the least alike one."""
    means = {"all": (0.1, 0.1, 0.2), "one": (0.1, -2.0, 0.2), "wide": (0.1, 0.9, 0.2)}
    outcomes = {}
    for name, several in means.items():
        effects = [MeanOverSeeds(mean, 0.1, 60.0) for mean in several]
        parts = [part_of(effect, pair) for effect, pair in zip(effects, THREE.pairs, strict=True)]
        (verdict,) = evaluate_claims([Claim(THREE, "probe", ("d",), parts, 1.0, runs=RUNS)])
        outcomes[name] = (verdict.outcome, verdict.difference, verdict.claim.partition(" (")[0])
    assert outcomes == {
        "all": (ALIKE_ROWS, 0.2, "b ~ c"),
        "one": (UNLIKE_ROWS, -2.0, "a ~ c"),
        "wide": (UNDECIDED, 0.9, "a ~ c"),
    }


def test_rows_at_the_margin() -> None:
    """Exactly at the margin, rows are called alike in at most 5 % of simulations, and not alike in at most 5 %.

    benchmarks/equivalence.py has more cases and simulations.
    """
    rates = equivalence.error_rates("like ROUGE", 2, 3, 60, 0.7, 1.0, simulations=400, seed=3)
    assert not equivalence.is_wrong(rates, 400)
    assert equivalence.is_wrong((0.05, 0.12), 400)
    assert max(rates) > 0
