"""The user's own texts as JSON lines, one object per example.

    id, title?, query?,
    document (text) | documents [{source?, sections [{name?, paragraphs [text] | text}]}],
    summary (text) | references [text | [sentence]]

Blank lines separate the paragraphs of plain text. Other fields are ignored.
"""

from typing import Any

from longsumbench.api import Corpus, Document, Example, Row, Section, Sentences
from longsumbench.corpora.reading.fields import (
    BadRow,
    id_in,
    list_in,
    object_in,
    paragraphs_in,
    plain_document,
    sentences_in,
    text_in,
)
from longsumbench.sentences import split_sentences


def jsonl_example(row: Row) -> Example:
    """Turn one JSON object of the schema above into an Example.

    Raises:
        BadRow: a field is missing, given in both forms, or has the wrong type.
    """
    title, query = text_in(row, "title", required=False), text_in(row, "query", required=False)
    return Example(id_in(row, "id"), title or None, query or None, _documents(row), _references(row))


def _documents(row: Row) -> tuple[Document, ...]:
    if _given_field(row, "document", "documents") == "document":
        return (plain_document(paragraphs_in(text_in(row, "document") or "")),)
    documents = tuple(_document(item) for item in list_in(row["documents"], "documents"))
    return tuple(document for document in documents if document.sections)


def _document(item: Any) -> Document:
    fields = object_in(item, "documents")
    sections = tuple(_section(section) for section in list_in(fields.get("sections"), "sections"))
    return Document(text_in(fields, "source", required=False) or None, tuple(s for s in sections if s.paragraphs))


def _section(item: Any) -> Section:
    fields = object_in(item, "sections")
    name = text_in(fields, "name", required=False) or None
    if _given_field(fields, "paragraphs", "text") == "text":
        return Section(name, paragraphs_in(text_in(fields, "text") or ""))
    paragraphs = (sentences_in(value, "paragraphs") for value in list_in(fields["paragraphs"], "paragraphs"))
    return Section(name, tuple(paragraph for paragraph in paragraphs if paragraph))


def _references(row: Row) -> tuple[Sentences, ...]:
    if _given_field(row, "summary", "references") == "summary":
        return (split_sentences(text_in(row, "summary") or ""),)
    listed = tuple(sentences_in(value, "references") for value in list_in(row["references"], "references"))
    return tuple(reference for reference in listed if reference) or ((),)


def _given_field(fields: Row, one: str, other: str) -> str:
    present = [name for name in (one, other) if fields.get(name) is not None]
    if len(present) != 1:
        raise BadRow(f"the fields '{one}' and '{other}' are {'both given' if present else 'missing'}; give one of them")
    return present[0]


CORPUS = Corpus(
    name="jsonl",
    title="Your own texts as JSON lines: dataset.path=FOLDER with train, validation and test .jsonl, "
    "or one FILE (then test only).",
    licence="yours",
    homepage="",
    version=2,
    from_file_row=jsonl_example,
)
