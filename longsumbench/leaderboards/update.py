"""Tables made from a results folder, and rebuilt there after runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from longsumbench.errors import DataError, UnknownName, UsageError, suite_errors
from longsumbench.leaderboards.rouge_part import take_part_as_f
from longsumbench.leaderboards.significance import comparable_rows, read_all_scores
from longsumbench.leaderboards.table import Table
from longsumbench.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@suite_errors()
def leaderboard(dataset: str | None = None, results_dir: str | Path = "results") -> pd.DataFrame:
    """Rebuild the table of a dataset, or of all, from their finished runs, as `longsumbench leaderboard` does.

    Args:
        dataset: its name; None for all datasets.
        results_dir: where the runs are.

    Returns:
        A row for each run, with the columns of `leaderboard/<dataset>.csv`: comparable runs together, the best first.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read.
    """
    results = Results(Path(results_dir).expanduser())
    frames = [update_table(results, name).frame() for name in find_datasets(results, dataset)]
    return pd.concat(frames, ignore_index=True).infer_objects()


@suite_errors()
def leaderboard_figure(dataset: str, results_dir: str | Path = "results") -> "Figure":
    """Draw the ranking score of each system on a dataset with its 95 % interval; nothing is written.

    Returns:
        A figure of the first block of the table, best first; 0–100, or in the measure's unit.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read.
    """
    results = Results(Path(results_dir).expanduser())
    find_datasets(results, dataset)
    return read_table(results, dataset).figure()


def find_datasets(results: Results, dataset: str | None = None) -> list[str]:
    """Return the datasets with finished runs; of these only `dataset`, if it is given.

    Raises:
        UsageError: there are no runs, or none on the dataset.
    """
    found = results.datasets()
    if not found:
        raise UsageError(f"no finished run under {results.root}: start with `longsumbench run`, or set --results-dir")
    if dataset and dataset not in found:
        raise UnknownName("dataset with results", dataset, found)
    return [dataset] if dataset else found


def update_table(results: Results, dataset: str, redraw: bool = True) -> Table:
    """Rebuild `leaderboard/<dataset>.csv`, `.md`, `.tex` and the pictures from all finished runs on a dataset.

    A lock serializes simultaneous jobs, so the last table has all runs.

    Args:
        results: the results folder.
        dataset: its name.
        redraw: False to leave the files as they are if the CSV is the same; drawing takes a second.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read; the files stay unchanged.
    """
    find_datasets(results, dataset)
    with results.leaderboard_lock(dataset):
        table = read_table(results, dataset)
        csv = results.root / "leaderboard" / f"{dataset}.csv"
        if redraw or not csv.is_file() or csv.read_bytes() != table.csv().encode():
            results.write_leaderboard(table.files())
    return table


def update_or_delete_table(results: Results, dataset: str) -> None:
    """Rebuild the table of a dataset after runs were removed; without any run left, delete it."""
    if dataset in results.datasets():
        update_table(results, dataset)
    else:
        results.write_leaderboard(dict.fromkeys(f"{dataset}.{ending}" for ending in ("csv", "md", "tex")))


def read_table(
    results: Results, dataset: str, part: str = "f", by_run: bool = False, names: Sequence[str] | None = None
) -> Table:
    """Return the table of all readable finished runs on a dataset.

    Args:
        results: the results folder.
        dataset: its name.
        part: the part of ROUGE, a key of `ROUGE_PARTS`.
        by_run: make a row of each run; by default, a row has all seeds of a system.
        names: the numbers that are tested; default: those that tables show.
    """
    records = list(results.records(dataset))
    scores = read_all_scores(results, records)
    if part != "f":
        records, scores = take_part_as_f(records, part, scores)
        records = [replace(record, measures={}, ranked_by=None) for record in records]
    if not records:
        raise DataError("no run can be read", results.root / "runs" / dataset)
    return Table(dataset, comparable_rows(records, scores, by_run, names), part, scores)
