"""The numbers of an artifact's own runs, and the rows of its CSV file.

Job --read_ours--> Ours: a group of seeds for each row and dataset --csv_line--> CSV
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from longsumbench.leaderboards.notes import PLANTED
from longsumbench.leaderboards.seed_groups import ScoresOfRuns, SeedGroup, average_seeds, latest_per_seed
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.leaderboards.table import take_part_as_f
from longsumbench.metrics.aggregate import Estimate
from longsumbench.papers.page import Job, RowRuns
from longsumbench.report.tables import rounded_frame
from longsumbench.runs.record import RunRecord

FACTS_HEADING = "facts stated right, %"  # heading of planted facts
_COLUMNS = (
    *("kind", "dataset", "row", "measure", "value", "low", "high", "n", "seeds", "p"),
    *("outcome", "source", "runs"),
)


class Ours(NamedTuple):
    """The finished runs of an artifact's rows.

    Attributes:
        groups: (row, dataset) → its runs, one per seed, with their means. ROUGE is the artifact's part.
        scores: run id → per-example scores, 0–1, of the runs that have them; the artifact's part of ROUGE is in the
            columns of F1.
    """

    groups: Mapping[tuple[str, str], SeedGroup]
    scores: ScoresOfRuns

    def number(self, row: str, dataset: str, measure: str) -> Estimate | None:
        """Return the mean of a measure over examples and seeds; None if the row has no run, or did not measure it."""
        group = self.groups.get((row, dataset))
        return group.numbers.get(measure) if group else None

    @property
    def facts(self) -> bool:
        """True if any run measured planted facts."""
        return any(PLANTED in group.numbers for group in self.groups.values())


def read_ours(job: Job) -> Ours:
    """Return the numbers of the finished runs of a job; damaged scores are reported and left out."""
    rows = [row for row in job.rows if row.finished]
    records = {run.run_id: run for row in rows for run in row.finished}
    scores = read_all_scores(job.results, records.values())
    if job.artifact.part != "f":
        taken, scores = take_part_as_f(records.values(), job.artifact.part, scores)
        records = {run.run_id: run for run in taken}
    return Ours({(row.label, row.dataset): _average(row, records, scores) for row in rows}, scores)


def _average(row: RowRuns, records: Mapping[str, RunRecord], scores: ScoresOfRuns) -> SeedGroup:
    return average_seeds(latest_per_seed([records[run.run_id] for run in row.finished]), scores)


def count_runs(row: RowRuns) -> str:
    """Return the number of finished runs, "3"; if some are missing, "1 of 3"."""
    finished, wanted = len(row.finished), len(row.records)
    return str(finished) if finished == wanted else f"{finished} of {wanted}"


def measures_shown(job: Job, ours: Ours) -> list[str]:
    """Return the artifact's measures; also planted facts, if the runs measured them."""
    return list(dict.fromkeys([*job.artifact.measures, *([PLANTED] if ours.facts else [])]))


def csv_line(
    kind: str,
    dataset: str,
    row: str,
    measure: str,
    number: Estimate,
    group: SeedGroup | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return a row of the CSV.

    Args:
        kind: "printed", "ours" or "difference".
        dataset: the paper's name of the dataset.
        row: label of the row.
        measure: what was measured.
        number: its value; a NaN interval becomes empty cells.
        group: our runs.
        others: more columns.
    """
    bounds = [None if math.isnan(bound) else bound for bound in (number.low, number.high)]
    found: dict[str, Any] = {"kind": kind, "dataset": dataset, "row": row, "measure": measure}
    found |= {"value": number.mean, "low": bounds[0], "high": bounds[1]}
    if group:
        first = group.first
        found["n"] = first.measures[measure].n if measure in first.measures else first.n
        found |= {"seeds": len(group.runs), "runs": " ".join(run.run_id for run in group.runs)}
    return found | others


def numbers_frame(lines: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the CSV's rows as a table: numbers have four decimals, and what does not apply is empty."""
    return rounded_frame(lines, list(_COLUMNS))
