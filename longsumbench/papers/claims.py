"""Verdicts on the claims of a paper table: differences of rows, over examples and seeds; all numbers as one long table.

The parts of each claim --judge_claims--> Verdicts, corrected over the paper table

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
from longsumbench.papers.page import (
    ALIKE_ROWS,
    NOT_TESTED,
    REPRODUCED,
    REVERSED,
    UNDECIDED,
    UNLIKE_ROWS,
    Job,
    PartVerdict,
    Verdict,
    describe_measures,
)
from longsumbench.papers.paper_tables import PaperClaim, at_scale
from longsumbench.render.tables import rounded_frame
from longsumbench.runs.record import RunRecord


class Part(NamedTuple):
    """A part of a claim: two rows on one dataset and measure.

    Attributes:
        pair: "ROW > ROW", or "ROW ~ ROW" of rows that are alike.
        dataset: the paper's name of the dataset.
        measure: the measure.
        comparison: the difference of the rows.
        margin: of rows that are alike; None for an ordering.
        facts: difference in planted facts, in points; None if not measured, or if they are the measure.
    """

    pair: str
    dataset: str
    measure: str
    comparison: PairDifference
    margin: float | None = None
    facts: float | None = None

    @property
    def effect(self) -> statistics.MeanOverSeeds:
        """The difference."""
        return self.comparison.effect

    @property
    def is_reversed(self) -> bool:
        """True if the difference has the wrong sign."""
        return self.effect.mean < 0


class Claim(NamedTuple):
    """A claim of a paper, and our differences.

    Attributes:
        paper: the claim.
        scale: the scale of the job.
        datasets: the paper's names of the datasets on which it is tested.
        parts: what is compared; empty if it cannot be compared.
        obstacle: the outcome of a claim that is not tested; empty if it is tested.
        reason: why it is not tested, or more about the test.
        runs: the runs that are compared; none for an analysis of texts.
        learned: as in `Verdict`.
    """

    paper: PaperClaim
    scale: str
    datasets: tuple[str, ...] = ()
    parts: Sequence[Part] = ()
    obstacle: str = ""
    reason: str = ""
    runs: Sequence[RunRecord] = ()
    learned: str = ""

    def not_tested(self, reason: str) -> "Claim":
        """Return the claim without a test, and why."""
        return self._replace(obstacle=NOT_TESTED, reason=reason)

    @property
    def seeds(self) -> int | None:
        """Number of common seeds, the smallest of the parts; None if no seed matters."""
        seeds = min(part.comparison.seeds for part in self.parts)
        return seeds if seeds > 1 or any(run.seed is not None for run in self.runs) else None

    @property
    def p_value(self) -> float:
        """The p-value without a correction for other claims: of no difference, or of one that equals the margin."""
        return min(self.alike_p_values() if self.paper.alike else (self.p_reproduced, self.p_reversed))

    @property
    def p_reproduced(self) -> float:
        """The p-value that all parts have the claimed sign: the largest of the parts; 1 if one has the other sign."""
        return max(1.0 if part.is_reversed else part.effect.p_value() for part in self.parts)

    @property
    def p_reversed(self) -> float:
        """The p-value that one part has the other sign, corrected for the number of parts (Bonferroni)."""
        smallest = min((part.effect.p_value() for part in self.parts if part.is_reversed), default=1.0)
        return min(1.0, len(self.parts) * smallest)

    def alike_p_values(self) -> tuple[float, float]:
        """Return the p-values that all differences are smaller than the margin, and that one is larger."""
        tests = []
        for dataset in self.datasets:
            parts = [part for part in self.parts if part.dataset == dataset]
            tests.append(statistics.largest_difference([part.effect for part in parts], parts[0].margin or 0.0))
        return max(smaller for smaller, _ in tests), min(1.0, len(tests) * min(larger for _, larger in tests))

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
    claim = Claim(paper, job.scale, readable or claimed)
    if reason := at_scale(paper.untested, job.scale):
        return claim.not_tested(reason)
    return claim if readable else claim.not_tested(f"none of its texts is read at scale={job.scale}")


def judge_claims(claims: Sequence[Claim]) -> tuple[Verdict, ...]:
    """Return a verdict on each claim; p-values and intervals are corrected (Holm) for the number of claims."""
    claims = [claim if claim.parts or claim.obstacle else claim.not_tested("it has no rows here") for claim in claims]
    corrections = iter(correct_together([claim.p_value for claim in claims if not claim.obstacle]))
    return tuple(_judge(claim, None if claim.obstacle else next(corrections)) for claim in claims)


def _judge(claim: Claim, correction: Correction | None) -> Verdict:
    pairs = claim.paper.pairs or ("no rows",)
    verdict = Verdict(
        claim=pairs[0] if len(pairs) == 1 else f"{pairs[0]} and {len(pairs) - 1} more",
        measure=", ".join(claim.paper.measures_at(claim.scale)),
        datasets=claim.datasets,
        outcome=claim.obstacle or UNDECIDED,
        reason=_describe_test(claim),
        says=claim.paper.says,
        source=claim.paper.source,
        runs=" ".join(run.run_id for run in claim.runs),
        learned=claim.learned,
    )
    if not claim.parts:
        return verdict
    part, role, outcome = _decide_alike(claim) if claim.paper.alike else _decide_orders(claim)
    if correction is not None and correction.significant:
        verdict = structs.replace(verdict, outcome=outcome)
    parts = tuple(_judge_part(claim, each, verdict.outcome, correction) for each in claim.parts)
    deciding = parts[claim.parts.index(part)]
    return structs.replace(
        verdict,
        claim=deciding.claim if len(parts) == 1 else f"{deciding.claim} (the {role} of {len(parts)} parts)",
        difference=deciding.difference,
        low=deciding.low,
        high=deciding.high,
        p=correction.p if correction else None,
        n=min(each.comparison.examples for each in claim.parts),
        seeds=claim.seeds,
        facts=part.facts,
        parts=parts if len(parts) > 1 else (),
    )


def _decide_orders(claim: Claim) -> tuple[Part, str, str]:
    """Return the part that decides a claim, its role, and the outcome if the test is significant."""
    if reversed_parts := [part for part in claim.parts if part.is_reversed]:
        return min(reversed_parts, key=lambda part: part.effect.p_value()), "most reversed", REVERSED
    return max(claim.parts, key=lambda part: part.effect.p_value()), "weakest", REPRODUCED


def _decide_alike(claim: Claim) -> tuple[Part, str, str]:
    smaller, larger = claim.alike_p_values()
    least_alike = min(claim.parts, key=lambda part: part.effect.p_larger(part.margin or 0.0))
    return least_alike, "least alike", ALIKE_ROWS if smaller < larger else UNLIKE_ROWS


def _judge_part(claim: Claim, part: Part, outcome: str, correction: Correction | None) -> PartVerdict:
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
        level = correction.level / (len(claim.parts) if part.is_reversed else 1)
    half = part.effect.half_width(1 - level)
    if math.isnan(half):
        return verdict
    return structs.replace(verdict, low=part.effect.mean - half, high=part.effect.mean + half)


def _describe_test(claim: Claim) -> str:
    """Return "400 examples, 3 seeds; margin 0.7", and the reason of the claim."""
    if not claim.parts:
        return claim.reason
    tested = format_count(min(part.comparison.examples for part in claim.parts), "example")
    if claim.seeds is not None:
        tested += ", " + {0: "different seeds", 1: "one seed"}.get(claim.seeds, f"{claim.seeds} seeds")
    margins = dict.fromkeys(f"margin {part.margin:g}" for part in claim.parts if part.margin)
    return "; ".join(filter(None, [tested, *margins, claim.reason]))


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


def long_table(numbers: Iterable[TableNumber], verdicts: Sequence[Verdict] = ()) -> pd.DataFrame:
    """Return the numbers, then the verdicts, one per row; unknown values are empty."""
    rows = list(numbers)
    for claim in verdicts:
        labels = VERDICT, ", ".join(claim.datasets), claim.claim, claim.measure
        number = TableNumber(*labels, claim.difference, claim.low, claim.high, claim.n, claim.seeds, claim.p)
        rows.append(number._replace(outcome=claim.outcome, source=claim.source, runs=claim.runs))
        for part in claim.parts:
            rows.append(TableNumber(PART, part.dataset, part.claim, part.measure, part.difference, part.low, part.high))
    cells = [{key: None if value != value else value for key, value in row._asdict().items()} for row in rows]  # NaN
    return rounded_frame(cells, list(TableNumber._fields))


def format_change(number: Estimate | None, decimals: int = 2) -> str:
    """Format a difference and half its interval: "+1.20 ±0.90"; empty if it is unknown. Zero is "+0.00"."""
    if number is None:
        return ""
    half = (number.high - number.low) / 2
    return f"{number.mean:+z.{decimals}f}" + ("" if math.isnan(half) else f" ±{half:.{decimals}f}")
