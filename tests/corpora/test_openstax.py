"""OpenStax, as chapters of several documents and as modules."""

from typing import Any

import pytest
from support.paths import SHARED as SHARED_ROOT

from longsumbench.core import Document, Example, Section
from longsumbench.corpora import openstax, openstax_modules
from longsumbench.corpora.openstax import BARE
from longsumbench.corpora.reading.fields import BadRow

SHARED = SHARED_ROOT / "data" / "openstax"


def module(number: int, *paragraphs: str, summary: str = "In short. So.") -> dict[str, Any]:
    return {
        "module_id": f"m{number}",
        "title": f"Part {number}",
        "paragraphs": [*paragraphs],
        "summary": [summary],
    }


def chapter(*modules: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "id": "b/m0",
        "book": "B",
        "chapter": "Voting",
        "license": "free",
        "modules": [*modules],
        **changes,
    }


ROW = chapter(
    module(1, "One. Two.", "# Outer", "# Inner", "Three.", "Four.", summary="First."),
    module(2, "# Last", "Five.", summary="Second."),
)
FIRST = (Section(None, (("One.", "Two."),)), Section("Inner", (("Three.",), ("Four.",))))
SECOND = (Section("Last", (("Five.",),)),)


def test_a_chapter_by_hand() -> None:
    """A module is a document with headings as sections, a bare heading is counted, and the summaries are joined."""
    documents = (Document("Part 1", FIRST), Document("Part 2", SECOND))
    example = Example("b/m0", "Voting", None, documents, (("First.", "Second."),))
    assert openstax.openstax_example(ROW) == (example, {BARE: 1})


def test_its_modules_by_hand() -> None:
    """Module by module the same texts are single documents, each with its own summary."""
    first = Example("b/m0/m1", "Part 1", None, (Document("Voting", FIRST),), (("First.",),))
    second = Example("b/m0/m2", "Part 2", None, (Document("Voting", SECOND),), (("Second.",),))
    assert openstax_modules.openstax_modules_example(ROW) == (
        (first, {BARE: 1}),
        (second, {BARE: 0}),
    )


def test_an_empty_module_is_no_document() -> None:
    """In a chapter it is no document, though its summary is wanted; a chapter of nothing else is an error."""
    read = openstax.openstax_example(chapter(module(1, "# Heading", " "), module(2, "Text.")))
    assert [document.source for document in read.example.documents] == ["Part 2"]
    assert read.example.references == (("In short.", "So.", "In short.", "So."),)
    with pytest.raises(BadRow, match="no module with text"):
        openstax.openstax_example(chapter(module(1)))
