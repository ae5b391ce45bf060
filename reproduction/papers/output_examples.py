"""Kind `examples`: the outputs of several systems for one source, side by side (ETADS, Table 3; Hierarchical, Table 5).

Job --examples_page--> Page: numbers of each output, and the texts
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from longsumbench.core import count_words
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import percent
from longsumbench.outputs.inspection import NO_TEXTS, Inspection, inspect_example
from longsumbench.runs.run_names import describe_run
from longsumbench.sentences import sentence_key, split_summary
from longsumbench.views.html import WORD_RUN
from longsumbench.views.tables import Block, escape_markdown
from longsumbench_reproduction.papers.claims import OURS, TableNumber
from longsumbench_reproduction.papers.conditions import build_row_page
from longsumbench_reproduction.papers.page_model import Job, Page, RowRuns
from longsumbench_reproduction.papers.published_rows import read_row_means


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
    rows = []
    for row in job.rows:
        for point, record in zip(row.points, row.records, strict=True):
            if record is not None:
                row = row._replace(points=(point,), records=(record,))
                break
        rows.append(row)
    return replace(job, rows=tuple(rows))


def inspect_rows(job: Job) -> tuple[list[RowExample], list[str]]:
    """Read the example that the option `example` names (its id, or its index from 0) of the first run of each row.

    Rows on the same dataset show the same example.

    Return the examples, and a sentence for each row without one that says why.

    Raises:
        UsageError: the runs on a dataset summarized no such example.
    """
    examples: list[RowExample] = []
    notes, ids = [], dict[str, str]()
    several = len({row.dataset for row in job.rows}) > 1
    for row in job.rows:
        name = f"{row.label}, {row.dataset}" if several else row.label
        if not row.finished:
            notes.append(f"{name}: no run is finished.")
            continue
        folder = job.results.run_folder(row.finished[0])
        example = ids.get(row.dataset, str(job.options["example"]))
        try:
            inspection = inspect_example(folder, example, job.results)
        except DataError as error:
            notes.append(f"{name}: {describe_problem(error)}.")
            continue
        # The first run of a dataset decides which example is shown; an unknown one is the user's error
        except UsageError as error:
            if row.dataset not in ids:
                raise
            notes.append(f"{name}: {error}.")
            continue
        ids[row.dataset] = inspection.summary.id
        examples.append(RowExample(name, row, inspection))
    return examples, notes


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


class _Text(NamedTuple):
    """A reference of the example, or an output of a system with its measures; a reference has no member."""

    heading: str
    text: str
    member: RowExample | None = None
    measures: Mapping[str, float] = {}


def examples_page(job: Job) -> Page:
    """Make the page of a table of example outputs."""
    job = keep_first_runs(job)
    examples, notes = inspect_rows(job)
    notes.append(
        f"The example of {job.paper_table.prints} is not reprinted: see {job.paper_table.citation}."
    )
    if any(example.inspection.example is None for example in examples):
        notes.append(NO_TEXTS)
    blocks = [Block("", tuple(notes), (), "", [])]
    quotes, numbers = list[str](), list[TableNumber]()
    for _, group in groupby(examples, key=lambda member: member.row.dataset):
        members = [*group]
        texts, inspection = _list_texts(members), members[0].inspection
        title = f"{inspection.record.key.dataset}, example {inspection.summary.id}"
        blocks.append(_texts_block(title, texts))
        quotes.append(_quote_texts(title, texts))
        numbers += _output_numbers(texts)
    page = build_row_page(job, read_row_means(job), blocks, numbers)
    return replace(page, text="\n".join(quotes))


def _list_texts(members: Sequence[RowExample]) -> list[_Text]:
    """Return the references, if the texts are on this machine, then the outputs of the rows."""
    references = max((member.inspection.references for member in members), key=len)
    texts = [_Text(heading, text) for heading, text in references.items()]
    # Sentences count as those of a reference if they are equal but for case and signs
    keys: set[str] = set()
    for reference in references.values():
        keys.update(map(sentence_key, split_summary(reference)))
    for member in members:
        text = member.inspection.summary.text
        sentences = split_summary(text)
        measures = dict(member.inspection.scores)
        measures["words"] = count_words([text])
        measures["sentences"] = len(sentences)
        if references:
            measures["reference_sentences"] = sum(
                sentence_key(sentence) in keys for sentence in sentences
            )
        measures["repeated_words"] = _repeated_share(text)
        texts.append(_Text(member.row.label, text, member, measures))
    return texts


def _texts_block(title: str, texts: Sequence[_Text]) -> Block:
    rows = []
    for heading, text, member, measures in texts:
        scores = [f"{measures[kind]:.1f}" if kind in measures else "" for kind in _ROUGE_HEADINGS]
        counts = [f"{len(split_summary(text))}", f"{measures.get('reference_sentences', '')}"]
        run = describe_run(member.inspection.record) if member else ""
        repeated = f"{_repeated_share(text):.1f}"
        rows.append([heading, f"{count_words([text]):,}", *scores, *counts, repeated, run])
    align = "l" + "r" * (len(_TEXT_COLUMNS) - 2) + "l"
    optional, footnotes = ("run", "R-L"), (_OUTPUT_NOTE,)
    return Block(title, (), _TEXT_COLUMNS, align, rows, optional=optional, footnotes=footnotes)


def repeated_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end, in characters, of each stretch of trigrams that occurred earlier in a text.

    A trigram is three consecutive words, in lower case, across punctuation.
    """
    words = list(WORD_RUN.finditer(text))
    lowered = [word[0].lower() for word in words]
    seen, repeated = set(), [False] * len(words)
    for index, trigram in enumerate(zip(lowered, lowered[1:], lowered[2:], strict=False)):
        if trigram in seen:
            repeated[index : index + 3] = [True] * 3
        seen.add(trigram)
    spans = []
    for is_repeated, group in groupby(range(len(words)), repeated.__getitem__):
        places = list(group)
        if is_repeated:
            spans.append((words[places[0]].start(), words[places[-1]].end()))
    return spans


def _repeated_share(text: str) -> float:
    repeated = sum(len(text[start:end].split()) for start, end in repeated_spans(text))
    return percent(repeated, len(text.split())) or 0.0


def _output_numbers(texts: Sequence[_Text]) -> Iterator[TableNumber]:
    for _, _, member, measures in texts:
        if member:
            dataset, label = member.row.dataset, member.row.label
            run = member.inspection.record.run_id
            for name, value in measures.items():
                value = float(value)
                yield TableNumber(OURS, dataset, label, name, value, n=1, seeds=1, runs=run)


def _quote_texts(title: str, texts: Sequence[_Text]) -> str:
    parts = [f"### {escape_markdown(title)}"]
    for heading, text, _, _ in texts:
        quote = escape_markdown(" ".join(text.split())) or "(nothing)"
        parts += [f"**{escape_markdown(heading)}**", f"> {quote}"]
    return "\n\n".join(parts) + "\n"
