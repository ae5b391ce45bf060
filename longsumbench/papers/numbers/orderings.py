"""Whether the orderings that a paper claims hold in our runs.

Each ordering is tested on each dataset by the paired test over examples and seeds. P-values are corrected (Holm) over
all tests of the artifact.
"""

from collections.abc import Sequence

from longsumbench.leaderboards.comparability import comparison_key, describe_difference, heading_of
from longsumbench.leaderboards.notes import PLANTED
from longsumbench.leaderboards.seed_groups import difference
from longsumbench.papers.artifacts import Artifact, Ordering
from longsumbench.papers.claims import Claim, judge_claims
from longsumbench.papers.numbers.ours import Ours
from longsumbench.papers.page import Job, Verdict
from longsumbench.runs.record import RunRecord


def decide_orderings(job: Job, ours: Ours) -> tuple[Verdict, ...]:
    """Return a verdict for each claimed ordering, dataset and measure.

    If both rows measured planted facts, the claim is also tested on these.

    Args:
        job: the artifact and its runs.
        ours: the numbers of its runs. A kind can add columns to `ours.scores`, to test other measures.
    """
    claims: dict[tuple[str, str, str], Claim] = {}  # each once
    for ordering in job.artifact.orderings:
        rows = (ordering.higher, ordering.lower)
        for dataset in ordering.datasets or job.artifact.datasets:
            if dataset not in job.datasets or not all(_prints(job.artifact, label, dataset) for label in rows):
                continue
            planted = [PLANTED] if all(ours.number(label, dataset, PLANTED) for label in rows) else []
            for measure in (ordering.on, *planted):
                if (named := (ordering.claim, measure, dataset)) not in claims:
                    claims[named] = _test(job, ours, ordering, measure, dataset)
    return judge_claims([*claims.values()])


def _prints(artifact: Artifact, label: str, dataset: str) -> bool:
    """Return True if the paper has a row on a dataset."""
    named = artifact.rows[label].datasets
    return not named or dataset in named


def _test(job: Job, ours: Ours, ordering: Ordering, measure: str, dataset: str) -> Claim:
    """Return an ordering with the difference of its rows, or with the reason why it cannot be tested."""
    rows, found, runs = (ordering.higher, ordering.lower), None, list[RunRecord]()
    reason = "; ".join(filter(None, [_missing(job, label, dataset) for label in rows]))
    if not reason:
        one, other = (ours.groups[label, dataset] for label in rows)
        runs = [*one.runs, *other.runs]
        if unlike := _incomparable(runs):
            reason = f"not comparable: {unlike}"
        elif not (found := difference(one, other, measure, ours.scores)):
            reason = f"the runs have no {heading_of(measure)} of each example (scores.csv)"
    return Claim(ordering.claim, measure, dataset, found, reason, ordering.source, runs)


def _missing(job: Job, label: str, dataset: str) -> str:
    """Describe the missing runs of a row; empty if it has all."""
    if (problem := job.unreachable.get((label, dataset))) is not None:
        return f"no runs of {label}: {problem}"
    for row in job.rows:
        if (row.label, row.dataset) == (label, dataset):
            missing = row.records.count(None)
            return f"runs of {label} missing: {missing} of {len(row.records)}" if missing else ""
    return f"{label} has no runs at scale={job.scale}"


def _incomparable(runs: Sequence[RunRecord]) -> str:
    """Describe how the first two runs that are not comparable differ; empty if all are."""
    for run in runs:
        if comparison_key(run) != comparison_key(runs[0]):
            return describe_difference(runs[0], run)
    return ""
