"""The files of a table or figure: results/papers/NAME.md, .csv, .html, .json and its pictures.

They depend only on the runs, so that the same runs give the same bytes.
"""

import base64
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import msgspec

from longsumbench.errors import DataError
from longsumbench.files import BadFile, read_json, writable_folder, write_atomically
from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.comparability import heading_of
from longsumbench.leaderboards.notes import PLANTED
from longsumbench.papers.artifacts import Artifact
from longsumbench.papers.kinds import PLANNED_ONLY
from longsumbench.papers.page import NOT_TESTED, Job, Page, Verdict
from longsumbench.report.html import html_page, html_table
from longsumbench.report.tables import Block, escape_markdown, markdown, on_one_line, terminal, wrap_text
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

_FOLDER = "papers"  # in the results folder
_MOST_MISSING = 6  # runs that are named
_VERDICTS = ("claim", "measure", "dataset", "outcome", "difference", "p", "tested on")
_OF_FACTS = 'The paper has no planted facts. The rows of "facts" test the same orderings on those in our texts.'
_STYLE = """
body { max-width: 88rem; } th { white-space: normal; } th:not(.l) { max-width: 5.5rem; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; background: #fff; }
pre { overflow-x: auto; background: var(--card); padding: .6rem .9rem; border-radius: .4rem; }
"""


class MadePage(msgspec.Struct, frozen=True):
    """The content of NAME.json: what the files of an artifact show.

    Attributes:
        scale: the scale of its runs.
        words: the other words of the command.
        runs: id of each finished run → seconds that it took.
        missing: names of the points without a finished run.
        verdicts: outcome → number of claims.
    """

    name: str
    scale: str
    words: tuple[str, ...] = ()
    runs: dict[str, float] = {}
    missing: tuple[str, ...] = ()
    verdicts: dict[str, int] = {}


def files_folder(results: Results) -> Path:
    """Return the folder with the files of all artifacts."""
    return results.root / _FOLDER


def read_written(results: Results, name: str) -> MadePage | None:
    """Return what the files of an artifact show; None if there are none.

    Raises:
        DataError: the file is damaged.
    """
    path = files_folder(results) / f"{name}.json"
    try:
        return read_json(path, MadePage)
    except FileNotFoundError:
        return None
    except BadFile as error:
        raise DataError(f"{error}; the same `longsumbench paper {name}` writes it again", path) from error


def write_page(job: Job, page: Page, words: Sequence[str] = ()) -> list[Path]:
    """Write the files of an artifact, and delete those of an earlier page that this one does not have.

    Args:
        job: its runs.
        page: its content.
        words: the typed words that change the page, without the scale.

    Returns:
        The paths, the Markdown file first.

    Raises:
        EnvironmentProblem: the results folder is not writable.
    """
    name, folder = job.artifact.name, writable_folder(files_folder(job.results), "--results-dir")
    public = tuple(map(_public_word, words))
    contents: dict[str, str | bytes] = {f"{name}.md": render_markdown(job, page, public)}
    if len(page.numbers):
        contents[f"{name}.csv"] = page.numbers.to_csv(index=False, lineterminator="\n")
    contents |= {f"{name}.html": render_html(job, page, public), **page.pictures}
    written = msgspec.json.format(msgspec.json.encode(describe_job(job, page, public)), indent=1).decode()
    contents[f"{name}.json"] = f"{written}\n"
    earlier = [path for pattern in (f"{name}.*", f"{name}-*.png", f"{name}-*.svg") for path in folder.glob(pattern)]
    for path in earlier:
        if path.name not in contents:
            path.unlink()
    for file, content in contents.items():
        write_atomically(folder / file, content)
    return [folder / file for file in contents]


def describe_job(job: Job, page: Page, words: Sequence[str] = ()) -> MadePage:
    """Return what the files of an artifact show."""
    runs = finished_runs(job)
    return MadePage(
        job.artifact.name,
        job.scale,
        tuple(words),
        {run.run_id: round(run.timings.total, 1) for run in runs},
        missing_names(job),
        dict(Counter(verdict.outcome for verdict in page.verdicts)),
    )


def finished_runs(job: Job) -> list[RunRecord]:
    """Return the finished runs of an artifact, each once; none of a kind whose points are only planned."""
    if job.artifact.kind in PLANNED_ONLY:
        return []
    return list({run.run_id: run for row in job.rows for run in row.finished}.values())


def missing_names(job: Job) -> tuple[str, ...]:
    """Return the names of the points without a finished run, those that are the same run once."""
    if job.artifact.kind in PLANNED_ONLY:
        return ()
    named = tuple({point.identity: point.name for point in reversed(job.missing)}.values())[::-1]
    return (*named, *(f"{label} on {dataset}" for label, dataset in job.unreachable))


def describe_runs_of(job: Job) -> list[str]:
    """Describe which runs are finished, what they took, and which are missing; empty without runs."""
    runs, missing = finished_runs(job), missing_names(job)
    if not (runs or missing):
        return []
    counted = f"{len(runs)} of {format_count(len(runs) + len(missing), 'run')} finished"
    took = format_duration(sum(run.timings.total for run in runs))
    machines = dict.fromkeys(run.environment.gpu or run.environment.processor or "an unknown machine" for run in runs)
    lines = [f"{counted}." if not runs else f"{counted}; together they took {took} on {', '.join(machines)}."]
    if missing:
        named = ", ".join(missing[:_MOST_MISSING])
        more = f" and {len(missing) - _MOST_MISSING} more" if missing[_MOST_MISSING:] else ""
        lines.append(f"Missing: {named}{more}. The same command, without --no-run, continues.")
    for (label, dataset), problem in job.unreachable.items():
        lines.append(f"{label} on {dataset} cannot run here: {problem}.")
    return lines


def command_of(job: Job, words: Sequence[str] = ()) -> str:
    """Return the command that makes the page."""
    return shlex.join(["longsumbench", "paper", job.artifact.name, f"scale={job.scale}", *words])


def page_title(artifact: Artifact) -> str:
    """Return the paper's short name, the number of the table or figure, and what it shows."""
    return f"{artifact.citation.rpartition(', ')[2]}, {artifact.prints}: {artifact.title}"


def verdict_block(verdicts: Sequence[Verdict]) -> Block:
    """Return the claimed orderings as a table."""
    rows = [
        [
            one.claim,
            heading_of(one.measure),
            one.dataset,
            one.outcome,
            _format_difference(one),
            _format_p(one.p),
            one.reason,
        ]
        for one in verdicts
    ]
    notes = ["Reproduced or reversed: the difference is significant (p < 0.05, corrected for all claims of the table)."]
    if any(one.measure == PLANTED for one in verdicts):
        notes.append(_OF_FACTS)
    block = Block("Orderings that the paper claims", (), _VERDICTS, "llllrrl", rows, footnotes=tuple(notes))
    return block.without_empty_columns()


def render_terminal(job: Job, page: Page) -> str:
    """Render the tables, the verdicts and the state of the runs for the terminal."""
    tested = [verdict for verdict in page.verdicts if verdict.outcome != NOT_TESTED]
    verdicts = [verdict_block(tested)] if tested else []
    lines = [*job.changes, *describe_runs_of(job)]
    if untested := len(page.verdicts) - len(tested):
        lines.insert(0, f"{format_count(untested, 'claim')} not tested; the page has the reasons.")
    return "\n\n".join([terminal(page_title(job.artifact), [*page.blocks, *verdicts]), *map(wrap_text, lines)])


def render_markdown(job: Job, page: Page, words: Sequence[str] = ()) -> str:
    """Render an artifact as Markdown, with links to its pictures."""
    artifact, title = job.artifact, escape_markdown(page_title(job.artifact))
    parts = [f"# {title}", escape_markdown(f"{artifact.citation}, {artifact.prints}."), f"    {command_of(job, words)}"]
    parts += map(escape_markdown, describe_runs_of(job))
    for heading, sentences in _before(job, page):
        parts += [f"## {heading}", _markdown_list(sentences)]
    if page.verdicts:
        parts.append(_markdown_blocks([verdict_block(page.verdicts)]))
    parts += [f"![{title}]({name})" for name in page.pictures]
    parts += filter(None, [_markdown_blocks(page.blocks), page.text.strip()])
    for heading, sentences in _after(artifact):
        parts += [f"## {heading}", _markdown_list(sentences)]
    return "\n\n".join(parts) + "\n"


def render_html(job: Job, page: Page, words: Sequence[str] = ()) -> str:
    """Render an artifact as one self-contained HTML page."""
    artifact, title = job.artifact, page_title(job.artifact)
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(artifact.citation)}, {escape(artifact.prints)}.</p>"]
    parts += [
        f"<pre>{escape(command_of(job, words))}</pre>",
        *(f"<p>{escape(one)}</p>" for one in describe_runs_of(job)),
    ]
    for heading, sentences in _before(job, page):
        parts += [f"<h2>{heading}</h2>", _html_list(sentences)]
    parts += _html_block(verdict_block(page.verdicts)) if page.verdicts else []
    parts += [_html_picture(title, name, content) for name, content in page.pictures.items()]
    parts += [text for block in page.blocks for text in _html_block(block)]
    parts += [page.details] if page.details else []
    for heading, sentences in _after(artifact):
        parts += [f"<h2>{heading}</h2>", _html_list(sentences)]
    return html_page(title, parts, _STYLE)


def _before(job: Job, page: Page) -> list[tuple[str, Sequence[str]]]:
    """Return the lists of sentences above the tables, with their headings."""
    differing = (*job.changes, *page.conditions)
    return [("What differs from the paper", differing)] if differing else []


def _after(artifact: Artifact) -> list[tuple[str, Sequence[str]]]:
    """Return the lists of sentences below the tables, with their headings."""
    lists = {"What the paper does not give": artifact.not_given, "Notes": artifact.notes}
    return [(heading, sentences) for heading, sentences in lists.items() if sentences]


def _markdown_list(sentences: Iterable[str]) -> str:
    return "\n".join(f"* {escape_markdown(one)}" for one in sentences)


def _markdown_blocks(blocks: Sequence[Block]) -> str:
    return markdown("", blocks).partition("\n\n")[2].rstrip("\n")


def _html_list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(one)}</li>" for one in sentences) + "</ul>"


def _html_block(block: Block) -> list[str]:
    above = [f"<h2>{escape(block.heading)}</h2>"] if block.heading else []
    names = [on_one_line(name) for name in block.columns]
    table = [html_table(names, block.align, block.rows, block.groups)] if block.rows else []
    below = [f'<p class="soft">{escape(line)}</p>' for line in (block.legend("Bold:"), *block.footnotes) if line]
    return [*above, *(f"<p>{escape(note)}</p>" for note in block.notes if note), *table, *below]


def _html_picture(title: str, name: str, content: bytes) -> str:
    kind = "svg+xml" if name.endswith(".svg") else "png"
    data = base64.b64encode(content).decode("ascii")
    return f'<figure><img alt="{escape(title)}" src="data:image/{kind};base64,{data}"></figure>'


def _format_difference(verdict: Verdict) -> str:
    if verdict.difference is None:
        return ""
    interval = "" if verdict.low is None or verdict.high is None else f" ({verdict.low:+.2f} to {verdict.high:+.2f})"
    return f"{verdict.difference:+.2f}{interval}"


def _format_p(p: float | None) -> str:
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _public_word(word: str) -> str:
    """Return a typed word without the folders of this machine."""
    key, sign, value = word.partition("=")
    if key.startswith("path."):
        return f"{key}=FOLDER"
    return f"{key}{sign}{Path(value).name}" if "/" in value and Path(value).expanduser().exists() else word
