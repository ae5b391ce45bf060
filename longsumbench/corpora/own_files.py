"""The user's own files as Examples: plain text, Markdown, and the rows of JSON lines, whose summaries are not needed.

Plain text is one section without a name, its paragraphs set apart by blank lines. In Markdown every heading, nested
ones too, begins a section of its name; a list is one paragraph, and so is a table, each row of it a sentence. Emphasis
and links are their words. Code blocks, HTML blocks and front matter are no prose: they are left out and counted.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from longsumbench.api.corpus import Row
from longsumbench.api.documents import Document, Example
from longsumbench.corpora import jsonl
from longsumbench.corpora.reading.fields import BadRow
from longsumbench.corpora.reading.files import check_readable, files_source
from longsumbench.corpora.reading.markdown import MarkdownReader
from longsumbench.corpora.reading.source import as_thinned
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count

_STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Input:
    """A text to be summarized.

    Attributes:
        name: the file as typed, with the id of the row where it has rows.
        example: its reference is empty.
        words_left_out: how many words of code, HTML and front matter are not in the example.
    """

    name: str
    example: Example
    words_left_out: int = 0


def read_inputs(files: Sequence[str]) -> list[Input]:
    """Read files in the order given: one input each, or one a row.

    Args:
        files: paths ending in .txt, .md, .markdown, .jsonl, .jsonl.gz or nothing; "-" is standard input, as text.

    Raises:
        UsageError: no file, standard input twice, or an ending that does not say how to read it.
        DataError: a file that is not there, empty, or no text; a row that cannot be used.
    """
    if not files:
        raise UsageError("name a FILE to summarize, or - for standard input")
    if files.count(_STANDARD_INPUT) > 1:
        raise UsageError("standard input (-) can be read once only")
    readers = [(file, _reader(file)) for file in files]
    return [found for file, read in readers for found in read(file)]


def merge_inputs(inputs: Sequence[Input]) -> Input:
    """Return one input that has the documents of all.

    Raises:
        UsageError: they come with different questions.
    """
    examples = [one.example for one in inputs]
    titles = {example.title for example in examples if example.title}
    queries = {example.query for example in examples if example.query}
    if len(queries) > 1:
        raise UsageError(f"--together makes one text of all, but they come with {len(queries)} different queries")
    example = Example(
        f"{examples[0].id} + {len(examples) - 1} more",
        titles.pop() if len(titles) == 1 else None,
        queries.pop() if queries else None,
        tuple(chain.from_iterable(example.documents for example in examples)),
        ((),),
    )
    return Input(example.id, example, sum(one.words_left_out for one in inputs))


def _reader(file: str) -> Callable[[str], Iterator[Input]]:
    """Return what reads a file, by the ending of its name."""
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
    """Yield a file of text as one document."""
    yield plain_input(_text_in(file), file)


def plain_input(text: str, name: str) -> Input:
    """Return a text as one document; blank lines separate its paragraphs.

    Raises:
        DataError: it has no words, or half a character.
    """
    found = jsonl.jsonl_example({"id": name, "document": text, "summary": ""})
    documents = tuple(replace(document, source=_named(name)) for document in found.documents)
    return check_input(Input(_named(name), replace(found, documents=documents)))


def _markdown(file: str) -> Iterator[Input]:
    """Yield a file of Markdown as one document; its only first-level heading, if it has one, is the title too."""
    reading = MarkdownReader(_text_in(file))
    title = reading.titles[0] if len(reading.titles) == 1 else None
    example = Example(file, title, None, (Document(file, tuple(reading.sections)),), ((),))
    yield check_input(Input(file, example, reading.words_left_out))


def _rows(file: str) -> Iterator[Input]:
    """Yield the rows of a file of JSON lines."""
    path = Path(file)
    if path.is_file():
        for entry in files_source(path, _from_row, split_by_hash=False).entries(set()):
            try:
                (read,) = entry.read()
                example = as_thinned(read).example
                yield check_input(Input(f"{file}: {example.id}", example), file, entry.line)
            except BadRow as problem:
                raise DataError(f"{problem}", entry.path, entry.line) from problem
    else:
        _content(file)  # tells what is wrong with it


def _from_row(row: Row) -> Example:
    return jsonl.jsonl_example({**row, "references": None, "summary": ""})


def check_input(one: Input, file: str | None = None, line: int | None = None) -> Input:
    """Return an input that has text, and text that can be written; `file` is named in messages, if it is given.

    Raises:
        DataError: it has not.
    """
    if not one.example.source_words():
        beside = f" ({format_count(one.words_left_out, 'word')} of code or HTML left out)" if one.words_left_out else ""
        raise DataError(f"there is no text to summarize in it{beside}", file or one.name, line)
    try:
        json.dumps(one.example.to_dict(), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DataError("half a character (a lone surrogate) in the text", file or one.name, line) from None
    return one


def _text_in(file: str) -> str:
    """Return a file's text.

    Raises:
        DataError: there is no such file, it is empty, or it does not hold text in UTF-8.
    """
    content = _content(file)
    advice = "convert it to UTF-8, or extract its text first"
    if b"\0" in content:
        raise DataError(f"no text: byte {content.index(0) + 1} is zero; {advice}", _named(file))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"no text in UTF-8: see byte {error.start + 1}; {advice}", _named(file)) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(file: str) -> bytes:
    """Return what a file, or standard input, holds."""
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
        raise DataError("the file is empty", _named(file))
    return content


def _named(file: str) -> str:
    return "standard input" if file == _STANDARD_INPUT else file
