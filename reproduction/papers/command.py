"""`paper` makes a table or figure of a paper: runs what is missing as an ordinary sweep, then writes its files.

plan_paper_table --> find_finished --> a sweep of what is missing --> find_finished --> write_paper_table
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from longsumbench.arguments import public_function
from longsumbench.errors import PointsFailed, SuiteError, UsageError
from longsumbench.formatting import format_count, plain_table
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.results import Results
from longsumbench.sweeps.launchers import HERE, choose_engine
from longsumbench.sweeps.sweep import Launch
from longsumbench_reproduction.papers.page_files import PaperReport, write_paper_table
from longsumbench_reproduction.papers.page_model import (
    PLANNED_ONLY,
    SHOWS_OUTPUTS,
    Job,
    read_written,
)
from longsumbench_reproduction.papers.paper_tables import find_paper_table, read_paper_tables
from longsumbench_reproduction.papers.published_rows import read_printed_table
from longsumbench_reproduction.papers.run_planning import (
    find_finished,
    plan_paper_table,
    sort_words,
    texts_problem,
)


@public_function
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
    results = Results.writable(str(results_dir), "--results-dir")
    # What is there already is not run again
    job = find_finished(plan_paper_table(paper_table, words, results))
    # Some runs may be impossible here: the page is made of the others, then the error is raised
    launch, problem = None, None
    if run and paper_table.kind not in PLANNED_ONLY:
        launch, problem = _plan_missing(job, words)
    try:
        if launch is not None:
            launch.start()
            launch.check_failed()
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
    points, blocked = list[PlannedRun](), list[SuiteError]()
    problems: dict[str, SuiteError | None] = {}  # of each dataset with candidates
    for row in job.rows:
        missing = row.missing
        # A finished run can lack outputs or evidence: the sweep adds them, and skips complete runs
        candidates = row.points if job.paper_table.kind in SHOWS_OUTPUTS else missing
        if candidates and row.dataset not in problems:
            problems[row.dataset] = texts_problem(job.datasets[row.dataset])
        problem = problems.get(row.dataset)
        if problem is None:
            points += candidates
        else:
            blocked += [problem] * len(missing)
    reasons = "; ".join(dict.fromkeys(map(str, blocked)))
    if blocked and not points:
        raise type(blocked[0])(reasons)
    sweep_words = [name, f"scale={job.scale}", *typed.overrides]
    command = ("longsumbench", "paper", name, *words)
    launch = Launch(points, command, True, engine, sweep_words) if points else None
    if not blocked:
        return launch, None
    return launch, PointsFailed(f"{format_count(len(blocked), 'run')} not started: {reasons}")


# What the suite publishes
_REFERENCE = Path(__file__).parents[1] / "reference"


def render_paper_tables(results: Results) -> str:
    """Render the list for the terminal: two lines for each paper table, with its page here, or that of the suite.

    Raises:
        DataError: a file of `conf/paper`, or of the results, is damaged.
    """
    rows = list[list[str]]()
    for name, paper_table in read_paper_tables().items():
        facts = [f"scale={'|'.join(paper_table.scale_names)}"]
        if printed := len(read_printed_table(paper_table)):
            facts.append(format_count(printed, "printed number"))
        if made := read_written(results, name):
            facts.append(f"made here: {made.describe()}")
        elif published := read_written(Results(_REFERENCE), name):
            facts.append(f"published: {published.describe()}")
        rows += [[name, paper_table.title], ["", "; ".join(facts)]]
    return plain_table(rows)
