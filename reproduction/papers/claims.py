"""Verdicts on the claims of a paper table: differences of rows, over examples and seeds; all numbers as one long table.

The parts of each claim --evaluate_claims--> Verdicts, corrected over the paper table

A claim is tested once. Orderings are reproduced if each part is (intersection-union test), and reversed if one part is.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd
from msgspec import structs

from longsumbench.formatting import format_count
from longsumbench.leaderboards.seed_groups import PairDifference
from longsumbench.leaderboards.significance import Correction, correct_together
from longsumbench.metrics import statistics
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord
from longsumbench.views.tables import rounded_frame
from longsumbench_reproduction.papers.page_model import (
    ALIKE_ROWS,
    DEPENDS_ON_MEASURE,
    NOT_TESTED,
    REPRODUCED,
    REVERSED,
    UNDECIDED,
    UNLIKE_ROWS,
    ClaimOutcome,
    Job,
    PartVerdict,
    describe_measures,
)
from longsumbench_reproduction.papers.paper_tables import PaperClaim, Statement, at_scale
from longsumbench_reproduction.papers.statements import describe_statement, find_statement


# A claim has parts; `evaluate_claims` tests all claims of a table together
class Part(NamedTuple):
    """A part of a claim: two rows on one dataset and measure.

    Attributes:
        pair: "ROW > ROW", or "ROW ~ ROW" of rows that are alike.
        dataset: the paper's name of the dataset.
        measure: the measure.
        comparison: the difference of the rows.
        fact_difference: difference in planted facts, in points; None if not measured, or if they are the measure.
    """

    pair: str
    dataset: str
    measure: str
    comparison: PairDifference
    fact_difference: float | None = None

    @property
    def effect(self) -> statistics.MeanOverSeeds:
        """The difference."""
        return self.comparison.effect

    def p_value(self) -> float:
        """Return the p-value of the difference, without a correction."""
        return self.effect.p_value()


class Claim(NamedTuple):
    """A claim of a paper, and our differences.

    Attributes:
        paper: the claim.
        scale: the scale of the job.
        datasets: the paper's names of the datasets on which it is tested.
        parts: what is compared; empty if it cannot be compared.
        margin: the difference from which on rows are not alike; 0 of orderings, or if there is none.
        obstacle: the outcome of a claim that is not tested; empty if it is tested.
        reason: why it is not tested, or more about the test.
        runs: the runs that are compared; none for an analysis of texts.
        learned: as in `ClaimOutcome`.
        statement: when the test was stated.
    """

    paper: PaperClaim
    scale: str
    datasets: tuple[str, ...] = ()
    parts: Sequence[Part] = ()
    margin: float = 0.0
    obstacle: str = ""
    reason: str = ""
    runs: Sequence[RunRecord] = ()
    learned: str = ""
    statement: Statement | None = None

    @property
    def withdrawn(self) -> str:
        """Why its test no longer counts; empty if it counts."""
        return at_scale(self.paper.withdrawn, self.scale) or ""

    @property
    def looks(self) -> int:
        """How often results were looked at; each look has its share of the level."""
        return self.statement.looks if self.statement else 1

    def p_value(self) -> float:
        """Return the p-value of the claim, corrected for the number of looks alone (Bonferroni)."""
        return min(1.0, self.looks * _find_deciding(self).p)

    def not_tested(self, reason: str) -> "Claim":
        """Return the claim without a test, and why."""
        return self._replace(obstacle=NOT_TESTED, reason=reason)

    @property
    def is_tested(self) -> bool:
        """True if its parts are compared, and nothing is in the way of a test."""
        return bool(self.parts) and not self.obstacle

    @property
    def seeds(self) -> int | None:
        """Number of common seeds, the smallest of the parts; None if no seed matters."""
        seeds = min(part.comparison.seeds for part in self.parts)
        return seeds if seeds > 1 or any(run.key.seed is not None for run in self.runs) else None

    def name_part(self, part: Part) -> str:
        """Return the rows of a part, with its dataset and measure if the parts have several."""
        words = [part.pair]
        if len({part.dataset for part in self.parts}) > 1:
            words.append(f"on {part.dataset}")
        if len({part.measure for part in self.parts}) > 1:
            words.append(f"in {describe_measures(part.measure)}")
        return " ".join(words)


def start_claim(job: Job, paper: PaperClaim) -> Claim:
    """Return a claim without parts, and its datasets; with an obstacle if it is not tested at this scale."""
    claimed = paper.datasets or tuple(job.paper_table.datasets)
    readable = tuple(dataset for dataset in claimed if dataset in job.datasets)
    statement = find_statement(job.paper_table, paper, job.scale)
    claim = Claim(paper, job.scale, readable or claimed, statement=statement)
    reason = "" if readable else f"none of its texts is read at scale={job.scale}"
    reason = at_scale(paper.untested, job.scale) or reason
    return claim.not_tested(reason) if reason else claim


class _Deciding(NamedTuple):
    """The part that decides a claim, its role, the outcome if the test is significant, and the p-value of the claim."""

    part: Part
    role: str
    outcome: str
    p: float


def evaluate_claims(claims: Sequence[Claim]) -> tuple[ClaimOutcome, ...]:
    """Return a verdict on each claim; p-values and intervals are corrected (Holm) for the number of claims.

    Withdrawn claims are corrected for each other, as they were before.
    """
    corrections: dict[int, Correction] = {}
    for is_withdrawn in (False, True):
        tested = []
        for index, claim in enumerate(claims):
            if claim.is_tested and bool(claim.withdrawn) == is_withdrawn:
                tested.append(index)
        corrected = correct_together([claims[index].p_value() for index in tested])
        corrections |= zip(tested, corrected, strict=True)
    return tuple(_judge(claim, corrections.get(index)) for index, claim in enumerate(claims))


def largest_difference(
    effects: Sequence[statistics.MeanOverSeeds], margin: float
) -> tuple[float, float]:
    """Return two p-values of all differences between several rows: all are smaller than a margin, one is larger.

    All are smaller if each is (intersection-union test), so the largest p-value counts, without a correction. The
    p-value that one is larger is corrected for their number (Bonferroni). benchmarks/equivalence.py measures how often
    both tests are wrong.
    """
    larger = min(effect.p_larger(margin) for effect in effects)
    return max(effect.p_smaller(margin) for effect in effects), min(1.0, len(effects) * larger)


def _find_deciding(claim: Claim) -> _Deciding:
    """Return the part that decides a claim.

    Orderings are reproduced if all are, so the largest p-value counts; one that is reversed refutes the claim, so the
    smallest counts, corrected for the number of parts (Bonferroni).
    """
    parts = claim.parts
    if claim.paper.alike:
        effects = [part.effect for part in parts]
        smaller, larger = largest_difference(effects, claim.margin)
        least_alike = min(parts, key=lambda part: part.effect.p_larger(claim.margin))
        outcome = ALIKE_ROWS if smaller < larger else UNLIKE_ROWS
        return _Deciding(least_alike, "least alike", outcome, min(smaller, larger))
    reversed_parts = [part for part in parts if part.effect.mean < 0]
    if reversed_parts:
        part = min(reversed_parts, key=Part.p_value)
        return _Deciding(part, "most reversed", REVERSED, min(1.0, len(parts) * part.p_value()))
    part = max(parts, key=Part.p_value)
    return _Deciding(part, "weakest", REPRODUCED, part.p_value())


def _judge(claim: Claim, correction: Correction | None) -> ClaimOutcome:
    pairs = claim.paper.pairs or ("no rows",)
    untested = UNDECIDED if claim.parts else NOT_TESTED
    verdict = ClaimOutcome(
        claim=f"{pairs[0]} and {len(pairs) - 1} more" if pairs[1:] else pairs[0],
        measure=", ".join(claim.paper.measures_at(claim.scale)),
        datasets=claim.datasets,
        outcome=claim.obstacle or untested,
        reason=_describe_test(claim),
        says=claim.paper.says,
        source=claim.paper.source,
        runs=" ".join(run.run_id for run in claim.runs),
        learned=claim.learned,
        withdrawn=claim.withdrawn,
    )
    if not claim.parts:
        return verdict
    # One part decides; the others are listed below the claim
    decision = _find_deciding(claim)
    if correction is not None:
        verdict = structs.replace(
            verdict,
            p_alone=claim.p_value(),
            stated=describe_statement(claim.statement),
            **_decide_outcome(claim, correction),
        )
    parts = tuple(_judge_part(claim, part, verdict.outcome, correction) for part in claim.parts)
    deciding = parts[claim.parts.index(decision.part)]
    several = f" (the {decision.role} of {len(parts)} parts)" if parts[1:] else ""
    return structs.replace(
        verdict,
        claim=deciding.claim + several,
        difference=deciding.difference,
        low=deciding.low,
        high=deciding.high,
        p=correction.p if correction else None,
        n=min(part.comparison.examples for part in claim.parts),
        seeds=claim.seeds,
        facts=decision.part.fact_difference,
        parts=parts if parts[1:] else (),
    )


def _decide_outcome(claim: Claim, correction: Correction) -> dict[str, str]:
    """Return the outcome of a tested claim; if its measures decide differently, those of all measures.

    Each measure is tested at the level of the claim.
    """
    outcomes: dict[str, str] = {}
    for measure in claim.paper.measures_at(claim.scale):
        of_measure = claim._replace(parts=[part for part in claim.parts if part.measure == measure])
        if of_measure.parts:
            significant = of_measure.p_value() < correction.level
            decided = _find_deciding(of_measure).outcome
            outcomes[measure] = decided if significant else UNDECIDED
    if len(set(outcomes.values())) > 1:
        words = [f"{describe_measures(name)} {outcome}" for name, outcome in outcomes.items()]
        reason = f"{_describe_test(claim)}; {', '.join(words)}"
        return {"outcome": DEPENDS_ON_MEASURE, "reason": reason}
    return {"outcome": _find_deciding(claim).outcome if correction.significant else UNDECIDED}


def _judge_part(
    claim: Claim, part: Part, outcome: str, correction: Correction | None
) -> PartVerdict:
    """Return a part with its interval, at the level at which it is tested for the outcome of the claim.

    An interval contains 0 unless the outcome is decided. That of alike rows is within the margin if the rows are alike,
    outside if they are not, and neither if that is undecided.
    """
    verdict = PartVerdict(claim.name_part(part), part.dataset, part.measure, part.effect.mean)
    if correction is None:
        return verdict
    if claim.paper.alike:
        level = 2 * correction.level / (1 if outcome == ALIKE_ROWS else len(claim.parts))
    else:
        level = correction.level / (len(claim.parts) if part.effect.mean < 0 else 1)
    half = part.effect.half_width(1 - level / claim.looks)
    if math.isnan(half):
        return verdict
    return structs.replace(verdict, low=part.effect.mean - half, high=part.effect.mean + half)


def _describe_test(claim: Claim) -> str:
    """Return "400 examples, 3 seeds; margin 0.7", and the reason of the claim."""
    if not claim.parts:
        return claim.reason
    tested = format_count(min(part.comparison.examples for part in claim.parts), "example")
    if claim.seeds is not None:
        words = {0: "different seeds", 1: "one seed"}
        tested += f", {words.get(claim.seeds, f'{claim.seeds} seeds')}"
    if claim.margin:
        tested += f"; margin {claim.margin:g}"
    return f"{tested}; {claim.reason}" if claim.reason else tested


# The long table of a page: a line for each number, verdict and part
PRINTED, OURS, DIFFERENCE, VERDICT, PART = "printed", "ours", "difference", "verdict", "part"


class TableNumber(NamedTuple):
    """A row of the long table.

    Attributes:
        kind: `PRINTED`, `OURS`, `DIFFERENCE` (ours minus the printed number), `VERDICT` (the difference that decides a
            claim), or `PART` (another part of the claim above it).
        dataset: the paper's name of the dataset; of a claim, several are separated by commas.
        row, measure: what was measured, and how.
        value, low, high: the number, with its 95 % interval if it is known.
        n, seeds: number of examples and seeds.
        p, outcome: of a verdict; p is corrected.
        source: of a printed number, or of a claim.
        runs: ids of the runs, separated by blanks.
    """

    kind: str
    dataset: str
    row: str
    measure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    seeds: int | None = None
    p: float | None = None
    outcome: str = ""
    source: str = ""
    runs: str = ""


def long_table(
    numbers: Iterable[TableNumber], verdicts: Sequence[ClaimOutcome] = ()
) -> pd.DataFrame:
    """Return the numbers, then the verdicts, one per row; unknown values are empty."""
    rows = list(numbers)
    for claim in verdicts:
        number = TableNumber(
            VERDICT, ", ".join(claim.datasets), claim.claim, claim.measure, *_bounds(claim)
        )
        number = number._replace(n=claim.n, seeds=claim.seeds, p=claim.p, outcome=claim.outcome)
        rows.append(number._replace(source=claim.source, runs=claim.runs))
        for part in claim.parts:
            rows.append(TableNumber(PART, part.dataset, part.claim, part.measure, *_bounds(part)))
    return rounded_frame([row._asdict() for row in rows], list(TableNumber._fields))


def _bounds(verdict: ClaimOutcome | PartVerdict) -> tuple[float | None, float | None, float | None]:
    return verdict.difference, verdict.low, verdict.high


def format_change(number: Estimate | None, decimals: int = 2) -> str:
    """Format a difference and half its interval: "+1.20 ±0.90"; empty if it is unknown. Zero is "+0.00"."""
    if number is None:
        return ""
    mean, half = f"{number.mean:+z.{decimals}f}", (number.high - number.low) / 2
    return mean if math.isnan(half) else f"{mean} ±{half:.{decimals}f}"
