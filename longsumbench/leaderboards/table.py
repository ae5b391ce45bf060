"""The table of a dataset: its finished runs as blocks of comparable rows. Begin with `read_table`.

Runs are comparable if the texts, the split, the examples and the signature of the scores agree. This package has numbers
only; `views` makes text, LaTeX, CSV files and pictures of them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from longsumbench.core import registry
from longsumbench.errors import DataError, UnknownName, UsageError
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.significance import LeaderboardBlock, build_blocks, read_all_scores
from longsumbench.metrics.aggregate import ScoreTable, compute_intervals, read_groups
from longsumbench.metrics.evaluate import DEFAULT_RANKING_SCORE
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, is_verified
from longsumbench.runs.run_names import hide_folders


@dataclass(frozen=True)
class Table:
    """The numbers of a dataset.

    Attributes:
        comparable: blocks of comparable rows, that of the whole test split first.
        statistic: the statistic of ROUGE that ranks the rows and is shown as F.
        scores: run id → per-example scores, 0–1, of the runs that have them.
    """

    dataset: str
    comparable: tuple[LeaderboardBlock, ...]
    statistic: str = "f"
    scores: Mapping[str, ScoreTable] = field(default_factory=dict, compare=False, repr=False)

    def locate_runs(self) -> dict[str, tuple[int, ResultRow]]:
        """Return run id → number, from 1, of the first block that has the run, and its row; in the order of `records`."""
        places: dict[str, tuple[int, ResultRow]] = {}
        for number, block in enumerate(self.comparable, start=1):
            rows = {run.run_id: row for row in block.rows for run in (*row.runs, *row.repeated)}
            for run in block.records():
                places.setdefault(run.run_id, (number, rows[run.run_id]))
        return places

    def records(self) -> list[RunRecord]:
        """Return all runs, each once: comparable ones together, the best first, oracles last."""
        runs: dict[str, RunRecord] = {}
        for block in self.comparable:
            runs |= {run.run_id: run for run in block.records()}
        return list(runs.values())


def take_statistic_as_f(
    records: Iterable[RunRecord], statistic: str, scores: Mapping[str, ScoreTable]
) -> tuple[list[RunRecord], dict[str, ScoreTable]]:
    """Return records and scores with a statistic of ROUGE in the place of F1.

    Runs do not store the intervals of precision and recall: they come from the per-example scores, if these exist.
    """
    statistic_scores = {}
    for run_id, table in scores.items():
        columns = {f"{kind}_f": table[f"{kind}_{statistic}"] for kind in ROUGE_HEADINGS}
        statistic_scores[run_id] = table.assign(**columns)
    changed = [
        _with_statistic_as_f(run, statistic, statistic_scores.get(run.run_id)) for run in records
    ]
    return changed, statistic_scores


def _with_statistic_as_f(record: RunRecord, statistic: str, scores: ScoreTable | None) -> RunRecord:
    bounds: Mapping[str, tuple[float, float]] = {}
    if scores is not None:
        scoring = record.config.score
        # The intervals of a statistic are computed as those of F1 were
        columns = scores.frame()[[f"{kind}_f" for kind in ROUGE_HEADINGS]]
        bounds = compute_intervals(
            columns, scoring.resamples, scoring.resampling == "perl", read_groups(scores)
        )
    means = {}
    for kind, score in record.evaluation.scores.items():
        low, high = bounds.get(f"{kind}_f", (math.nan, math.nan))
        means[kind] = replace(score, f=vars(score)[statistic], f_lo=low, f_hi=high)
    return replace(record, evaluation=replace(record.evaluation, scores=means))


def find_datasets(results: Results, dataset: str | None = None) -> list[str]:
    """Return the datasets with finished runs; of these only `dataset`, if it is given.

    Raises:
        UsageError: there are no runs, or none on the dataset.
    """
    datasets = results.datasets()
    if not datasets:
        raise UsageError(
            f"no finished run under {results.root}: start with `longsumbench run`, or set --results-dir"
        )
    if dataset and dataset not in datasets:
        raise UnknownName("dataset with results", dataset, datasets)
    return [dataset] if dataset else datasets


def read_table(
    results: Results,
    dataset: str,
    statistic: str = "f",
    by_run: bool = False,
    names: Sequence[str] | None = None,
) -> Table:
    """Return the table of all readable finished runs on a dataset.

    `statistic` is a key of `ROUGE_STATISTICS`. By default, a row has all seeds of a system, and the numbers that tables
    show (or `names`) are tested.
    """
    records = list(map(hide_folders, results.records(dataset)))
    # Without any verified run, tables have no column that says so
    marks = [is_verified(results.run_folder(record)) for record in records]
    if any(marks):
        pairs = zip(records, marks, strict=True)
        records = [replace(record, verified=mark) for record, mark in pairs]
    scores = read_all_scores(results, records, f"f{statistic}")
    if statistic != "f":
        records, scores = take_statistic_as_f(records, statistic, scores)
        records = [_ranked_by_rouge(record) for record in records]
    if not records:
        raise DataError("no run can be read", results.root / "runs" / dataset)
    return Table(dataset, build_blocks(records, scores, by_run, names), statistic, scores)


def _ranked_by_rouge(record: RunRecord) -> RunRecord:
    """Return a record without its other measures."""
    rouge = replace(record.evaluation, measures={}, ranked_by=DEFAULT_RANKING_SCORE)
    return replace(record, evaluation=rouge)


def how_to_compute(measure: str) -> str:
    """Return how a measure of a metric is added to finished runs; empty if no built-in metric has it."""
    for name in registry.metrics.shipped():
        metric = registry.metrics.load(name)
        if name != "rouge" and measure in (name, *metric.columns, *metric.further, *metric.units):
            return f"; to compute it, repeat their commands with score.metrics=[{name}], which trains nothing again"
    return ""
