"""The numbers of an artifact as one long table, for its CSV file."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from longsumbench.metrics.aggregate import Estimate
from longsumbench.papers.page import Verdict
from longsumbench.report.tables import rounded_frame

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
    rows = [
        {name: _known(value) for name, value in row._asdict().items()} for row in [*numbers, *map(_claimed, verdicts)]
    ]
    return rounded_frame(rows, list(TableNumber._fields))


def _claimed(one: Verdict) -> TableNumber:
    numbers = one.difference, one.low, one.high, one.n, one.seeds, one.p
    return TableNumber(VERDICT, one.dataset, one.claim, one.measure, *numbers, one.outcome, one.source, one.runs)


def _known(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def format_change(number: Estimate | None, decimals: int = 2) -> str:
    """Format a difference and half its interval: "+1.20 ±0.90"; empty if it is unknown. Zero is "+0.00"."""
    if number is None:
        return ""
    half = (number.high - number.low) / 2
    return f"{number.mean:+z.{decimals}f}" + ("" if math.isnan(half) else f" ±{half:.{decimals}f}")
