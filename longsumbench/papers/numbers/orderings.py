"""Whether what a paper claims about its rows holds in our runs.

Before a test, each row passes a gate: its system has learned to summarize, and has three seeds. Each claim is tested
once on each dataset, on the paper's measure.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from longsumbench.leaderboards.comparability import comparison_key, describe_difference, heading_of
from longsumbench.leaderboards.notes import PLANTED
from longsumbench.leaderboards.seed_groups import LEARNED, NOT_LEARNED, STILL_LEARNING, UNKNOWN, SeedGroup
from longsumbench.papers.artifacts import AlikeRows, Artifact, PaperClaim
from longsumbench.papers.claims import Claim, compare_groups, judge_claims
from longsumbench.papers.numbers.ours import Ours
from longsumbench.papers.numbers.printed import column_of, find_printed_row
from longsumbench.papers.page import NOT_TESTED, ONE_SEED, TWO_SEEDS, UNDECIDED_LEARNING, Job, Verdict
from longsumbench.runs.record import RunRecord

_FEWEST_SEEDS = 3  # of a test of systems with seeds
# Word → outcome of a claim about such a system, the worst first
_GATE = {UNKNOWN: NOT_TESTED, NOT_LEARNED: NOT_LEARNED, STILL_LEARNING: UNDECIDED_LEARNING, LEARNED: ""}


def decide_claims(job: Job, ours: Ours) -> tuple[Verdict, ...]:
    """Return a verdict for each claim of the paper on each dataset.

    Args:
        job: the artifact and its runs.
        ours: the numbers of its runs. A kind can add columns to `ours.scores`, to test other measures.
    """
    claims = {
        (paper.claim, paper.on, dataset): _compare_rows(job, ours, paper, dataset)
        for paper in job.artifact.claims
        for dataset in paper.datasets or job.artifact.datasets
        if dataset in job.datasets and all(_prints(job.artifact, label, dataset) for label in paper.rows)
    }
    return judge_claims([*claims.values()])


def _prints(artifact: Artifact, label: str, dataset: str) -> bool:
    """Return True if the paper has a row on a dataset."""
    named = artifact.rows[label].datasets
    return not named or dataset in named


def _compare_rows(job: Job, ours: Ours, paper: PaperClaim, dataset: str) -> Claim:
    """Return a claim with the differences of its rows, or with the reason why it is not tested."""
    if missing := "; ".join(filter(None, [describe_missing(job, label, dataset) for label in paper.rows])):
        return Claim(paper, dataset, obstacle=NOT_TESTED, reason=missing)
    groups = {label: ours.groups[label, dataset] for label in paper.rows}
    runs = [run for group in groups.values() for run in group.runs]
    claim = Claim(paper, dataset, runs=runs, facts=_compare_facts([*groups.values()], paper))
    if unlike := _incomparable(runs):
        return claim._replace(obstacle=NOT_TESTED, reason=f"not comparable: {unlike}")
    pairs = [compare_groups(*pair, paper.on, ours.scores) for pair in combinations(groups.values(), 2)]
    comparisons = [pair for pair in pairs if pair]
    if len(comparisons) < len(pairs):
        reason = f"the runs have no {heading_of(paper.on)} of each example"
        return claim._replace(obstacle=NOT_TESTED, reason=reason)
    claim = claim._replace(comparisons=comparisons)
    if isinstance(paper, AlikeRows):
        claim = claim._replace(margin=_margin(job.artifact, paper, dataset))
        if not claim.margin:
            reason = "prints equal numbers" if claim.margin == 0 else f"prints no {heading_of(paper.on)} of all rows"
            return claim._replace(obstacle=NOT_TESTED, reason=f"the paper {reason}, which gives no margin")
    return pass_gate(claim, groups)


def pass_gate(claim: Claim, groups: Mapping[str, SeedGroup]) -> Claim:
    """Return a claim; with an obstacle if a system did not learn, or too few seeds are compared.

    Args:
        claim: with its comparisons and runs.
        groups: label of each row → its runs.
    """
    words = [group.learned.word for group in groups.values()]
    claim = claim._replace(learned=next((word for word in _GATE if word in words), ""))
    if obstacle := _GATE.get(claim.learned, ""):
        failed = {label: group.learned for label, group in groups.items() if group.learned.word == claim.learned}
        reasons = [f"{label}: {learned.reason}" for label, learned in failed.items()]
        return claim._replace(obstacle=obstacle, reason="; ".join(reasons))
    seeds = min(comparison.seeds for comparison in claim.comparisons)
    if seeds >= _FEWEST_SEEDS or all(run.seed is None for run in claim.runs):
        return claim
    return claim._replace(obstacle={1: ONE_SEED, 2: TWO_SEEDS}.get(seeds, NOT_TESTED))


def _compare_facts(groups: Sequence[SeedGroup], paper: PaperClaim) -> float | None:
    """Return the difference in planted facts, of rows that are alike the largest; None if not all measured them."""
    facts = [group.numbers[PLANTED].mean for group in groups if PLANTED in group.numbers]
    if paper.on == PLANTED or len(facts) < len(groups):
        return None
    return facts[0] - facts[1] if len(facts) == 2 else max(facts) - min(facts)


def _margin(artifact: Artifact, paper: AlikeRows, dataset: str) -> float | None:
    """Return the stated margin, or the largest difference of the printed numbers; None if a row prints none."""
    if paper.margin is not None:
        return paper.margin
    printed = [find_printed_row(artifact, label, dataset) for label in paper.rows]
    texts = [row.numbers.get(column_of(paper.on)) for row in printed if row]
    numbers = [float(text) for text in texts if text]
    return round(max(numbers) - min(numbers), 4) if len(numbers) == len(paper.rows) else None


def describe_missing(job: Job, label: str, dataset: str) -> str:
    """Describe the missing runs of a row; empty if it has all."""
    if (problem := job.unreachable.get((label, dataset))) is not None:
        return f"no runs of {label}: {problem}"
    for row in job.rows:
        if (row.label, row.dataset) == (label, dataset):
            missing, older = row.records.count(None), ", made by older code" if row.outdated else ""
            return f"runs of {label} missing: {missing} of {len(row.records)}{older}" if missing else ""
    return f"{label} has no runs at scale={job.scale}"


def _incomparable(runs: Sequence[RunRecord]) -> str:
    """Describe how the first two runs that are not comparable differ; empty if all are."""
    for run in runs:
        if comparison_key(run) != comparison_key(runs[0]):
            return describe_difference(runs[0], run)
    return ""
