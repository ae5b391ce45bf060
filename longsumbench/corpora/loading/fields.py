"""Checks of a row's fields while the row becomes an Example.

They raise BadRow, and so do the readers of rows: a field is missing, is empty, or has the wrong type. A field with null
is an empty text or list, as an empty cell of a table is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from longsumbench.core import Document, Row, Section, Sentences
from longsumbench.errors import DataError
from longsumbench.formatting import escape_line
from longsumbench.sentences import split_sentences, split_summary, unify_line_breaks

Paragraphs = tuple[Sentences, ...]

# follows the problem in a message
LEAVE_OUT = "dataset.strict=false leaves such rows out and counts them"

# The first that fits: true and false are numbers, too.
_JSON_NAMES: tuple[tuple[Any, str], ...] = (
    (bool, "true/false"),
    ((int, float), "a number"),
    (str, "text"),
    (type(None), "null"),
    (Mapping, "an object"),
    ((list, tuple), "a list"),
)
_LONGEST_DETAIL = 300  # characters
_LINE_BREAK = re.compile("\n")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


class BadRow(DataError):
    """A row that cannot be used. The reader of the rows adds the file and the line.

    A row of several lines sets `line` to the one with the problem.

    Args:
        reason: the problem; equal problems have equal reasons, so skipped rows are counted by it.
        detail: the particulars of this row.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        # an id, say, can hold line breaks, or be a whole text
        detail = " ".join(detail.split())
        detail = detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]} …"
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class NoExample(BadRow):
    """A file without an example in a folder of others. It is counted by its kind, the reason, and is no error."""


@contextmanager
def bad_rows_at(path: Path | str, line: int | None = None) -> Iterator[None]:
    """Raise a BadRow as a DataError that names its file and line."""
    try:
        yield
    except BadRow as problem:
        raise DataError(f"{problem}", path, line) from problem


def refuse_row(reason: str, detail: str = "", error: type[BadRow] = BadRow) -> NoReturn:
    """Raise BadRow: the reader of a row that is known to be unusable."""
    raise error(reason, detail)


def describe_names(names: Iterable[str]) -> str:
    """Format the names of fields for a message."""
    return ", ".join(map(repr, names))


def advise_field(row: Row, field: str) -> str:
    """Say which fields a row has, and how one of them is chosen."""
    return f"the row has {describe_names(row)}; rename one, or for a dataset set dataset.columns.{field}"


def any_text_in(row: Row, field: str) -> str | None:
    """Return a field that holds text, as given; None if it is absent."""
    value = row.get(field)
    if value is not None and not isinstance(value, str):
        raise BadRow(f"the field '{field}' must be text, not {json_type(value)}")
    return value


def text_in(row: Row, field: str) -> str:
    """Return a required field that holds text, which may be empty."""
    text = any_text_in(row, field)
    if field not in row:
        raise BadRow(f"the field '{field}' is missing", advise_field(row, field))
    return text or ""


def words_in(row: Row, field: str) -> str:
    """Return a field that holds text with words, without surrounding white space."""
    text = text_in(row, field).strip()
    if not text:
        raise BadRow(f"the field '{field}' is empty")
    return text


def optional_in(row: Row, field: str) -> str | None:
    """Return an optional text field as given; None if it is missing or blank."""
    text = any_text_in(row, field)
    return text if text and text.strip() else None


def id_in(row: Row, field: str) -> str:
    """Return the row's id; a number becomes its digits. Tables of scores need ids without control characters."""
    value = row.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    name = words_in(row, field)
    check_id(name)
    return name


def check_id(name: str) -> None:
    """Raise BadRow if an id has a control character or half a character."""
    if name != escape_line(name):
        raise BadRow(
            "an id has a control character or half a character", f"'{escape_line(name)}'; remove it"
        )


def sentences_in(value: Any, field: str) -> Sentences:
    """Return a list of sentences as given, or split running text into sentences."""
    if isinstance(value, str):
        return split_sentences(value)
    if not isinstance(value, Sequence) or not all(isinstance(sentence, str) for sentence in value):
        problem = f"must be a list of sentences or text, not {json_type(value)}"
        raise BadRow(f"the field '{field}' {problem}")
    return tuple(filter(None, (" ".join(sentence.split()) for sentence in value)))


def paragraphs_in(text: str, separator: re.Pattern[str] = _BLANK_LINES) -> Paragraphs:
    """Split running text at blank lines, or at another separator, into paragraphs, without empty ones."""
    return tuple(filter(None, map(split_sentences, separator.split(unify_line_breaks(text)))))


def listed_paragraphs(row: Row, field: str, required: bool = True) -> Paragraphs:
    """Return a field that holds a list of paragraphs, each text or a list of sentences, without empty ones."""
    paragraphs = (sentences_in(text, field) for text in list_in(row, field, required))
    return tuple(filter(None, paragraphs))


def section_in(item: Row, name: str) -> Section:
    """Return an object as a section: its text, or its list of paragraphs, under the optional field `name`."""
    heading = optional_in(item, name)
    if given_field(item, "paragraphs", "text") == "text":
        return text_section(text_in(item, "text"), heading)
    paragraphs = listed_paragraphs(item, "paragraphs")
    texts = [text if isinstance(text, str) else " ".join(text) for text in item["paragraphs"] or ()]
    return Section.written(heading, paragraphs, "\n\n".join(filter(str.strip, texts)))


def text_section(text: str, name: str | None = None) -> Section:
    """Return running text as a section; blank lines separate its paragraphs."""
    return Section.written(name, paragraphs_in(text), text)


def line_paragraphs(text: str) -> Paragraphs:
    """Split running text at line breaks into paragraphs, without empty ones."""
    return paragraphs_in(text, _LINE_BREAK)


def references_in(texts: Iterable[str]) -> tuple[Sentences, ...]:
    """Return the references that have words, or one empty one. Line breaks end sentences."""
    return tuple(filter(None, map(split_summary, texts))) or ((),)


def texts_in(row: Row, field: str) -> list[str]:
    """Return a field that holds a list of text."""
    return _items_in(row, field, str, "text", required=True)


def list_in(row: Row, field: str, required: bool = True) -> list[Any]:
    """Return a field that holds a list; an empty list if it is optional and absent."""
    value = row.get(field)
    if required and field not in row:
        raise BadRow(f"the field '{field}' is missing")
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRow(f"the field '{field}' must be a list, not {json_type(value)}")
    return value


def objects_in(row: Row, field: str, required: bool = True) -> list[Row]:
    """Return a field that holds a list of objects; an empty list if it is optional and absent."""
    return _items_in(row, field, dict, "objects", required)


def object_in(row: Row, field: str) -> Row:
    """Return a required field that holds an object."""
    value = row.get(field)
    if not isinstance(value, dict):
        raise BadRow(f"the field '{field}' must be an object, not {json_type(value)}")
    return value


def _items_in(row: Row, field: str, kind: type, name: str, required: bool) -> list[Any]:
    items = list_in(row, field, required)
    for item in items:
        if not isinstance(item, kind):
            problem = f"must be a list of {name}, not a list with {_json_kind(item)} in it"
            raise BadRow(f"the field '{field}' {problem}")
    return items


def given_field(row: Row, first: str, second: str) -> str:
    """Return the name of the field that is given, of two that exclude each other; null is given if it is alone."""
    present = [name for name in (first, second) if name in row]
    names = [name for name in present if row[name] is not None] or present[:1]
    if len(names) != 1:
        problem = "both given" if names else "missing"
        raise BadRow(
            f"the fields '{first}' and '{second}' are {problem}; give one of them",
            advise_field(row, first),
        )
    return names[0]


def text_document(text: str, source: str | None = None) -> Document:
    """Return running text as a document without headings."""
    return Document(source, (text_section(text),))


def plain_document(paragraphs: Paragraphs, source: str | None = None) -> Document:
    """Return a document without headings and empty paragraphs."""
    return Document(source, (Section(None, tuple(filter(None, paragraphs))),))


def json_type(value: Any) -> str:
    """Return JSON's name of the value's type, for messages; for a list also the first item that is not text."""
    for item in value if isinstance(value, (list, tuple)) else ():
        if not isinstance(item, str):
            return f"a list with {_json_kind(item)} in it"
    return _json_kind(value)


def _json_kind(value: Any) -> str:
    names = (name for json_kind, name in _JSON_NAMES if isinstance(value, json_kind))
    return next(names, type(value).__name__)
