"""The files of a table or figure: results/papers/NAME.md, .csv, .json and its pictures; the index of all claims.

They depend only on the runs, so that the same runs give the same bytes. Begin with `write_paper_table`.
"""

import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import structs

from longsumbench.files import writable_folder
from longsumbench.formatting import format_count, format_duration, format_p
from longsumbench.leaderboards.significance import correct_together
from longsumbench.runs.bundles import index_file
from longsumbench.runs.record import SHORT_ID, RunRecord
from longsumbench.runs.results import Results
from longsumbench.views import tables
from longsumbench.views.figures import (
    TEXT,
    WIDTH,
    add_title_and_notes,
    plain_axes,
    render_picture,
    write_pictures,
)
from longsumbench.views.tables import Struck, escape_markdown
from longsumbench_reproduction.papers.page_model import (
    DECIDED,
    NOT_TESTED,
    OUTCOMES,
    PLANNED_ONLY,
    ClaimOutcome,
    Job,
    Page,
    PaperPageFile,
    PartVerdict,
    describe_tested,
    files_folder,
    make_page,
    read_all_written,
)
from longsumbench_reproduction.papers.paper_tables import PaperTable, find_paper_table
from longsumbench_reproduction.papers.statements import find_statement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_MISSING = 6  # runs that are named
_ALL_TABLES = "../../../docs/papers.md"  # from the reference results of a clone
_INDEX = "All claims of the papers"
_VERDICTS = ("claim", "the paper says", "tested on", "outcome", "difference", "p", "facts", "test")
_DECISIONS = (
    "Reproduced: the difference is significant in each part of the claim. Reversed: it is in one part, in the other "
    "direction. Alike: all differences are significantly smaller than the margin; not alike: one is larger. Depends on "
    "the measure: its measures decide differently. The level is 5 % for all claims of the table together (Holm), and so "
    "are the intervals. Rows that did not learn, and fewer than three seeds, are not tested. A claim that is struck "
    "through no longer counts."
)
_PART_COLUMNS = ("part", "difference")
_OF_FACTS = "Facts: the difference in planted facts, in points, without a test; the paper has no such facts."


@dataclass(frozen=True)
class PaperReport:
    """A table or figure: its runs, what its page shows (`page.numbers`, `page.verdicts`), and its files."""

    job: Job
    page: Page
    files: tuple[Path, ...] = ()

    def render(self) -> str:
        """Render the verdicts, the tables and the state of the runs for the terminal."""
        # The terminal shows what was tested, the page all claims
        tested = [verdict for verdict in self.page.verdicts if verdict.outcome != NOT_TESTED]
        blocks = [*verdict_blocks(self.job, tested), *self.page.blocks]
        parts = [tables.terminal(page_title(self.job.paper_table), blocks)]
        if untested := len(self.page.verdicts) - len(tested):
            parts.append(f"{format_count(untested, 'claim')} not tested; the page has the reasons.")
        parts += map(tables.wrap_text, describe_state(self.job))
        return "\n\n".join(parts)


def write_paper_table(job: Job) -> PaperReport:
    """Make the page of a table or figure from its finished runs; write its files and the index of all claims.

    Raises:
        EnvironmentProblem: the results folder is not writable.
        SuiteError: see `make_page`.
    """
    page = make_page(job)
    report = PaperReport(job, page, tuple(write_page(job, page)))
    write_index(job.results)
    return report


def write_page(job: Job, page: Page) -> list[Path]:
    """Write the files of a paper table, and delete those of an earlier page that this one does not have.

    Return the paths, the Markdown file first.

    Raises:
        EnvironmentProblem: the results folder is not writable.
    """
    name, folder = job.paper_table.name, writable_folder(files_folder(job.results), "--results-dir")
    # The page is published: it names no folder of this machine
    job = replace(job, words=tuple(map(_public_word, job.words)))
    contents: dict[str, str | bytes] = {f"{name}.md": _render_markdown(job, page)}
    if len(page.numbers):
        contents[f"{name}.csv"] = page.numbers.to_csv(index=False, lineterminator="\n")
    contents |= page.pictures
    seconds = {run.run_id: round(run.costs.timings.total, 1) for run in finished_runs(job)}
    claims = tuple(map(_stored_verdict, page.verdicts))
    made = PaperPageFile(name, job.scale, job.words, seconds, missing_names(job), claims)
    contents[f"{name}.json"] = msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
    # An earlier page may have had more pictures, or numbers
    for path in [*folder.glob(f"{name}.*"), *folder.glob(f"{name}-*.png")]:
        if path.name not in contents:
            path.unlink()
    return write_pictures(folder, contents)


def _stored_verdict(verdict: ClaimOutcome) -> ClaimOutcome:
    """Return a verdict for NAME.json: rounded, without the parts."""
    rounded = {}
    for name, value in structs.asdict(verdict).items():
        if isinstance(value, float):
            rounded[name] = round(float(value), 4)
    return structs.replace(verdict, parts=(), **rounded)


def finished_runs(job: Job) -> list[RunRecord]:
    """Return the finished runs of a paper table, each once; none of a kind whose points are only planned."""
    if job.paper_table.kind in PLANNED_ONLY:
        return []
    return list({run.run_id: run for row in job.rows for run in row.finished}.values())


def missing_names(job: Job) -> tuple[str, ...]:
    """Return the names of the points without a finished run, those that are the same run once."""
    if job.paper_table.kind in PLANNED_ONLY:
        return ()
    # Points of several rows can be one run
    names: dict[object, str] = {}
    for point in job.missing:
        names.setdefault(point.settings_hash, point.name)
    unreachable = [f"{label} on {dataset}" for label, dataset in job.unreachable]
    return (*names.values(), *unreachable)


def describe_state(job: Job) -> list[str]:
    """Describe which runs are finished and which are missing, and what makes the page incomparable."""
    runs, missing = finished_runs(job), missing_names(job)
    lines = [*job.changes]
    if runs or missing:
        lines.append(f"{len(runs)} of {format_count(len(runs) + len(missing), 'run')} finished.")
    if missing:
        names = ", ".join(missing[:_MOST_MISSING])
        more = f" and {len(missing) - _MOST_MISSING} more" if missing[_MOST_MISSING:] else ""
        lines.append(f"Missing: {names}{more}. The same command, without --no-run, continues.")
    for (label, dataset), problem in job.unreachable.items():
        lines.append(f"{label} on {dataset} cannot run here: {problem}.")
    return lines


def describe_machines(runs: Sequence[RunRecord]) -> str:
    """Say on which processors runs were made, and how long those took whose time was measured."""
    machines, seconds = dict[str, None](), []
    for run in runs:
        name = run.environment.gpu or run.environment.processor or "an unknown machine"
        machines.setdefault(name)
        seconds.append(run.costs.timings.total)
    took = f", in {format_duration(sum(seconds))}" if all(seconds) else ""
    return f"Made on {', '.join(machines)}{took}. On another processor, rounding can change trained systems."


def _run_lines(job: Job) -> list[str]:
    """Return lines of Markdown about the runs: the machines, then each row with links to its runs.

    Links are relative to the page; those of packed runs lead to the index of the bundle.
    """
    runs = finished_runs(job)
    if not runs:
        return []
    lines = [escape_markdown(describe_machines(runs))]
    page_folder = files_folder(job.results)
    for row in job.rows:
        links = []
        for run in row.finished:
            folder = job.results.run_folder(run)
            link = f"{os.path.relpath(folder, page_folder)}/"
            # The copy of a packed run is in the user's cache
            if not folder.is_relative_to(job.results.root):
                link = os.path.relpath(index_file(job.results.bundle(run.key.dataset)), page_folder)
            seed = "" if run.key.seed is None else f"seed {run.key.seed}, "
            duration = format_duration(run.costs.timings.total)
            links.append(f"[{run.run_id[:SHORT_ID]} ({seed}{duration})]({link})")
        if links:
            label = escape_markdown(f"{row.label} on {row.dataset}")
            lines.append(f"{label}: {', '.join(links)}")
    ids = {run.run_id for run in runs}
    for page in read_all_written(job.results):
        if page.name != job.paper_table.name and (shared := ids & page.runs.keys()):
            lines.append(f"{len(shared)} of these runs are also in [{page.name}]({page.name}.md)")
    return lines


def page_title(paper_table: PaperTable) -> str:
    """Return the paper's short name, the number of the table or figure, and what it shows."""
    return f"{paper_table.citation.rpartition(', ')[2]}, {paper_table.prints}: {paper_table.title}"


def verdict_blocks(job: Job, verdicts: Sequence[ClaimOutcome]) -> list[tables.Block]:
    """Return the claims as a table, with the texts that were used, and the parts of those that have several."""
    if not verdicts:
        return []
    rows, notes = [], [_DECISIONS]
    for verdict in verdicts:
        says = f"{verdict.says} ({verdict.source})" if verdict.says else verdict.source
        tested = describe_tested(job.paper_table, job.scale, verdict)
        numbers = [_format_difference(verdict), format_p(verdict.p), ""]
        if verdict.facts is not None:
            notes = [_DECISIONS, _OF_FACTS]
            numbers[-1] = f"{verdict.facts:+.1f}"
        cells = [verdict.claim, says, tested, verdict.outcome, *numbers]
        cells.append("; ".join(filter(None, [verdict.reason, verdict.stated])))
        if verdict.withdrawn:
            cells = [Struck(cell) if cell else "" for cell in cells]
            cells[-1] = f"withdrawn: {verdict.withdrawn}"
        rows.append(cells)
    notes += _describe_notes(job)
    optional = ("the paper says", "facts", "p")
    block = tables.Block(
        "What the paper claims",
        (),
        _VERDICTS,
        "llllrrrl",
        rows,
        optional=optional,
        footnotes=tuple(notes),
    )
    # Without planted facts or p-values, their columns are empty
    blocks = [block.without_empty_columns()]
    for verdict in verdicts:
        if verdict.parts:
            parts = [[part.claim, _format_difference(part)] for part in verdict.parts]
            blocks.append(tables.Block(f"Parts: {verdict.says}", (), _PART_COLUMNS, "lr", parts))
    return blocks


def _describe_notes(job: Job) -> list[str]:
    """Return what was chosen after looking at results, or looked at several times, each once."""
    notes: dict[str, None] = {}
    for claim in job.paper_table.claims_at(job.scale):
        statement = find_statement(job.paper_table, claim, job.scale)
        if statement and statement.note:
            notes.setdefault(statement.note)
        if statement and statement.looks > 1:
            notes.setdefault(
                f"Tested at each of {statement.looks} looks, at 1/{statement.looks} of the level."
            )
    return list(notes)


def _render_markdown(job: Job, page: Page) -> str:
    paper_table, title = job.paper_table, escape_markdown(page_title(job.paper_table))
    links = f"[{_INDEX}](index.md)"
    if job.results.root.name == "reference":
        links += f" · [All tables and figures]({_ALL_TABLES})"
    words = ["longsumbench", "paper", paper_table.name, f"scale={job.scale}", *job.words]
    parts = [f"# {title}", escape_markdown(f"{paper_table.citation}, {paper_table.prints}.")]
    parts += [links, f"    {shlex.join(words)}", *map(escape_markdown, describe_state(job))]
    if page.verdicts:
        parts.append(_markdown_blocks(verdict_blocks(job, page.verdicts)))
    parts += [f"![{title}]({name})" for name in page.pictures]
    parts += filter(None, [_markdown_blocks(page.blocks), page.text.strip()])
    sections = {
        "What differs from the paper": map(escape_markdown, page.conditions),
        "Runs": _run_lines(job),
        "What the paper does not give": map(escape_markdown, paper_table.not_given),
        "Notes": map(escape_markdown, paper_table.notes),
    }
    for heading, lines in sections.items():
        if text := "\n".join(f"* {line}" for line in lines):
            parts += [f"## {heading}", text]
    return "\n\n".join(parts) + "\n"


def _markdown_blocks(blocks: Sequence[tables.Block]) -> str:
    return tables.markdown("", blocks).partition("\n\n")[2].rstrip("\n")


def _format_difference(verdict: ClaimOutcome | PartVerdict) -> str:
    if verdict.difference is None:
        return ""
    difference = f"{verdict.difference:+.2f}"
    if verdict.low is None:
        return difference
    return f"{difference} ({verdict.low:+.2f} to {verdict.high:+.2f})"


def _public_word(word: str) -> str:
    """Return a typed word without the folders of this machine."""
    key, sign, value = word.partition("=")
    if key.startswith("path."):
        return f"{key}=FOLDER"
    if "/" in value and Path(value).expanduser().exists():
        return f"{key}{sign}{Path(value).name}"
    return word


PICTURE = "claims.png"
_HEIGHT = 3.2  # inches
_CLAIM_COLUMNS = (
    "the paper's claim",
    "place",
    "rows",
    "tested on",
    "outcome",
    "seeds",
    "learned",
    "page",
)
_CLAIMS_LEGEND = (
    "Each claim is tested once, with all its rows and datasets, on the measure and the texts in the column "
    '"tested on"; generated reports (probe) are no papers or articles. Of a claim with several parts, the rows are '
    "those that decide. Claims about people are not tested. Seeds: those that all rows have. Learned: whether all "
    "compared systems learned to summarize; if one did not, nothing is concluded."
)


def write_index(results: Results) -> None:
    """Write index.md and the picture for all pages in a results folder; nothing without a claim.

    Raises:
        DataError: a file of a page is damaged.
    """
    # The picture has a bar for each paper, whose tables are several pages
    numbers: dict[str, Counter[str]] = {}  # paper → number of claims of each outcome
    for page in read_all_written(results):
        if page.claims:
            outcomes = numbers.setdefault(_paper_name(find_paper_table(page.name)), Counter())
            outcomes.update(claim.outcome for claim in page.counted)
    if numbers:
        title = f"The claims of {format_count(len(numbers), 'paper')}, and what holds here"
        text = f"# {title}\n\n![{title}]({PICTURE})\n\n{claims_table(results)}"
        picture = _draw_outcomes(title, numbers)
        write_pictures(files_folder(results), {"index.md": text, PICTURE: picture})


def claims_table(results: Results) -> str:
    """Return all claims as a Markdown table, with the outcome of each and a link to its page.

    Raises:
        DataError: a file of a page is damaged.
    """
    pages = read_all_written(results)
    lines = [f"{summarize_outcomes(pages)} {_CLAIMS_LEGEND}", ""]
    lines += [f"| {' | '.join(_CLAIM_COLUMNS)} |", "|---" * len(_CLAIM_COLUMNS) + "|"]
    for page in pages:
        paper_table = find_paper_table(page.name)
        for claim in page.counted:
            place = f"{_paper_name(paper_table)}, {claim.source or paper_table.prints}"
            seeds = "" if claim.seeds is None else str(claim.seeds)
            cells = [claim.says, place, claim.claim, page.tested_on(claim)]
            cells += [claim.outcome, seeds, claim.learned]
            text = " | ".join(map(escape_markdown, cells))
            lines.append(f"| {text} | [{page.name}]({page.name}.md) |")
    return "\n".join([*lines, ""])


def summarize_outcomes(pages: Sequence[PaperPageFile]) -> str:
    """Say how many claims are decided by their pages, and how many if all claims of all pages are one family.

    A test of the same runs by the same measure counts once, also if it is on two pages.
    """
    claims: dict[object, ClaimOutcome] = {}
    for page in pages:
        for claim in page.counted:
            key = frozenset(claim.runs.split()), claim.measure, " ~ " in claim.claim
            claims.setdefault(
                key if claim.p_alone is not None and claim.runs else len(claims), claim
            )
    numbers = Counter(claim.outcome for claim in claims.values())
    decided = [outcome for outcome in DECIDED if numbers[outcome]]
    outcomes = ", ".join(f"{numbers[outcome]} {outcome}" for outcome in decided) or "none"
    number = sum(numbers[outcome] for outcome in decided)
    sentence = f"{number} of {format_count(numbers.total(), 'claim')} are decided: {outcomes}."
    tested = [claim for claim in claims.values() if claim.p_alone is not None]
    corrections = correct_together([claim.p_alone or 0.0 for claim in tested])
    remaining = sum(
        claim.outcome in DECIDED and correction.significant
        for claim, correction in zip(tested, corrections, strict=True)
    )
    if number:
        family = f"the {format_count(len(tested), 'tested claim')} of all papers"
        sentence += (
            f" With {family} corrected together (Holm), {remaining} of these {number} remain."
        )
    return sentence


def _paper_name(paper_table: PaperTable) -> str:
    return min(paper_table.citation.rpartition(", ")[::2], key=len)


def _draw_outcomes(title: str, numbers: Mapping[str, Counter[str]]) -> bytes:
    """Draw a bar for each paper, with a part for each outcome; return a PNG."""

    def draw(figure: "Figure") -> None:
        add_title_and_notes(figure, title, "")
        plot, names = figure.subplots(), list(numbers)
        starts = np.zeros(len(names))
        for outcome, colour in OUTCOMES.items():
            sizes = np.array([numbers[name][outcome] for name in names])
            if sizes.any():
                label = f"{outcome} ({sizes.sum()})"
                plot.barh(names, sizes, left=starts, color=colour, label=label)
                starts = starts + sizes
        plain_axes(plot, "x")
        plot.invert_yaxis()
        plot.locator_params("x", integer=True)
        plot.set_xlabel("claims", fontsize=TEXT)
        figure.legend(loc="outside right center", frameon=False, fontsize=TEXT - 2)

    return render_picture((WIDTH, _HEIGHT), draw, ("png",))["png"]
