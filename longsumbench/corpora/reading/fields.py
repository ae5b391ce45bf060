"""What a dataset says of itself, and how its rows are checked while they become Examples."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from longsumbench.api.corpus import Row
from longsumbench.api.documents import Document, Section, Sentences
from longsumbench.errors import DataError
from longsumbench.sentences import split_sentences, split_summary

Paragraphs = tuple[Sentences, ...]

LEAVE_OUT = "dataset.strict=false leaves such out and counts them"  # behind what is wrong with a row

_LONGEST_DETAIL = 300  # characters
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


class BadRow(DataError):
    """A row that cannot be used; whoever reads the rows knows the file and the line.

    Args:
        reason: the same words for the same problem, so that skipped rows can be counted by it.
        detail: what is particular to this row.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        detail = " ".join(detail.split())  # an id, say, can hold line breaks, or be a whole text
        detail = detail if len(detail) <= _LONGEST_DETAIL else f"{detail[:_LONGEST_DETAIL]} …"
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


def text_in(row: Row, field: str, required: bool = True) -> str | None:
    """Return a field that holds text; None when it is absent and may be.

    Raises:
        BadRow: it is missing though required, or not text.
    """
    value = row.get(field)
    if value is None:
        if required:
            raise BadRow(f"the field '{field}' is missing")
        return None
    if not isinstance(value, str):
        raise BadRow(f"the field '{field}' must be text, not {json_type(value)}")
    return value


def words_in(row: Row, field: str) -> str:
    """Return a field that holds text with words in it, without the white space around it.

    Raises:
        BadRow: it is missing, empty, or not text.
    """
    text = (text_in(row, field) or "").strip()
    if not text:
        raise BadRow(f"the field '{field}' is empty")
    return text


def optional_in(row: Row, field: str) -> str | None:
    """Return a field that may say something, as it is given; None where it is missing or blank.

    Raises:
        BadRow: it is not text.
    """
    text = text_in(row, field, required=False)
    return text if text and text.strip() else None


def id_in(row: Row, field: str) -> str:
    """Return the row's id; a number becomes its digits.

    Raises:
        BadRow: it is missing, empty, or neither text nor a whole number.
    """
    value = row.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return words_in(row, field)


def sentences_in(value: Any, field: str) -> Sentences:
    """Return sentences from a list of them as given, or from running text by splitting it.

    Raises:
        BadRow: it is neither.
    """
    if isinstance(value, str):
        return split_sentences(value)
    if not isinstance(value, Sequence) or not all(isinstance(sentence, str) for sentence in value):
        raise BadRow(f"the field '{field}' must be a list of sentences or text, not {json_type(value)}")
    stripped = (" ".join(sentence.split()) for sentence in value)
    return tuple(sentence for sentence in stripped if sentence)


def paragraphs_in(text: str) -> Paragraphs:
    """Return the paragraphs of running text, which blank lines separate; empty ones are left out."""
    split = (split_sentences(paragraph) for paragraph in _BLANK_LINES.split(text))
    return tuple(paragraph for paragraph in split if paragraph)


def references_in(texts: Iterable[str]) -> tuple[Sentences, ...]:
    """Return the references that have words; line breaks end sentences. Where none has, there is one empty one."""
    return tuple(filter(None, map(split_summary, texts))) or ((),)


def texts_in(row: Row, field: str) -> list[str]:
    """Return a field that holds a list of text.

    Raises:
        BadRow: it is missing or something else.
    """
    texts = list_in(row.get(field), field)
    if odd := [text for text in texts if not isinstance(text, str)]:
        raise BadRow(f"the field '{field}' must be a list of text, not a list with {_kind(odd[0])} in it")
    return texts


def list_in(value: Any, field: str, required: bool = True) -> list[Any]:
    """Return a field's value that is a list; an empty one when it is absent and may be.

    Raises:
        BadRow: it is missing though required, or something else.
    """
    if value is None and not required:
        return []
    if value is None:
        raise BadRow(f"the field '{field}' is missing")
    if not isinstance(value, list):
        raise BadRow(f"the field '{field}' must be a list, not {json_type(value)}")
    return value


def object_in(value: Any, field: str) -> Row:
    """Return an item of a field that is a list of objects.

    Raises:
        BadRow: it is something else.
    """
    if not isinstance(value, dict):
        raise BadRow(f"the field '{field}' must be a list of objects, not a list with {_kind(value)} in it")
    return value


def plain_document(paragraphs: Paragraphs, source: str | None = None) -> Document:
    """Return a document without headings; empty paragraphs are left out."""
    return Document(source, (Section(None, tuple(paragraph for paragraph in paragraphs if paragraph)),))


def json_type(value: Any) -> str:
    """Return what JSON calls the value, for messages; of a list also what stands in it beside text."""
    odd = [item for item in value if not isinstance(item, str)] if isinstance(value, (list, tuple)) else []
    return f"a list with {_kind(odd[0])} in it" if odd else _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    names = {bool: "true/false", int: "a number", float: "a number", str: "text", type(None): "null"}
    return names.get(type(value), type(value).__name__)
