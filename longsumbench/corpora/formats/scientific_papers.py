"""The layout of the original arXiv and PubMed release (Cohan et al. 2018), which other datasets of papers share.

JSON lines: article_id, article_text [sentences], abstract_text ["<S> sentence </S>"], section_names, sections
[[sentences]], and in some datasets a title. Sentences stay as released; a section is one paragraph.
"""

from itertools import chain, zip_longest
from typing import Any

from longsumbench.core import Document, Example, Row, Section, Sentences
from longsumbench.corpora.loading import fields


def read_release_paper(row: Row) -> Example:
    """Turn one paper of the release into an Example.

    If `sections` is missing or empty, `article_text` becomes the document, as one section without a name. The lists of
    sections and names can differ in length: sections beyond the last name have none, and extra names are dropped.
    """
    if row.get("abstract_text") is None:
        raise fields.BadRow("the field 'abstract_text' is missing")
    identity, title = fields.id_in(row, "article_id"), fields.optional_in(row, "title")
    return _paper(identity, title, _article(row), _abstract(row["abstract_text"]))


def read_hub_paper(row: Row) -> Example:
    """Turn one row of the hub's copies into an Example: `article` and `abstract`, a paragraph on each line."""
    article = fields.plain_document(fields.line_paragraphs(fields.text_in(row, "article")))
    abstract = chain.from_iterable(fields.line_paragraphs(fields.text_in(row, "abstract")))
    return _paper(fields.id_in(row, "id"), None, article, tuple(abstract))


def _paper(identity: str, title: str | None, article: Document, abstract: Sentences) -> Example:
    if not any(article.sentences()):
        raise fields.BadRow("the article is empty", f"'{identity}'; {fields.LEAVE_OUT}")
    if not abstract:
        raise fields.BadRow("the abstract is empty", f"'{identity}'; {fields.LEAVE_OUT}")
    return Example(identity, title, None, (article,), (abstract,))


def _abstract(value: Any) -> Sentences:
    if isinstance(value, str) and "<S>" in value:
        value = value.split("<S>")
    sentences = fields.sentences_in(value, "abstract_text")
    untagged = (sentence.removeprefix("<S>").removesuffix("</S>").strip() for sentence in sentences)
    return tuple(filter(None, untagged))


def _article(row: Row) -> Document:
    listed = fields.list_in(row, "sections", required=False)
    names = fields.list_in(row, "section_names", required=False)
    sections = []
    for section, name in zip_longest(listed, names[: len(listed)]):
        if text := fields.sentences_in(section, "sections"):
            sections.append(Section(_name(name), (text,)))
    if sections:
        return Document(None, tuple(sections))
    if row.get("article_text") is None:
        raise fields.BadRow(
            "the fields 'sections' and 'article_text' are missing or empty; one of them must hold the article"
        )
    return fields.plain_document((fields.sentences_in(row["article_text"], "article_text"),))


def _name(name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise fields.BadRow(
            f"the field 'section_names' must be a list of text, not a list with {fields.json_type(name)} in it"
        )
    return (name or "").strip() or None
