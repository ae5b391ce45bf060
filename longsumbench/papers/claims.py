"""Verdicts on the claims of an artifact: a difference of two numbers, over examples and seeds.

Differences, of examples by compare_examples, or of seeds --judge_claims--> Verdicts, corrected over the artifact
"""

import math
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
from longsumbench.runs.record import RunRecord


class Claim(NamedTuple):
    """A claim of a paper, and our difference.

    Attributes:
        claim, measure, dataset: as in `Verdict`.
        difference: the first number minus the second; None if it is unknown.
        reason: why it is unknown, or more about the test.
        source: where the paper claims it.
        runs: the runs that are compared; none for an analysis of texts.
    """

    claim: str
    measure: str
    dataset: str
    difference: Difference | None
    reason: str = ""
    source: str = ""
    runs: Sequence[RunRecord] = ()


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
        return Verdict(*named, NOT_TESTED, reason=claim.reason, source=claim.source)
    outcome = UNDECIDED if p >= LEVEL else REPRODUCED if found.mean > 0 else REVERSED
    low, high = (None if math.isnan(bound) else bound for bound in (found.low, found.high))
    tested = format_count(found.examples, "example")
    if any(run.seed is not None for run in claim.runs):
        tested += ", " + {0: "no common seed", 1: "one seed"}.get(found.seeds, f"{found.seeds} seeds")
    reason = f"{tested}; {claim.reason}" if claim.reason else tested
    seeds, runs = found.seeds if claim.runs else None, " ".join(run.run_id for run in claim.runs)
    return Verdict(*named, outcome, found.mean, low, high, p, reason, found.examples, seeds, claim.source, runs)
