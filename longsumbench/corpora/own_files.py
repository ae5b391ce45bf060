"""The user's own files as Examples: plain text, Markdown, and the rows of JSON lines. Summaries are not needed.

Plain text is one section without a name; blank lines separate its paragraphs. In Markdown, each heading of any level
begins a section with its name. A list is one paragraph; so is a table, with one sentence per row. Items, rows and line
breaks stay lines of the text. Only the words of emphasis and links remain. Code blocks, HTML blocks and front matter are
left out, and their words are counted.
"""

import logging
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from longsumbench.core import Document, Example, Section, Sentences
from longsumbench.corpora import jsonl
from longsumbench.corpora.loading.fields import BadRow, bad_rows_at, text_document
from longsumbench.corpora.loading.row_files import (
    ROW_ENDINGS,
    FileRow,
    describe_file,
    holds_rows,
    read_file,
    texts_in_folder,
    unpacked_path,
)
from longsumbench.corpora.loading.text_files import (
    decoded,
    describe_unread_file,
    describe_unread_files,
    list_shards,
    read_text_file,
    refuse_half_characters,
    visible_files,
)
from longsumbench.corpora.loading.usual_keys import OWN_FIELDS, rename_keys
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count
from longsumbench.sentences import split_sentences, unify_line_breaks

_log = logging.getLogger(__name__)

_STANDARD_INPUT = "-"
_MARKDOWN = (".md", ".markdown")
_ROW_FIELDS = tuple(field for field in OWN_FIELDS if field != "summary")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[\w-]+[ \t]*:)(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
# depth of nested lists; the library's default, 20, would lose text silently
_DEEPEST = 1_000
_NO_PROSE = ("fence", "code_block", "html_block")
_ONE_PARAGRAPH = ("bullet_list", "ordered_list", "table")
_KNOWN = f"{', '.join(('.txt', *_MARKDOWN, *ROW_ENDINGS))} (also packed, .gz) or nothing"


@dataclass(frozen=True)
class Input:
    """A text to summarize."""

    # the file as typed, with the id of the row if it has rows
    name: str
    example: Example  # its reference is empty
    # the number of words of code, HTML and front matter that were removed
    words_left_out: int = 0


class InputJob(NamedTuple):
    """A text that `load` reads, or raises DataError; its name is the file, with the number of a row ("a.jsonl:17")."""

    name: str
    load: Callable[[], Input]


def read_inputs(files: Sequence[str]) -> list[Input]:
    """Read files and folders in the order given: one input per file, or one per row.

    Raises:
        UsageError: no file is given, standard input is given twice, or an ending is unknown.
        DataError: a file is missing, empty or not text, or a row is invalid; a folder has no file that can be read.
    """
    return [job.load() for job in input_jobs(list_files(files))]


def list_files(paths: Sequence[str]) -> list[str]:
    """Return the files among some paths, and those in the folders among them, which are sorted.

    Hidden files and those with an unknown ending are left out of folders; errors are those of `read_inputs`.
    """
    if not paths:
        raise UsageError("name a FILE or FOLDER to summarize, or - for standard input")
    if paths.count(_STANDARD_INPUT) > 1:
        raise UsageError("standard input (-) can be read once only")
    for path in paths:
        if not Path(path).is_dir() and not _has_known_ending(path):
            raise UsageError(
                f"{path}: its name should end in {_KNOWN}; any text can be read by `- < {path}`"
            )
    files: list[str] = []
    for path in paths:
        files += _files_in(path) if Path(path).is_dir() else map(str, list_shards(Path(path)))
    return files


def _files_in(folder: str) -> list[str]:
    files: list[str] = []
    unread = defaultdict(list)
    for file in visible_files(Path(folder)):
        if _has_known_ending(f"{file}"):
            files.append(f"{file}")
        else:
            unread[describe_unread_file(file)].append(file.name)
    left_out = describe_unread_files(unread)
    if not files:
        names = f" ({'; '.join(left_out) or 'it is empty'})"
        raise DataError(f"no file in this folder ends in {_KNOWN}{names}", folder)
    for line in left_out:
        _log.info(f"{folder}: {line}")
    if texts_in_folder(Path(folder), "document"):
        references = set(map(str, texts_in_folder(Path(folder), "summary").values()))
        _log.info(f"{folder}: {format_count(len(references), 'reference')} left out")
        files = [file for file in files if file not in references]
    return sorted(files)


def _has_known_ending(file: str) -> bool:
    ending = unpacked_path(Path(file)).suffix.lower()
    return ending in ("", ".txt", *_MARKDOWN) or holds_rows(file)


def is_text(word: str) -> bool:
    """Return True if a word names standard input, a file of texts, or a folder with such files.

    A name with a known ending counts also if there is no such file. A folder with JSON files may be a checkpoint.
    """
    path = Path(word)
    if path.is_dir():
        return not visible_files(path, "*.json") and any(
            file.suffix and is_text(str(file)) for file in visible_files(path, "*")
        )
    return word == _STANDARD_INPUT or (
        _has_known_ending(word) and (path.is_file() or bool(path.suffix))
    )


def input_jobs(files: Iterable[str]) -> Iterator[InputJob]:
    """Yield the texts of files from `list_files`, in their order: one per file, or one per row.

    Raises:
        DataError: a file of rows cannot be read. Errors of single texts are raised by the jobs.
    """
    for file in files:
        if not holds_rows(file):
            yield InputJob(file, partial(_file_input, file))
            continue
        if note := describe_file(Path(file), _ROW_FIELDS):
            _log.info(f"{file}: {note}")
        for row in read_file(Path(file)):
            yield InputJob(f"{file}:{row.line}", partial(_row_input, file, row))


def merge_inputs(inputs: Sequence[Input]) -> Input:
    """Return one input with the documents of all.

    Raises:
        UsageError: the inputs have different queries.
    """
    examples = [item.example for item in inputs]
    titles = {example.title for example in examples if example.title}
    queries = {example.query for example in examples if example.query}
    if len(queries) > 1:
        raise UsageError(
            f"--together makes one text of all, but they have {len(queries)} different queries; use one"
        )
    title = titles.pop() if len(titles) == 1 else None
    query = queries.pop() if queries else None
    documents = tuple(chain.from_iterable(example.documents for example in examples))
    identity = f"{examples[0].id} + {len(examples) - 1} more"
    example = Example(identity, title, query, documents, ((),))
    return Input(example.id, example, sum(item.words_left_out for item in inputs))


def _file_input(file: str) -> Input:
    ending = unpacked_path(Path(file)).suffix.lower()
    read = _markdown_input if ending in _MARKDOWN else plain_input
    return read(_text_in(file), file)


def plain_input(text: str, name: str) -> Input:
    """Return a text as one document; blank lines separate its paragraphs.

    Raises:
        DataError: the text has no words, or cannot be encoded.
    """
    document = text_document(text, _display_name(name))
    return check_input(Input(_display_name(name), Example(name, None, None, (document,), ((),))))


def _markdown_input(text: str, file: str) -> Input:
    """Return Markdown as one document; its only first-level heading, if it has just one, is the title."""
    try:
        reading = MarkdownReader(text)
    except RecursionError as error:
        raise DataError(
            "its quotes or brackets are nested too deep: correct it, or rename it to .txt", file
        ) from error
    title = reading.titles[0] if len(reading.titles) == 1 else None
    example = Example(file, title, None, (Document(file, tuple(reading.sections)),), ((),))
    return check_input(Input(file, example, reading.words_left_out))


def _row_input(file: str, row: FileRow) -> Input:
    with bad_rows_at(row.path, row.line):
        example = jsonl.jsonl_example(rename_keys(row.load(), _ROW_FIELDS), with_summary=False)
    return check_input(Input(f"{file}: {example.id}", example), file, row.line)


def check_input(item: Input, file: str | None = None, line: int | None = None) -> Input:
    """Return the item; messages name `file` and `line`.

    Raises:
        DataError: it has no text, or cannot be encoded.
    """
    place = _display_name(file) if file else item.name
    if not item.example.source_words():
        note = ""
        if item.words_left_out:
            note = f" ({format_count(item.words_left_out, 'word')} of code or HTML left out)"
        raise DataError(f"there is no text to summarize in it{note}", place, line)
    with bad_rows_at(place, line):
        refuse_half_characters([item.example.to_dict()])
    return item


def _text_in(file: str) -> str:
    """Return a file's text; raise DataError if it is missing, empty, or not text."""
    from_input = file == _STANDARD_INPUT
    try:
        text = (
            decoded(sys.stdin.buffer.read(), "the text")
            if from_input
            else read_text_file(Path(file))
        )
    except BadRow as problem:
        raise DataError(f"{problem}, or extract its text first", _display_name(file)) from problem
    if not text.strip():
        raise DataError("the file is empty", _display_name(file))
    return unify_line_breaks(text.removeprefix("\ufeff"))


def _display_name(file: str) -> str:
    return "standard input" if file == _STANDARD_INPUT else file


class MarkdownReader:
    """Reads a document in Markdown (CommonMark, with tables) token by token."""

    def __init__(self, text: str) -> None:
        self.sections: list[Section] = []  # those with text
        self.titles: list[str] = []  # the first-level headings
        front = _FRONT_MATTER.match(text)
        # of code, HTML and front matter, without the rules around it
        self.words_left_out = len(front[0].split()) - 2 if front else 0
        self._name: str | None = None
        self._paragraphs: list[Sentences] = []
        self._sentences: list[str] = []
        # Of the current paragraph, and the texts of those before: rows, items and line breaks are lines.
        self._lines: list[str] = []
        self._texts: list[str] = []
        self._cells: list[str] | None = None  # of the current row of a table
        self._heading = ""  # the tag of the current heading
        self._depth = 0  # of lists and tables
        parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(
            ["table", "strikethrough"]
        )
        for token in parser.parse(text[front.end() if front else 0 :]):
            self._take(token)
        self._end_section()

    def _take(self, token: Token) -> None:
        kind, _, side = token.type.rpartition("_")
        if token.type == "inline":
            self._text(_inline_text(token.children or []).strip())
        elif token.type in _NO_PROSE:
            self.words_left_out += len(token.content.split())
        elif kind == "heading":
            if side == "open":
                self._end_section()
            self._heading = token.tag if side == "open" else ""
        elif kind == "tr":
            if row := ", ".join(filter(None, self._cells or ())):
                self._sentences.append(row)
                self._lines.append(row)
            self._cells = [] if side == "open" else None
        elif kind in _ONE_PARAGRAPH:
            self._depth += 1 if side == "open" else -1
        if side == "close" and not self._depth:
            self._end_paragraph()

    def _text(self, text: str) -> None:
        line = " ".join(text.split())
        if self._heading:
            self._name = line or None
            self.titles += [line] if self._heading == "h1" and line else []
        elif self._cells is not None:
            self._cells.append(line)
        else:
            self._sentences += split_sentences(line)
            self._lines.append(text)

    def _end_paragraph(self) -> None:
        if self._sentences:
            self._paragraphs.append(tuple(self._sentences))
            self._texts.append("\n".join(self._lines))
        self._sentences, self._lines = [], []

    def _end_section(self) -> None:
        self._end_paragraph()
        if self._paragraphs:
            text = "\n\n".join(self._texts)
            self.sections.append(Section.written(self._name, tuple(self._paragraphs), text))
        self._name, self._paragraphs, self._texts = None, [], []


def _inline_text(tokens: Sequence[Token]) -> str:
    """Return the words of inline Markdown, for an image its alternative text."""
    return "".join(
        _inline_text(token.children or []) if token.type == "image" else _word(token)
        for token in tokens
    )


def _word(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak") or token.content.lower().startswith("<br"):
        return "\n"
    return "" if token.type == "html_inline" else token.content
