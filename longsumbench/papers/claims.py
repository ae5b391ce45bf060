"""Verdicts on the claims of artifacts that are analyses: a difference of two numbers, over examples and seeds.

differences of examples --compare_examples--> Difference --judge_claims--> Verdicts, corrected over the artifact
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.formatting import format_count
from longsumbench.leaderboards.seed_groups import Difference
from longsumbench.leaderboards.significance import LEVEL, RESAMPLES
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED
from longsumbench.metrics.statistics import approximate_randomization, bootstrap_interval, holm
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, REVERSED, UNDECIDED, Verdict


class Claim(NamedTuple):
    """A claim of a paper, and our difference.

    Attributes:
        claim, measure, dataset: as in `Verdict`.
        difference: the first number minus the second; None if it is unknown.
        reason: why it is unknown, or more about the test.
    """

    claim: str
    measure: str
    dataset: str
    difference: Difference | None
    reason: str = ""


def compare_examples(differences: NDArray[np.float64]) -> Difference | None:
    """Test whether the mean of the examples' differences is 0: approximate randomization, bootstrap interval.

    Args:
        differences: [examples], in the unit of the result; NaN for an example to which the comparison does not apply.

    Returns:
        The mean difference; None without an example.
    """
    known = differences[np.isfinite(differences)]
    if not len(known):
        return None
    low, high = bootstrap_interval(known, RESAMPLES, BOOTSTRAP_SEED)
    p = float(approximate_randomization(known, RESAMPLES))
    return Difference(float(known.mean()), low, high, p, len(known), 1)


def judge_claims(claims: Sequence[Claim]) -> tuple[Verdict, ...]:
    """Return a verdict on each claim; p-values are corrected (Holm) for the number of tests."""
    corrected = iter(holm([claim.difference.p for claim in claims if claim.difference]).tolist())
    return tuple(_judge(claim, next(corrected) if claim.difference else 1.0) for claim in claims)


def _judge(claim: Claim, p: float) -> Verdict:
    found, named = claim.difference, claim[:3]
    if found is None:
        return Verdict(*named, NOT_TESTED, reason=claim.reason)
    outcome = UNDECIDED if p >= LEVEL else REPRODUCED if found.mean > 0 else REVERSED
    tested = format_count(found.examples, "example") + (f", {found.seeds} seeds" if found.seeds > 1 else "")
    reason = f"{tested}; {claim.reason}" if claim.reason else tested
    return Verdict(*named, outcome, found.mean, found.low, found.high, p, reason)
