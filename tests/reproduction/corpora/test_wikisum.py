"""WikiSum as JSON lines: pages stay pages, and clones of the summary are taken out."""

from pathlib import Path
from typing import Any

import pytest
from support.json_files import write_rows
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Document, Example, Section
from longsumbench.corpora.loading.load import Texts
from longsumbench.errors import UsageError
from longsumbench_reproduction.corpora.clones import find_clones
from longsumbench_reproduction.corpora.wikisum import wikisum_example

SUMMARY = "Sheep are kept for wool and they sleep."  # 7 bigrams


def paragraph(text: str, source: str | None = "a") -> dict[str, Any]:
    return {"text": text, "source": source}


def article(*paragraphs: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": "7",
        "title": "Sheep",
        "paragraphs": list(paragraphs),
        "summary": SUMMARY,
        **changes,
    }


def documents(*paragraphs: Any, **changes: Any) -> str:
    """The documents that an article becomes: the source of each, and its paragraphs."""
    example = wikisum_example(article(*paragraphs, **changes)).example
    assert all(len(document.sections) == 1 for document in example.documents)
    lines = []
    for document in example.documents:
        texts = map(" ".join, document.sections[0].paragraphs)
        lines.append(f"{document.source}: {' | '.join(texts)}")
    return "; ".join(lines)


def read(path: Path, cache: ArtifactCache, rows: list[dict[str, Any]], **settings: Any) -> Texts:
    return read_texts("wikisum", write_rows(path, rows), cache, **settings)


def test_paragraphs_sources_and_reference_are_kept() -> None:
    """Title, paragraphs with their sentences, sources and the reference are kept."""
    sections = (Section(None, (("Wild once.", "Then kept."), ("They eat.",))),)
    assert wikisum_example(article(paragraph("Wild once. Then kept."), paragraph("They eat."))) == (
        Example("7", "Sheep", None, (Document("a", sections),), ((SUMMARY,),)),
        {"clone paragraphs": 0},
    )


def test_the_lead_is_the_summary() -> None:
    """A lead's paragraphs are one reference, of their sentences."""
    row = article("x y", summary=None, lead=["Sheep are kept. They eat.", " ", "They sleep."])
    assert wikisum_example(row).example.references == (
        ("Sheep are kept.", "They eat.", "They sleep."),
    )


def test_a_document_is_a_stretch_of_one_page() -> None:
    """It ends where the source changes; a page that comes again is another; without a source each is alone."""
    given = (
        paragraph("a1"),
        paragraph("a2"),
        paragraph("b1", "b"),
        paragraph("a3"),
        paragraph("c1", None),
        "c2",
    )
    assert documents(*given) == "a: a1 | a2; b: b1; a: a3; None: c1; None: c2"


def test_neighbours_were_neighbours_in_the_page() -> None:
    """Where a clone is taken out of a page, what stood before and behind it are two documents; a blank one is none."""
    given = (paragraph("a1"), paragraph(SUMMARY), paragraph("a2"), paragraph(" "), paragraph("a3"))
    assert documents(*given) == "a: a1; a: a2 | a3"
    assert wikisum_example(article(*given)).left_out == {"clone paragraphs": 1}


def test_clones_by_hand() -> None:
    """More than 80 % of the summary's bigrams, of 5 here, make a clone; a repeated one counts as often as in both."""
    summary = ("A b, c.", "D e f.")
    cases = {
        "x a-b c d e y": False,
        "a b c d e f": True,
        "A B C D. E F": True,
        "e f a b c d": False,
        "b a": False,
    }
    assert find_clones(summary, [(text,) for text in cases]) == list(cases.values())
    repeated = ("a b a b a b",)  # a b three times, b a twice
    assert find_clones(repeated, [("a b a",), ("a b a b a",), ("b a b a b a b",)]) == [
        False,
        False,
        True,
    ]
    assert find_clones(("word",), [("word",), ("word word",)]) == [False, False]


def test_the_record_counts_clones(tmp_path: Path, cache: ArtifactCache) -> None:
    """They are counted by split, of the examples that are used; the dataset's examples are several documents."""
    rows = [article("x y", SUMMARY, SUMMARY, id=number) for number in range(3)]
    texts = read(tmp_path / "test.jsonl", cache, rows, limit=2)
    assert texts.metadata["left_out"] == {"test": {"clone paragraphs": 4}}
    assert texts.metadata["skipped"] == {}
    assert texts.multi_document


def test_json_lines_take_no_tokenizer(tmp_path: Path, cache: ArtifactCache) -> None:
    """The setting is refused where there are no ranked files."""
    with pytest.raises(UsageError, match=r"dataset\.tokenizer is for the ranked files"):
        read(tmp_path / "test.jsonl", cache, [article("x y")], tokenizer="x.model")
