"""Verdicts on the claims of a paper table: differences of rows, over examples and seeds; all numbers as one long table.

Comparisons of the rows of each claim --judge_claims--> Verdicts, corrected over the paper table
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from longsumbench.formatting import format_count
from longsumbench.leaderboards.seed_groups import PairDifference
from longsumbench.leaderboards.significance import Correction, correct_together
from longsumbench.metrics import statistics
from longsumbench.metrics.aggregate import Estimate
from longsumbench.papers.page import ALIKE_ROWS, NOT_TESTED, REPRODUCED, REVERSED, UNDECIDED, UNLIKE_ROWS, Verdict
from longsumbench.papers.paper_tables import PaperClaim
from longsumbench.render.tables import rounded_frame
from longsumbench.runs.record import RunRecord


class Claim(NamedTuple):
    """A claim of a paper on one dataset, and our differences.

    Attributes:
        paper: the claim.
        dataset: the paper's name of the dataset.
        comparisons: of the two rows; if rows are alike, of each two of them; empty if they cannot be compared.
        margin: of rows that are alike; None for an ordering.
        obstacle: the outcome of a claim that is not tested; empty if it is tested.
        reason: why it is not tested, or more about the test.
        runs: the runs that are compared; none for an analysis of texts.
        facts, learned: as in `Verdict`.
    """

    paper: PaperClaim
    dataset: str
    comparisons: Sequence[PairDifference] = ()
    margin: float | None = None
    obstacle: str = ""
    reason: str = ""
    runs: Sequence[RunRecord] = ()
    facts: float | None = None
    learned: str = ""

    @property
    def effects(self) -> list[statistics.MeanOverSeeds]:
        """The differences."""
        return [comparison.effect for comparison in self.comparisons]

    @property
    def p_value(self) -> float:
        """The p-value without a correction: of a difference of 0, or of one that equals the margin."""
        if self.margin is None:
            return self.comparisons[0].effect.p_value()
        return min(statistics.largest_difference(self.effects, self.margin))


def claim_about_texts(paper: PaperClaim, dataset: str, comparison: PairDifference | None, reason: str) -> Claim:
    """Return a claim about texts, without runs; without a comparison it is not tested, for this reason."""
    if comparison is None:
        return Claim(paper, dataset, obstacle=NOT_TESTED, reason=reason)
    return Claim(paper, dataset, [comparison], reason=reason)


def judge_claims(claims: Sequence[Claim]) -> tuple[Verdict, ...]:
    """Return a verdict on each claim; p-values and intervals are corrected (Holm) for the number of tests."""
    corrections = iter(correct_together([claim.p_value for claim in claims if not claim.obstacle]))
    return tuple(_judge(claim, None if claim.obstacle else next(corrections)) for claim in claims)


def _judge(claim: Claim, correction: Correction | None) -> Verdict:
    effects, outcome, confidence = claim.effects, claim.obstacle, None
    effect = max(effects, key=lambda effect: abs(effect.mean), default=None)
    if correction is not None and effect is not None:
        if claim.margin is None:
            outcome = UNDECIDED if not correction.significant else REPRODUCED if effect.mean > 0 else REVERSED
            confidence = 1 - correction.level
        else:
            outcome, effect, confidence = _judge_alike(effects, claim.margin, correction)
    if effect is not None and len(effects) > 1:  # of several rows, the difference has no sign
        effect = effect._replace(mean=abs(effect.mean))
    half = effect.half_width(confidence) if effect and confidence else math.nan
    has_interval = effect is not None and not math.isnan(half)
    examples = min((comparison.examples for comparison in claim.comparisons), default=None)
    seeds = min((comparison.seeds for comparison in claim.comparisons if claim.runs), default=None)
    return Verdict(
        claim=claim.paper.claim,
        measure=claim.paper.on,
        dataset=claim.dataset,
        outcome=outcome,
        difference=effect.mean if effect else None,
        low=effect.mean - half if effect and has_interval else None,
        high=effect.mean + half if effect and has_interval else None,
        p=correction.p if correction else None,
        reason=_describe_test(claim, examples, seeds),
        n=examples,
        seeds=seeds,
        says=claim.paper.says,
        source=claim.paper.source,
        runs=" ".join(run.run_id for run in claim.runs),
        facts=claim.facts,
        learned=claim.learned,
    )


def _judge_alike(
    effects: Sequence[statistics.MeanOverSeeds], margin: float, correction: Correction
) -> tuple[str, statistics.MeanOverSeeds, float]:
    """Return the outcome, the difference that decides it, and the confidence of its interval.

    The interval is within the margin if rows are alike, outside if they are not, and neither if that is undecided.
    """
    smaller, larger = statistics.largest_difference(effects, margin)
    outcome = UNDECIDED if not correction.significant else ALIKE_ROWS if smaller < larger else UNLIKE_ROWS
    if outcome == UNLIKE_ROWS:
        effect = min(effects, key=lambda effect: effect.p_larger(margin))
    else:
        effect = max(effects, key=lambda effect: effect.p_smaller(margin))
    return outcome, effect, 1 - 2 * correction.level / (1 if outcome == ALIKE_ROWS else len(effects))


def _describe_test(claim: Claim, examples: int | None, seeds: int | None) -> str:
    """Return "400 examples, 3 seeds; margin 0.7", and the reason of the claim."""
    tested = "" if examples is None else format_count(examples, "example")
    if seeds is not None and any(run.seed is not None for run in claim.runs):
        tested += ", " + {0: "different seeds", 1: "one seed"}.get(seeds, f"{seeds} seeds")
    margin = "" if claim.margin is None else f"margin {claim.margin:g}"
    return "; ".join(filter(None, [tested, margin, claim.reason]))


PRINTED, OURS, DIFFERENCE, VERDICT = "printed", "ours", "difference", "verdict"


class TableNumber(NamedTuple):
    """A row of the long table.

    Attributes:
        kind: `PRINTED`, `OURS`, `DIFFERENCE` (ours minus the printed number) or `VERDICT` (the claimed difference).
        dataset: the paper's name of the dataset.
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
        labels = VERDICT, claim.dataset, claim.claim, claim.measure
        number = TableNumber(*labels, claim.difference, claim.low, claim.high, claim.n, claim.seeds, claim.p)
        rows.append(number._replace(outcome=claim.outcome, source=claim.source, runs=claim.runs))
    cells = [{key: None if value != value else value for key, value in row._asdict().items()} for row in rows]  # NaN
    return rounded_frame(cells, list(TableNumber._fields))


def format_change(number: Estimate | None, decimals: int = 2) -> str:
    """Format a difference and half its interval: "+1.20 ±0.90"; empty if it is unknown. Zero is "+0.00"."""
    if number is None:
        return ""
    half = (number.high - number.low) / 2
    return f"{number.mean:+z.{decimals}f}" + ("" if math.isnan(half) else f" ±{half:.{decimals}f}")
