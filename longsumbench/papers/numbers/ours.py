"""The numbers of an artifact's own runs.

Job --read_ours--> Ours: a group of seeds for each row and dataset, and whether it learned --table_number--> TableNumber
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from longsumbench.leaderboards.comparability import comparison_key
from longsumbench.leaderboards.learned import judge_learning
from longsumbench.leaderboards.notes import PLANTED
from longsumbench.leaderboards.rouge_part import take_part_as_f
from longsumbench.leaderboards.seed_groups import (
    NO_INTERVAL,
    Learned,
    ScoresOfRuns,
    SeedGroup,
    average_seeds,
    latest_per_seed,
)
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.metrics.aggregate import Estimate
from longsumbench.papers.long_table import OURS, TableNumber
from longsumbench.papers.page import Job, RowRuns
from longsumbench.runs.record import RunRecord

FACTS_HEADING = "facts stated right, %"  # heading of planted facts
LEARNED_COLUMNS = ("learned", "floor", "lift, %")
LEARNED_NOTE = (
    "Floor: what the outputs score without their sources, by the measure that ranks systems on these texts. Lift: the "
    "gain over the floor, in percent of the possible gain. Nothing is concluded from rows that did not learn."
)


class Ours(NamedTuple):
    """The finished runs of an artifact's rows.

    Attributes:
        groups: (row, dataset) → its runs, one per seed, with their means, and whether its system learned. ROUGE is the
            artifact's part, but for the latter.
        scores: run id → per-example scores, 0–1, of the runs that have them; the artifact's part of ROUGE is in the
            columns of F1.
    """

    groups: Mapping[tuple[str, str], SeedGroup]
    scores: ScoresOfRuns

    def number(self, row: str, dataset: str, measure: str) -> Estimate | None:
        """Return the mean of a measure over examples and seeds; None if the row has no run, or did not measure it."""
        group = self.groups.get((row, dataset))
        return group.numbers.get(measure) if group else None

    def table_number(self, kind: str, row: str, dataset: str, measure: str, number: Estimate) -> TableNumber:
        """Return a number of a row for the CSV, or its difference from the printed one."""
        group = self.groups[row, dataset]
        n = group.first.measures[measure].n if measure in group.first.measures else group.first.n
        runs = " ".join(run.run_id for run in group.runs)
        return TableNumber(kind, dataset, row, measure, *number, n, len(group.runs), runs=runs)

    def learned_cells(self, row: str, dataset: str) -> list[str]:
        """Return the cells of `LEARNED_COLUMNS` for a row."""
        learned = self.groups[row, dataset].learned if (row, dataset) in self.groups else Learned()
        floor = "" if learned.floor is None else f"{learned.floor:.1f}"
        return [learned.word, floor, "" if learned.lift is None else f"{learned.lift:.0f}"]

    def learned_numbers(self) -> Iterator[TableNumber]:
        """Yield floor and lift of each row for the CSV; the outcome is the word."""
        for (row, dataset), group in self.groups.items():
            for measure, value in (("floor", group.learned.floor), ("lift", group.learned.lift)):
                if value is not None:
                    number = self.table_number(OURS, row, dataset, measure, Estimate(value, *NO_INTERVAL))
                    yield number._replace(outcome=group.learned.word)

    @property
    def facts(self) -> bool:
        """True if any run measured planted facts."""
        return any(PLANTED in group.numbers for group in self.groups.values())


def read_ours(job: Job) -> Ours:
    """Return the numbers of the finished runs of a job; damaged scores are reported and left out."""
    rows = [row for row in job.rows if row.finished]
    records = {run.run_id: run for row in rows for run in row.finished}
    scores = read_all_scores(job.results, records.values())
    learned = _judge_rows([latest_per_seed(row.finished) for row in rows], scores)
    if job.artifact.part != "f":
        taken, scores = take_part_as_f(records.values(), job.artifact.part, scores)
        records = {run.run_id: run for run in taken}
    groups = {(row.label, row.dataset): _average(row, records, scores) for row in rows}
    return Ours({place: replace(group, learned=learned[group.key]) for place, group in groups.items()}, scores)


def _judge_rows(groups: Iterable[SeedGroup], scores: ScoresOfRuns) -> dict[str, Learned]:
    """Return key of a group → whether its system learned, judged among the rows that are comparable with it."""
    members: dict[object, dict[str, SeedGroup]] = {}
    for group in groups:
        members.setdefault(comparison_key(group.first), {})[group.key] = group
    return {key: found for rows in members.values() for key, found in judge_learning([*rows.values()], scores).items()}


def _average(row: RowRuns, records: Mapping[str, RunRecord], scores: ScoresOfRuns) -> SeedGroup:
    return average_seeds(latest_per_seed([records[run.run_id] for run in row.finished]), scores)


def count_runs(row: RowRuns) -> str:
    """Return the number of finished runs, "3"; if some are missing, "1 of 3"."""
    finished, wanted = len(row.finished), len(row.records)
    return str(finished) if finished == wanted else f"{finished} of {wanted}"


def measures_shown(job: Job, ours: Ours) -> list[str]:
    """Return the artifact's measures; also planted facts, if the runs measured them."""
    return list(dict.fromkeys([*job.artifact.measures, *([PLANTED] if ours.facts else [])]))
