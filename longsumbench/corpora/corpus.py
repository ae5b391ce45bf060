"""What a dataset says of itself, and how its rows are checked while they become Examples."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longsumbench.configuration import DatasetSettings
from longsumbench.corpora.source import Read, Source
from longsumbench.documents import Document, Example, Section, Sentences
from longsumbench.errors import DataError
from longsumbench.sentences import split_sentences, split_summary

Row = Mapping[str, Any]
FromRow = Callable[[Row], Read]
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


@dataclass(frozen=True)
class Hub:
    """A dataset on the Hugging Face hub.

    Attributes:
        repository: "owner/name".
        config: the configuration to load, where it has several.
        revision: a commit; None takes the newest one and records which that was.
        splits: the hub's split names → ours, where they are not `train`, `validation`, `test` or an alias.
    """

    repository: str
    config: str | None = None
    revision: str | None = None
    splits: Mapping[str, str] | None = None


@dataclass(frozen=True)
class BuiltIn:
    """A dataset that is made on the spot, from what every machine with the suite has.

    Attributes:
        generate: yields (split name, example).
        decided_by: JSON values that decide what is generated (versions); stage key and record hold them.
        settings: which of `configuration.GENERATED` it goes by ("document_length"); the others are refused.
    """

    generate: Callable[[DatasetSettings], Iterator[tuple[str, Example]]]
    decided_by: Callable[[DatasetSettings], dict[str, Any]]
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """A dataset: where it comes from, and how a row becomes an Example.

    Attributes:
        name: as in `dataset.name`.
        title: one line for `longsumbench list datasets`.
        licence: what its authors allow, in a few words.
        homepage: where its authors describe it.
        version: changes whenever the same rows would become other Examples.
        multi_document: whether an example is several documents by design.
        hub: where to download it; None when it is not there.
        from_hub_row: a row of the hub's tables → Example, or several; a row without an `id` is given one ("test-12").
        from_file_row: a JSON object of the files under `dataset.path=` → Example, or several.
        release: reads the original release under `dataset.path=` where that is no JSON lines; gives None for a path
            that does not hold it, which is then read as JSON lines.
        tokenized: reads the original release where that holds numbers instead of text, given `dataset.path=` and
            `dataset.tokenizer=`; gives None for a path that does not hold it. None: `dataset.tokenizer` means nothing.
        built_in: how to make it without any file.
        metrics: the names of the metrics that its runs are scored by beside ROUGE.
    """

    name: str
    title: str
    licence: str
    homepage: str
    version: int
    multi_document: bool = False
    hub: Hub | None = None
    from_hub_row: FromRow | None = None
    from_file_row: FromRow | None = None
    release: Callable[[Path], Source | None] | None = None
    tokenized: Callable[[Path, str | None], Source | None] | None = None
    built_in: BuiltIn | None = None
    metrics: tuple[str, ...] = ()


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


def said_in(row: Row, field: str) -> str | None:
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
