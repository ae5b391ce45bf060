"""Whether the orderings that a paper claims hold in our runs.

Each ordering is tested on each dataset by the paired test over examples and seeds. P-values are corrected (Holm) over
all tests of the artifact.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import comparison_key, describe_difference, heading_of
from longsumbench.leaderboards.notes import PLANTED
from longsumbench.leaderboards.seed_groups import Difference, SeedGroup, difference
from longsumbench.leaderboards.significance import LEVEL
from longsumbench.metrics.statistics import holm
from longsumbench.papers.artifacts import Artifact, Ordering
from longsumbench.papers.numbers.ours import Ours
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, REVERSED, UNDECIDED, Job, Verdict
from longsumbench.runs.record import RunRecord


class Decision(NamedTuple):
    """A verdict, and what it rests on.

    Attributes:
        verdict: whether the ordering holds.
        source: where the paper claims the ordering.
        tested: the difference of the two rows; None if it was not tested.
        runs: ids of the runs of both rows.
    """

    verdict: Verdict
    source: str
    tested: Difference | None = None
    runs: tuple[str, ...] = ()

    def line(self) -> dict[str, Any]:
        """Return the verdict as a row of the artifact's CSV."""
        claim, measure, dataset, outcome, mean, low, high, p, _ = self.verdict
        found: dict[str, Any] = {"kind": "verdict", "dataset": dataset, "row": claim, "measure": measure}
        found |= {"value": mean, "low": low, "high": high, "p": p, "outcome": outcome, "source": self.source}
        if self.tested:
            found |= {"n": self.tested.examples, "seeds": self.tested.seeds, "runs": " ".join(self.runs)}
        return found


class _Claim(NamedTuple):
    """An ordering on one dataset and one measure."""

    ordering: Ordering
    dataset: str
    measure: str

    @property
    def rows(self) -> tuple[str, str]:
        """Labels of the row that should be better, and of the other."""
        return self.ordering.higher, self.ordering.lower


def decide_orderings(job: Job, ours: Ours) -> tuple[Decision, ...]:
    """Return a verdict for each claimed ordering, dataset and measure.

    If both rows measured planted facts, the claim is also tested on these.

    Args:
        job: the artifact and its runs.
        ours: the numbers of its runs. A kind can add columns to `ours.scores`, to test other measures.
    """
    tested = {claim: _test(job, ours, claim) for claim in _claims(job, ours)}
    differences = {claim: one for claim, one in tested.items() if isinstance(one, Difference)}
    corrected = dict(zip(differences, holm([one.p for one in differences.values()]).tolist(), strict=True))
    decisions = []
    for claim, found in tested.items():
        named, source = (claim.ordering.claim, claim.measure, claim.dataset), claim.ordering.source
        if isinstance(found, Difference):
            runs = [run for label in claim.rows for run in ours.groups[label, claim.dataset].runs]
            verdict = Verdict(*named, **_describe(found, corrected[claim], runs))
            decisions.append(Decision(verdict, source, found, tuple(run.run_id for run in runs)))
        else:
            decisions.append(Decision(Verdict(*named, NOT_TESTED, reason=found), source))
    return tuple(decisions)


def _claims(job: Job, ours: Ours) -> list[_Claim]:
    """Return what is to be tested on the datasets of this scale, each claim once."""
    found: dict[tuple[str, str, str], _Claim] = {}
    for ordering in job.artifact.orderings:
        for dataset in ordering.datasets or job.artifact.datasets:
            rows = (ordering.higher, ordering.lower)
            if dataset not in job.datasets or not all(_prints(job.artifact, label, dataset) for label in rows):
                continue
            planted = [PLANTED] if all(ours.number(label, dataset, PLANTED) for label in rows) else []
            for measure in (ordering.on, *planted):
                found.setdefault((ordering.claim, dataset, measure), _Claim(ordering, dataset, measure))
    return list(found.values())


def _prints(artifact: Artifact, label: str, dataset: str) -> bool:
    """Return True if the paper has a row on a dataset."""
    named = artifact.rows[label].datasets
    return not named or dataset in named


def _test(job: Job, ours: Ours, claim: _Claim) -> Difference | str:
    """Return the difference of the two rows, or why it cannot be tested."""
    if missing := [text for label in claim.rows if (text := _missing(job, label, claim.dataset))]:
        return "; ".join(missing)
    one, other = (ours.groups[label, claim.dataset] for label in claim.rows)
    if unlike := _incomparable(one, other):
        return f"not comparable: {unlike}"
    found = difference(one, other, claim.measure, ours.scores)
    return found or f"the runs have no {heading_of(claim.measure)} of each example (scores.csv)"


def _missing(job: Job, label: str, dataset: str) -> str:
    """Describe the missing runs of a row; empty if it has all."""
    for row in job.rows:
        if (row.label, row.dataset) == (label, dataset):
            missing = row.records.count(None)
            return f"runs of {label} missing: {missing} of {len(row.records)}" if missing else ""
    return f"{label} has no runs at scale={job.scale}"


def _incomparable(one: SeedGroup, other: SeedGroup) -> str:
    """Describe how the first two runs that are not comparable differ; empty if all are."""
    for run in (*one.runs, *other.runs):
        if comparison_key(run) != comparison_key(one.first):
            return describe_difference(one.first, run)
    return ""


def _describe(found: Difference, p: float, runs: Sequence[RunRecord]) -> dict[str, Any]:
    """Return the fields of a verdict that depend on a test."""
    outcome = UNDECIDED
    if p < LEVEL:
        outcome = REPRODUCED if found.mean > 0 else REVERSED
    low, high = (None if math.isnan(bound) else bound for bound in (found.low, found.high))
    reason = format_count(found.examples, "example")
    if any(run.seed is not None for run in runs):
        reason += ", " + {0: "no common seed", 1: "one seed"}.get(found.seeds, f"{found.seeds} seeds")
    return {"outcome": outcome, "difference": found.mean, "low": low, "high": high, "p": p, "reason": reason}
