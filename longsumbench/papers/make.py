"""`paper` makes a table or figure of a paper: runs what is missing as an ordinary sweep, then writes its files."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from longsumbench.errors import PointsFailed, SuiteError, UsageError, suite_errors
from longsumbench.formatting import format_count, format_duration, plain_table
from longsumbench.papers.index import write_index
from longsumbench.papers.numbers.printed import read_printed_table
from longsumbench.papers.page import PLANNED_ONLY, SHOWS_OUTPUTS, Job, check_options, make_page
from longsumbench.papers.paper_tables import PaperTable, find_paper_table, read_paper_tables
from longsumbench.papers.points import TypedWords, find_finished, plan_paper_table, sort_words, texts_problem
from longsumbench.papers.stored_pages import MadePage, read_written
from longsumbench.papers.write import PaperReport, write_page
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
    job_words = sort_words(paper_table, words)
    results = Results.writable(str(results_dir), "--results-dir")
    job = plan_paper_table(paper_table, job_words.scale, job_words.page, results)
    launch, problem = None, None
    if run and paper_table.kind not in PLANNED_ONLY:
        launch, problem = _plan_missing(job, job_words, ("longsumbench", "paper", name, *words))
    try:
        if launch is not None:
            check_options(job)
            with updating_tables(launch):
                launch.start()
    except BaseException:  # after an interrupt, too: the page of what is there
        with suppress(SuiteError):
            show(_finish(job, launch, job_words.page))
        raise
    report = _finish(job, launch, job_words.page)
    show(report)
    if problem is not None:
        raise problem
    return report


def _finish(job: Job, launch: Launch | None, words: Sequence[str]) -> PaperReport:
    """Write the files of what is finished by now."""
    job = find_finished(job, launch.finished if launch else ())
    page = make_page(job)
    report = PaperReport(job, page, tuple(write_page(job, page, words)))
    write_index(job.results)
    return report


def _plan_missing(job: Job, words: TypedWords, command: tuple[str, ...]) -> tuple[Launch | None, PointsFailed | None]:
    """Return the launch of the runs that are not finished, and the reason why some of them cannot start.

    Raises:
        SuiteError: none of them can start: no texts, or no such launcher.
    """
    engine = choose_engine(words.launcher, True)
    if engine.sweeper != HERE:
        raise UsageError(f"hydra/sweeper={engine.sweeper} chooses settings, but those of a table or figure are given")
    rerun = job.paper_table.kind in SHOWS_OUTPUTS  # the sweep adds what a finished run lacks, and skips complete ones
    candidates = [
        (row.dataset, point, record)
        for row in job.rows
        for point, record in zip(row.points, row.records, strict=True)
        if rerun or record is None
    ]
    problems = {name: problem for name, *_ in candidates if (problem := texts_problem(job.datasets[name]))}
    points = [point for name, point, _ in candidates if name not in problems]
    blocked = [name for name, _, record in candidates if name in problems and record is None]
    reasons = "; ".join(f"{problems[name]}" for name in dict.fromkeys(blocked))
    if blocked and not points:
        raise type(problems[blocked[0]])(reasons)
    sweep_words = [job.paper_table.name, f"scale={job.scale}", *words.overrides]
    launch = Launch(points, command, True, engine, sweep_words) if points else None
    if not blocked:
        return launch, None
    return launch, PointsFailed(f"{format_count(len(blocked), 'run')} not started: {reasons}")


_REFERENCE = "reference"  # in the results folder of a clone: what the suite publishes


def render_paper_tables(results: Results) -> str:
    """Render the list for the terminal: two lines for each paper table, with its page here, or that of the suite.

    Raises:
        DataError: a file of `conf/paper`, or of the results, is damaged.
    """
    rows = list[list[str]]()
    for name, paper_table in read_paper_tables().items():
        printed = len(read_printed_table(paper_table))
        status = describe_status(results, paper_table)
        facts = [f"scale={'|'.join(scales_of(paper_table))}"]
        facts += [format_count(printed, "printed number")] if printed else []
        published = "" if status else describe_status(Results(results.root / _REFERENCE), paper_table)
        facts += [f"made here: {status}"] if status else []
        facts += [f"published: {published}"] if published else []
        rows += [[name, paper_table.title], ["", "; ".join(facts)]]
    return plain_table(rows)


def describe_status(results: Results, paper_table: PaperTable) -> str:
    """Describe the files of a paper table in a results folder: scale, runs, verdicts; empty without files."""
    page = read_written(results, paper_table.name)
    if page is None:
        return ""
    return ", ".join(filter(None, [page.scale, _count_runs(paper_table, page), page.describe_verdicts()]))


def _count_runs(paper_table: PaperTable, page: MadePage) -> str:
    finished, every = len(page.runs), len(page.runs) + len(page.missing)
    if paper_table.kind in PLANNED_ONLY or not every:
        return ""
    count = format_count(every, "run") if finished == every else f"{finished} of {format_count(every, 'run')}"
    return f"{count}, {format_duration(sum(page.runs.values()))}" if finished else count


def scales_of(paper_table: PaperTable) -> list[str]:
    """Return the scales of a paper table, its default first."""
    return [paper_table.default, *(scale for scale in paper_table.scales if scale != paper_table.default)]
