"""The layout of the arXiv/PubMed release, and the rows of its copies on the hub."""

import json
from typing import Any

import pytest
from support.dataset_rows import release_row

from longsumbench.core import Section
from longsumbench.corpora.formats.scientific_papers import read_hub_paper, read_release_paper
from longsumbench.corpora.loading.fields import BadRow

TEXTS = """{"abstract_text": ["<S> we do . </S>", "<S>  </S>", "<S> it works . </S>"],
  "article_text": ["flat text ."], "section_names": ["intro", "end"], "sections": [["a b . c . ", ""], ["d ."]]}"""


def paper(**changes: Any) -> dict[str, Any]:
    """A paper of the release."""
    return {**release_row("1"), **json.loads(TEXTS), **changes}


def sections(**changes: Any) -> tuple[Section, ...]:
    return read_release_paper(paper(**changes)).documents[0].sections


def test_sentences_and_names_stay_as_given() -> None:
    """Sentences are not split again, empty ones and the abstract's tags go, each section is one paragraph."""
    assert sections() == (Section("intro", (("a b . c .",),)), Section("end", (("d .",),)))
    assert read_release_paper(paper()).references == (("we do .", "it works ."),)


def test_lists_of_different_length() -> None:
    """A section beyond the last name has none; a name without a section is dropped; names never move."""
    for names, expected in (
        (["a"], ["a", None]),
        (["a", "b", "c"], ["a", "b"]),
        (None, [None] * 2),
    ):
        assert [section.name for section in sections(section_names=names)] == expected
    assert [section.name for section in sections(sections=[[], ["d ."]])] == ["end"]


@pytest.mark.parametrize("empty", [None, [], [[], [" "]]])
def test_the_flat_text_stands_in(empty: Any) -> None:
    """Without text in sections, article_text is the document."""
    assert sections(sections=empty) == (Section(None, (("flat text .",),)),)


def test_text_is_accepted_for_lists_of_sentences() -> None:
    """Running text where sentences are expected is split; a tagged abstract is split at its tags."""
    assert sections(sections=None, article_text="A b. C d.")[0].paragraphs == (("A b.", "C d."),)
    assert read_release_paper(paper(abstract_text="A b. C d.")).references == (("A b.", "C d."),)
    tagged = "<S> a . b </S> <S> c . </S>"
    assert read_release_paper(paper(abstract_text=tagged)).references == (("a . b", "c ."),)


BAD_PAPERS = """
{"abstract_text": null} → 'abstract_text' is missing
{"section_names": [1]} → 'section_names' must be a list of text
{"abstract_text": ["<S> </S>"]} → the abstract is empty: '1'; dataset.strict=false leaves such rows
{"sections": [], "article_text": null} → one of them must hold the article
"""


@pytest.mark.parametrize("line", BAD_PAPERS.strip().splitlines())
def test_a_bad_paper_says_why(line: str) -> None:
    """A missing field or a wrong type is named, with what was found."""
    changes, expected = line.split(" → ")
    with pytest.raises(BadRow, match=expected):
        read_release_paper(paper(**json.loads(changes)))


def test_rows_of_the_hub() -> None:
    """A line is a paragraph; the abstract's sentences are one reference."""
    example = read_hub_paper(
        {"id": "test-1", "article": "a b . c d .\n\n e f .", "abstract": "we do . \n it works ."}
    )
    assert example.documents[0].sections == (Section(None, (("a b .", "c d ."), ("e f .",))),)
    assert example.references == (("we do .", "it works ."),)
