"""Verdicts on differences of examples: hand-worked cases, and the correction for several tests."""

import math

import numpy as np
import pytest
from support.run_records import record

from longsumbench.leaderboards.seed_groups import Difference
from longsumbench.metrics.statistics import approximate_randomization, holm
from longsumbench.papers.claims import Claim, compare_examples, judge_claims
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, REVERSED, UNDECIDED


def test_a_mean_of_examples() -> None:
    """The mean and the p-value are those of the known values; an unknown value counts nowhere, and none gives None."""
    values = np.array([1.0, 2.0, math.nan, 3.0])
    found = compare_examples(values)
    assert found is not None
    assert (found.mean, found.examples, found.seeds) == (2.0, 3, 1)
    assert found.p == float(approximate_randomization([1.0, 2.0, 3.0]))
    assert 1.0 <= found.low <= 2.0 <= found.high <= 3.0
    assert compare_examples(np.array([math.nan])) is None


def test_outcomes() -> None:
    """A significant difference is reproduced or reversed by its sign; others are undecided, or not tested."""
    ps = [0.001, 0.002, 0.04]
    means = [1.0, -1.0, 1.0]
    tested = [Difference(mean, mean - 1, mean + 1, p, 9, 2) for mean, p in zip(means, ps, strict=True)]
    runs = [record("a", 30, seed=1)]
    claims = [Claim("a > b", "m", "d", one, runs=runs) for one in tested[:2]]
    claims += [Claim("a > b", "m", "d", None, "no runs"), Claim("a > b", "m", "d", tested[2], "with care", "§5", runs)]
    found = judge_claims(claims)
    assert [one.outcome for one in found] == [REPRODUCED, REVERSED, NOT_TESTED, REPRODUCED]
    assert [one.p for one in found if one.p is not None] == pytest.approx(holm(ps).tolist())
    assert [one.reason for one in found] == ["9 examples, 2 seeds"] * 2 + ["no runs", "9 examples, 2 seeds; with care"]
    assert [(one.n, one.seeds, one.source, one.runs) for one in found[2:]] == [
        (None, None, "", ""),
        (9, 2, "§5", runs[0].run_id),
    ]
    four = judge_claims([*claims, Claim("a > b", "m", "d", Difference(1.0, 0.0, 2.0, 0.04, 9, 1))])
    assert [one.outcome for one in four[3:]] == [UNDECIDED, UNDECIDED]  # 0.04 is tested twice, so p is 0.08
    assert (four[-1].reason, four[-1].n, four[-1].seeds) == ("9 examples", 9, None)  # no runs
