"""`paper` makes a table or figure of a paper: runs what is missing as an ordinary sweep, then writes its files.

plan_paper_table --> find_finished --> a sweep of what is missing --> find_finished --> write_paper_table
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from longsumbench.errors import PointsFailed, UsageError, suite_errors
from longsumbench.formatting import format_count, plain_table
from longsumbench.papers.page import PLANNED_ONLY, SHOWS_OUTPUTS, Job, read_written
from longsumbench.papers.paper_tables import find_paper_table, read_paper_tables
from longsumbench.papers.points import find_finished, plan_paper_table, sort_words, texts_problem
from longsumbench.papers.printed import read_printed_table
from longsumbench.papers.write import PaperReport, write_paper_table
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.results import Results
from longsumbench.sweeps.launchers import HERE, choose_engine
from longsumbench.sweeps.run import updating_tables
from longsumbench.sweeps.sweep import Launch


@suite_errors()
def paper(
    name: str,
    words: Sequence[str] = (),
    run: bool = True,
    results_dir: str | Path = "results",
    show: Callable[[PaperReport], None] = lambda _: None,
    **settings: Any,
) -> PaperReport:
    """Make a table or figure of the papers: run what is missing, then write its files from all that is finished.

        paper("seal-table2", run=False).page.numbers

    Args:
        name: the table or figure ("seal-table2").
        words: settings as typed ("scale=small").
        run: False to run nothing.
        results_dir: the results folder.
        show: is called with the report, also if runs failed.
        settings: the same as `words`, as arguments.

    Returns:
        The report; scores are 0–100.

    Raises:
        UsageError: the paper table is unknown, or a word is invalid.
        PointsFailed: some runs failed or could not start; the files show the others.
        EnvironmentProblem: no dataset can be read.
    """
    paper_table, words = find_paper_table(name), [*words, *format_overrides(settings)]
    job = find_finished(
        plan_paper_table(paper_table, words, Results.writable(str(results_dir), "--results-dir"))
    )
    launch, problem = None, None
    if run and paper_table.kind not in PLANNED_ONLY:
        launch, problem = _plan_missing(job, words)
    try:
        if launch is not None:
            with updating_tables(launch):
                launch.start()
    finally:  # after an interrupt, too: the page of what is there
        report = write_paper_table(find_finished(job, launch.finished if launch else ()))
        show(report)
    if problem is not None:
        raise problem
    return report


def _plan_missing(job: Job, words: Sequence[str]) -> tuple[Launch | None, PointsFailed | None]:
    """Return the launch of the missing runs, and why some of them cannot start; raise SuiteError if none can."""
    typed, name = sort_words(job.paper_table, words), job.paper_table.name
    engine = choose_engine(typed.launcher, True)
    if engine.sweeper != HERE:
        raise UsageError(
            f"hydra/sweeper={engine.sweeper} chooses settings, but those of a table or figure are given"
        )
    rerun = (
        job.paper_table.kind in SHOWS_OUTPUTS
    )  # the sweep adds what a finished run lacks, and skips complete ones
    candidates = [
        (row.dataset, point, record)
        for row in job.rows
        for point, record in zip(row.points, row.records, strict=True)
        if rerun or record is None
    ]
    problems = {
        name: texts_problem(job.datasets[name]) for name in {name for name, *_ in candidates}
    }
    points = [point for name, point, _ in candidates if problems[name] is None]
    blocked = [
        problem
        for name, _, record in candidates
        if record is None and (problem := problems[name]) is not None
    ]
    reasons = "; ".join(dict.fromkeys(map(str, blocked)))
    if blocked and not points:
        raise type(blocked[0])(reasons)
    sweep_words, command = (
        [name, f"scale={job.scale}", *typed.overrides],
        ("longsumbench", "paper", name, *words),
    )
    launch = Launch(points, command, True, engine, sweep_words) if points else None
    return launch, PointsFailed(
        f"{format_count(len(blocked), 'run')} not started: {reasons}"
    ) if blocked else None


_REFERENCE = "reference"  # in the results folder of a clone: what the suite publishes


def render_paper_tables(results: Results) -> str:
    """Render the list for the terminal: two lines for each paper table, with its page here, or that of the suite.

    Raises:
        DataError: a file of `conf/paper`, or of the results, is damaged.
    """
    rows = list[list[str]]()
    for name, paper_table in read_paper_tables().items():
        printed, made = len(read_printed_table(paper_table)), read_written(results, name)
        published = None if made else read_written(Results(results.root / _REFERENCE), name)
        facts = [
            f"scale={'|'.join(paper_table.scale_names)}",
            f"{format_count(printed, 'printed number')}" if printed else "",
            f"made here: {made.describe()}" if made else "",
            f"published: {published.describe()}" if published else "",
        ]
        rows += [[name, paper_table.title], ["", "; ".join(filter(None, facts))]]
    return plain_table(rows)
