"""`paper` makes a table or figure of a paper: runs what is missing as an ordinary sweep, then writes its files."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from longsumbench.errors import PointsFailed, SuiteError, UsageError, suite_errors
from longsumbench.formatting import format_count, format_duration, plain_table
from longsumbench.papers.artifacts import Artifact, find_artifact, read_artifacts
from longsumbench.papers.index import write_index
from longsumbench.papers.numbers.printed import read_printed_table
from longsumbench.papers.page import PLANNED_ONLY, SHOWS_OUTPUTS, Job, check_options, make_page
from longsumbench.papers.points import TypedWords, find_finished, plan_artifact, sort_words, texts_problem
from longsumbench.papers.stored_pages import MadePage, read_written
from longsumbench.papers.write import PaperReport, write_page
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.results import Results
from longsumbench.sweeps.launchers import HERE, choose_engine
from longsumbench.sweeps.sweep import Launch
from longsumbench.sweeps.tables import updating_tables


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
        UsageError: the artifact is unknown, or a word is invalid.
        PointsFailed: some runs failed or could not start; the files show the others.
        EnvironmentProblem: no dataset can be read.
    """
    artifact, words = find_artifact(name), [*words, *format_overrides(settings)]
    job_words = sort_words(artifact, words)
    job = plan_artifact(artifact, job_words.scale, job_words.page, Results.writable(str(results_dir), "--results-dir"))
    launch, problem = None, None
    if run and artifact.kind not in PLANNED_ONLY:
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
    rerun = job.artifact.kind in SHOWS_OUTPUTS  # the sweep adds what a finished run lacks, and skips complete ones
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
    sweep_words = [job.artifact.name, f"scale={job.scale}", *words.overrides]
    launch = Launch(points, command, True, engine, sweep_words) if points else None
    if not blocked:
        return launch, None
    return launch, PointsFailed(f"{format_count(len(blocked), 'run')} not started: {reasons}")


_REFERENCE = "reference"  # in the results folder of a clone: what the suite publishes


def render_artifacts(results: Results) -> str:
    """Render the list for the terminal: two lines for each artifact, with its page here, or that of the suite.

    Raises:
        DataError: a file of `conf/paper`, or of the results, is damaged.
    """
    rows = list[list[str]]()
    for name, artifact in read_artifacts().items():
        printed = len(read_printed_table(artifact))
        status = describe_status(results, artifact)
        facts = [f"scale={'|'.join(scales_of(artifact))}"]
        facts += [format_count(printed, "printed number")] if printed else []
        published = "" if status else describe_status(Results(results.root / _REFERENCE), artifact)
        facts += [f"made here: {status}"] if status else []
        facts += [f"published: {published}"] if published else []
        rows += [[name, artifact.title], ["", "; ".join(facts)]]
    return plain_table(rows)


def describe_status(results: Results, artifact: Artifact) -> str:
    """Describe the files of an artifact in a results folder: scale, runs, verdicts; empty without files."""
    page = read_written(results, artifact.name)
    if page is None:
        return ""
    return ", ".join(filter(None, [page.scale, _count_runs(artifact, page), page.describe_verdicts()]))


def _count_runs(artifact: Artifact, page: MadePage) -> str:
    finished, every = len(page.runs), len(page.runs) + len(page.missing)
    if artifact.kind in PLANNED_ONLY or not every:
        return ""
    count = format_count(every, "run") if finished == every else f"{finished} of {format_count(every, 'run')}"
    return f"{count}, {format_duration(sum(page.runs.values()))}" if finished else count


def scales_of(artifact: Artifact) -> list[str]:
    """Return the scales of an artifact, its default first."""
    return [artifact.default, *(scale for scale in artifact.scales if scale != artifact.default)]
