"""Kind `examples`: the outputs of several systems for one source, side by side (ETADS, Table 3; Hierarchical, Table 5).

Job --examples_page--> Page: numbers of each output, and the texts with marked words
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import percent
from longsumbench.outputs.inspection import NO_TEXTS, Inspection, inspect_example
from longsumbench.papers.claims import OURS, TableNumber, long_table
from longsumbench.papers.conditions import describe_conditions
from longsumbench.papers.page import Job, Page, RowRuns
from longsumbench.papers.printed import read_row_means
from longsumbench.runs.record import run_label
from longsumbench.sentences import sentence_key, split_summary
from longsumbench.views.html import ShownText, headed_references, render_part
from longsumbench.views.marked_words import mark_repetitions, repeated_spans, shared_by
from longsumbench.views.tables import Block, escape_markdown


class RowExample(NamedTuple):
    """The example of a row.

    Attributes:
        name: label of the row; with the dataset, if the paper table is shown on several.
        row: the row.
        inspection: the example of its first finished run.
    """

    name: str
    row: RowRuns
    inspection: Inspection


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

    Return the examples, and a sentence for each row without one that says why.

    Raises:
        UsageError: the runs on a dataset summarized no such example.
    """
    examples: list[RowExample] = []
    notes, ids = [], dict[str, str]()
    for row in job.rows:
        name = name_row(job, row)
        if not row.finished:
            notes.append(f"{name}: no run is finished.")
            continue
        folder = str(job.results.run_folder(row.finished[0]))
        try:
            inspection = inspect_example(
                folder, ids.get(row.dataset, str(job.options["example"])), job.results
            )
        except DataError as error:
            notes.append(f"{name}: {describe_problem(error)}.")
            continue
        except UsageError as error:
            if row.dataset not in ids:
                raise
            notes.append(f"{name}: {error}.")
            continue
        ids[row.dataset] = inspection.summary.id
        examples.append(RowExample(name, row, inspection))
    return examples, notes


def name_row(job: Job, row: RowRuns) -> str:
    """Return the label of a row; with the dataset, if the paper table is shown on several."""
    several = len({job_row.dataset for job_row in job.rows}) > 1
    return f"{row.label}, {row.dataset}" if several else row.label


def describe_problem(error: DataError) -> str:
    """Return the message of an error without the path in front of it, which differs between machines."""
    return str(error).removeprefix(f"{error.path}: ")


_ROUGE_HEADINGS = ("R-1", "R-2", "R-L", "R-Lsum")
_TEXT_COLUMNS = (
    "row",
    "words",
    *_ROUGE_HEADINGS,
    "sentences",
    "also in\nreference",
    "repeated\nwords, %",
    "run",
)
_OUTPUT_NOTE = (
    "R: ROUGE F1 of this output, 0–100. Also in reference: sentences that a reference has word for word. Repeated "
    "words: those in a sequence of three words that occurred earlier in the same text."
)


def examples_page(job: Job) -> Page:
    """Make the page of a table of example outputs."""
    job = keep_first_runs(job)
    examples, notes = inspect_rows(job)
    notes.append(
        f"The example of {job.paper_table.prints} is not reprinted: see {job.paper_table.citation}."
    )
    if any(example.inspection.example is None for example in examples):
        notes.append(NO_TEXTS)
    groups = [
        list(members) for _, members in groupby(examples, key=lambda member: member.row.dataset)
    ]
    marked = [(_title(members), _marked_texts(members)) for members in groups]
    return Page(
        blocks=(Block("", tuple(notes), (), "", []), *map(_output_block, groups)),
        numbers=long_table(
            row
            for members in groups
            for member in members
            for row in _output_numbers(member, members)
        ),
        conditions=describe_conditions(job, read_row_means(job)),
        details=render_part("output_examples.html", examples=marked) if marked else "",
        text="\n".join(map(_quoted_texts, groups)),
    )


def _output_block(members: Sequence[RowExample]) -> Block:
    rows = [
        _text_cells(heading, text, {}, "") for heading, text in _reference_texts(members).items()
    ]
    for member in members:
        measured = _measure_output(member, members)
        rows.append(
            _text_cells(
                member.row.label,
                member.inspection.summary.text,
                measured,
                run_label(member.inspection.record),
            )
        )
    align = "l" + "r" * (len(_TEXT_COLUMNS) - 2) + "l"
    return Block(
        _title(members),
        (),
        _TEXT_COLUMNS,
        align,
        rows,
        optional=("run", "R-L"),
        footnotes=(_OUTPUT_NOTE,),
    )


def _text_cells(name: str, text: str, measured: dict[str, float], run: str) -> list[str]:
    scores = [f"{measured[kind]:.1f}" if kind in measured else "" for kind in _ROUGE_HEADINGS]
    same = f"{measured['reference_sentences']:.0f}" if "reference_sentences" in measured else ""
    counts = [f"{len(split_summary(text))}", same]
    return [name, f"{len(text.split()):,}", *scores, *counts, f"{_repeated_share(text):.1f}", run]


def _title(members: Sequence[RowExample]) -> str:
    inspection = members[0].inspection
    return f"{inspection.record.key.dataset}, example {inspection.summary.id}"


def _reference_texts(members: Sequence[RowExample]) -> dict[str, str]:
    """Return heading → text of the references; empty if the texts are not on this machine."""
    example = next(
        (member.inspection.example for member in members if member.inspection.example), None
    )
    return headed_references(example.references) if example else {}


def _measure_output(member: RowExample, members: Sequence[RowExample]) -> dict[str, float]:
    text, references = member.inspection.summary.text, _reference_texts(members)
    sentences = split_summary(text)
    measured = {
        **member.inspection.scores,
        "words": float(len(text.split())),
        "sentences": float(len(sentences)),
    }
    if references:
        keys = {
            sentence_key(sentence)
            for reference in references.values()
            for sentence in split_summary(reference)
        }
        measured["reference_sentences"] = float(
            sum(sentence_key(sentence) in keys for sentence in sentences)
        )
    return {**measured, "repeated_words": _repeated_share(text)}


def _repeated_share(text: str) -> float:
    repeated = sum(len(text[start:end].split()) for start, end in repeated_spans(text))
    return percent(repeated, len(text.split())) or 0.0


def _output_numbers(member: RowExample, members: Sequence[RowExample]) -> Iterator[TableNumber]:
    run = member.inspection.record.run_id
    for name, value in _measure_output(member, members).items():
        yield TableNumber(
            OURS, member.row.dataset, member.row.label, name, value, n=1, seeds=1, runs=run
        )


def _marked_texts(members: Sequence[RowExample]) -> list[ShownText]:
    references = _reference_texts(members)
    reference_text = " ".join(references.values())
    texts = {
        **references,
        **{member.row.label: member.inspection.summary.text for member in members},
    }
    columns = []
    for heading, text in texts.items():
        shared = shared_by(text, "" if heading in references else reference_text, "")
        columns.append(ShownText(heading, mark_repetitions(text, shared)))
    return columns


def _quoted_texts(members: Sequence[RowExample]) -> str:
    texts = {
        **_reference_texts(members),
        **{member.row.label: member.inspection.summary.text for member in members},
    }
    parts = [f"### {escape_markdown(_title(members))}"]
    for heading, text in texts.items():
        parts += [
            f"**{escape_markdown(heading)}**",
            f"> {escape_markdown(' '.join(text.split())) or '(nothing)'}",
        ]
    return "\n\n".join(parts) + "\n"
