"""One example of the first run of each row: its texts, output, scores and evidence.

Job --inspect_rows--> RowExamples, and sentences about the rows without one
"""

from dataclasses import replace
from typing import NamedTuple

from longsumbench.analysis.runs.inspect_run import Inspection, inspect_example
from longsumbench.errors import DataError, UsageError
from longsumbench.papers.page import Job, RowRuns
from longsumbench.papers.picture_names import picture_name


class RowExample(NamedTuple):
    """The example of a row.

    Attributes:
        name: label of the row; with the dataset, if the artifact is shown on several.
        row: the row.
        inspection: the example of its first finished run.
    """

    name: str
    row: RowRuns
    inspection: Inspection

    def picture_name(self, job: Job) -> str:
        """Return the file name of its picture: "seal-figure5-seal.png"."""
        return picture_name(job.artifact, self.name)


def keep_first_runs(job: Job) -> Job:
    """Return a job with the first finished run of each row, as if it had no others; rows without one stay."""
    return replace(job, rows=tuple(map(_keep_first_run, job.rows)))


def _keep_first_run(row: RowRuns) -> RowRuns:
    finished = [pair for pair in zip(row.points, row.records, strict=True) if pair[1] is not None]
    if not finished:
        return row
    point, record = finished[0]
    return row._replace(points=(point,), records=(record,))


def inspect_rows(job: Job) -> tuple[list[RowExample], list[str]]:
    """Read the example that the option `example` names (its id, or its index from 0) of the first run of each row.

    Rows on the same dataset show the same example.

    Returns:
        The examples, and a sentence for each row without one that says why.

    Raises:
        UsageError: the runs on a dataset summarized no such example.
    """
    found: list[RowExample] = []
    lacking, ids = [], dict[str, str]()
    for row in job.rows:
        name = name_row(job, row)
        if not row.finished:
            lacking.append(f"{name}: no run is finished.")
            continue
        folder = str(job.results.run_folder(row.finished[0]))
        try:
            inspection = inspect_example(folder, ids.get(row.dataset, str(job.options["example"])), job.results)
        except DataError as error:
            lacking.append(f"{name}: {describe_problem(error)}.")
            continue
        except UsageError as error:
            if row.dataset not in ids:
                raise
            lacking.append(f"{name}: {error}.")
            continue
        ids[row.dataset] = inspection.summary.id
        found.append(RowExample(name, row, inspection))
    return found, lacking


def name_row(job: Job, row: RowRuns) -> str:
    """Return the label of a row; with the dataset, if the artifact is shown on several."""
    several = len({other.dataset for other in job.rows}) > 1
    return f"{row.label}, {row.dataset}" if several else row.label


def describe_problem(error: DataError) -> str:
    """Return the message of an error without the path in front of it, which differs between machines."""
    return str(error).removeprefix(f"{error.path}: ")
