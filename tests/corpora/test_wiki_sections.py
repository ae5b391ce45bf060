"""Wikipedia articles: one document with named sections, and the lead as the reference."""

import gzip
import json
from typing import Any

import pytest
from support.paths import SHARED as SHARED_ROOT
from support.requirements import SHARED_FOLDER

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.corpora.reading.load import load_texts
from longsumbench.corpora.wiki_sections import wiki_sections_example

SHARED = SHARED_ROOT / "data" / "wiki_sections"


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


def test_an_article() -> None:
    """Title, headings and paragraphs are kept, and all paragraphs of the lead are one reference."""
    sections = (
        Section("History", (("They were wild.", "Then kept."), ("Then counted.",))),
        Section("Food", (("Grass.",),)),
    )
    document = Document("https://en.wikipedia.org/?curid=7", sections)
    reference = ("Sheep are kept.", "They eat.", "They sleep.")
    assert wiki_sections_example(article()) == Example("7", "Sheep", None, (document,), (reference,))


def test_empty_parts() -> None:
    """A section without text and an empty paragraph are left out; a section may have no heading."""
    sections = [{"title": "Empty", "paragraphs": [" "]}, {"paragraphs": ["", "Grass."]}]
    assert wiki_sections_example(article(sections=sections)).documents[0].sections == (Section(None, (("Grass.",),)),)


def read_and_compare(stages: ArtifactCache, limit: int | None) -> dict[str, int]:
    """Read the real articles, compare the validation split with its file, and return the counts."""
    texts = load_texts(DatasetSettings(name="wiki_sections", path=str(SHARED), limit=limit), stages)
    assert not texts.multi_document
    with gzip.open(SHARED / "validation.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][:limit]
    for example, row in zip(texts.splits["validation"], rows, strict=True):
        assert (example.id, example.title) == (row["id"], row["title"])
        assert " ".join(example.references[0]).split() == " ".join(row["lead"]).split()
        sections = example.documents[0].sections
        for section, given in zip(sections, row["sections"], strict=True):
            assert section.name == given["title"]
            assert [" ".join(kept) for kept in section.paragraphs] == [
                " ".join(paragraph.split()) for paragraph in given["paragraphs"]
            ]
    counts: dict[str, int] = texts.facts["examples"]
    return counts


@pytest.mark.skipif(not SHARED.is_dir(), reason=SHARED_FOLDER)
def test_the_real_articles(stages: ArtifactCache) -> None:
    """Headings, paragraphs and leads of the real articles are kept whole."""
    assert read_and_compare(stages, limit=200) == {"train": 200, "validation": 200, "test": 200}
