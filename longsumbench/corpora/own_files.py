"""The user's own files as Examples: plain text, Markdown, and the rows of JSON lines. Summaries are not needed.

Plain text is one section without a name; blank lines separate its paragraphs. In Markdown, each heading of any level
begins a section with its name. A list is one paragraph; so is a table, with one sentence per row. Only the words of
emphasis and links remain. Code blocks, HTML blocks and front matter are left out, and their words are counted.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from longsumbench.api import Document, Example, Row
from longsumbench.corpora import jsonl
from longsumbench.corpora.reading.fields import BadRow
from longsumbench.corpora.reading.files import check_readable, files_source
from longsumbench.corpora.reading.markdown import MarkdownReader
from longsumbench.corpora.reading.rows import as_examples, as_thinned
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count

_STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Input:
    """A text to summarize.

    Attributes:
        name: the file as typed, with the id of the row if it has rows.
        example: its reference is empty.
        words_left_out: the number of words of code, HTML and front matter that were removed.
    """

    name: str
    example: Example
    words_left_out: int = 0


def read_inputs(files: Sequence[str]) -> list[Input]:
    """Read files in the order given: one input per file, or one per row.

    Args:
        files: paths that end in .txt, .md, .markdown, .jsonl, .jsonl.gz or nothing; "-" is standard input, as text.

    Raises:
        UsageError: no file is given, standard input is given twice, or an ending is unknown.
        DataError: a file is missing, empty or not text, or a row is invalid.
    """
    if not files:
        raise UsageError("name a FILE to summarize, or - for standard input")
    if files.count(_STANDARD_INPUT) > 1:
        raise UsageError("standard input (-) can be read once only")
    readers = [(file, _reader(file)) for file in files]
    return [found for file, read in readers for found in read(file)]


def merge_inputs(inputs: Sequence[Input]) -> Input:
    """Return one input with the documents of all.

    Raises:
        UsageError: the inputs have different queries.
    """
    examples = [item.example for item in inputs]
    titles = {example.title for example in examples if example.title}
    queries = {example.query for example in examples if example.query}
    if len(queries) > 1:
        raise UsageError(f"--together makes one text of all, but they have {len(queries)} different queries; use one")
    example = Example(
        f"{examples[0].id} + {len(examples) - 1} more",
        titles.pop() if len(titles) == 1 else None,
        queries.pop() if queries else None,
        tuple(chain.from_iterable(example.documents for example in examples)),
        ((),),
    )
    return Input(example.id, example, sum(item.words_left_out for item in inputs))


def _reader(file: str) -> Callable[[str], Iterator[Input]]:
    name = Path(file).name.lower()
    if file == _STANDARD_INPUT or name.endswith(".txt") or not Path(name).suffix:
        return _plain_text
    if name.endswith((".md", ".markdown")):
        return _markdown
    if name.endswith((".jsonl", ".jsonl.gz")):
        return _rows
    known = ".txt, .md, .markdown, .jsonl, .jsonl.gz or nothing"
    raise UsageError(f"{file}: its name should end in {known}; any text can be read by `- < {file}`")


def _plain_text(file: str) -> Iterator[Input]:
    yield plain_input(_text_in(file), file)


def plain_input(text: str, name: str) -> Input:
    """Return a text as one document; blank lines separate its paragraphs.

    Raises:
        DataError: the text has no words, or cannot be encoded.
    """
    found = jsonl.jsonl_example({"id": name, "document": text, "summary": ""})
    documents = tuple(replace(document, source=_display_name(name)) for document in found.documents)
    return check_input(Input(_display_name(name), replace(found, documents=documents)))


def _markdown(file: str) -> Iterator[Input]:
    """Yield a file of Markdown as one document; its only first-level heading, if it has just one, is the title."""
    reading = MarkdownReader(_text_in(file))
    title = reading.titles[0] if len(reading.titles) == 1 else None
    example = Example(file, title, None, (Document(file, tuple(reading.sections)),), ((),))
    yield check_input(Input(file, example, reading.words_left_out))


def _rows(file: str) -> Iterator[Input]:
    path = Path(file)
    if path.is_file():
        for entry in files_source(path, _from_row, split_by_hash=False).entries(set()):
            try:
                (read,) = as_examples(entry.read())
                example = as_thinned(read).example
                yield check_input(Input(f"{file}: {example.id}", example), file, entry.line)
            except BadRow as problem:
                raise DataError(f"{problem}", entry.path, entry.line) from problem
    else:
        _content(file)  # raises the error


def _from_row(row: Row) -> Example:
    return jsonl.jsonl_example({**row, "references": None, "summary": ""})


def check_input(item: Input, file: str | None = None, line: int | None = None) -> Input:
    """Return the item; messages name `file` and `line`.

    Raises:
        DataError: it has no text, or cannot be encoded.
    """
    place = _display_name(file) if file else item.name
    if not item.example.source_words():
        note = f" ({format_count(item.words_left_out, 'word')} of code or HTML left out)" if item.words_left_out else ""
        raise DataError(f"there is no text to summarize in it{note}", place, line)
    try:
        json.dumps(item.example.to_dict(), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DataError("half a character (a lone surrogate) in the text", place, line) from None
    return item


def _text_in(file: str) -> str:
    """Return a file's text; raise DataError if it is missing, empty, or not UTF-8."""
    content = _content(file)
    advice = "convert it to UTF-8, or extract its text first"
    if b"\0" in content:
        raise DataError(f"not text: byte {content.index(0) + 1} is zero; {advice}", _display_name(file))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not text in UTF-8: see byte {error.start + 1}; {advice}", _display_name(file)) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(file: str) -> bytes:
    path = Path(file)
    if file != _STANDARD_INPUT and path.is_dir():
        raise DataError(f"a folder, not a file: name the files in it ({path / '*.txt'})", path)
    try:
        if file != _STANDARD_INPUT:
            check_readable(path)
        content = sys.stdin.buffer.read() if file == _STANDARD_INPUT else path.read_bytes()
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from error
    if not content.strip():
        raise DataError("the file is empty", _display_name(file))
    return content


def _display_name(file: str) -> str:
    return "standard input" if file == _STANDARD_INPUT else file
