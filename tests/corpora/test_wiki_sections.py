"""Wikipedia articles: one document with named sections, and the lead as the reference."""

from typing import Any

from longsumbench.core import Document, Example, Section
from longsumbench.corpora.wiki_sections import wiki_sections_example


def article(**changes: Any) -> dict[str, Any]:
    """An article of two sections, the first of two paragraphs."""
    return {
        "id": "7",
        "title": "Sheep",
        "lead": ["Sheep are kept. They eat.", "They sleep."],
        "sections": [
            {"title": "History", "paragraphs": ["They were wild. Then kept.", "Then counted."]},
            {"title": "Food", "paragraphs": ["Grass."]},
        ],
        **changes,
    }


def test_headings_paragraphs_and_lead_are_kept() -> None:
    """Title, headings and paragraphs are kept, and all paragraphs of the lead are one reference."""
    sections = (
        Section("History", (("They were wild.", "Then kept."), ("Then counted.",))),
        Section("Food", (("Grass.",),)),
    )
    document = Document("https://en.wikipedia.org/?curid=7", sections)
    reference = ("Sheep are kept.", "They eat.", "They sleep.")
    assert wiki_sections_example(article()) == Example(
        "7", "Sheep", None, (document,), (reference,)
    )


def test_empty_sections_and_paragraphs_are_left_out() -> None:
    """A section without text and an empty paragraph are left out; a section may have no heading."""
    sections = [{"title": "Empty", "paragraphs": [" "]}, {"paragraphs": ["", "Grass."]}]
    assert wiki_sections_example(article(sections=sections)).documents[0].sections == (
        Section(None, (("Grass.",),)),
    )
