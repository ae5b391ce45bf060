"""Proposals and SumPubMed: the release's layout under names of their own."""

import pytest

from longsumbench.core import Document, Example, Section, registry

ROW = {
    "article_id": "PEP-8",
    "title": "Style",
    "abstract_text": ["<S> How to write. </S>"],
    "article_text": ["Indent.", "Wrap."],
    "section_names": ["Layout", "Lines"],
    "sections": [["Indent."], ["Wrap."]],
    "labels": None,
    "digest": ["In plain words."],
    "license": "CC0",
    "url": "https://peps.python.org/pep-0008/",
}


@pytest.mark.parametrize(
    ("name", "source"), [("proposals", ROW["url"]), ("sumpubmed", None), ("elife", None)]
)
def test_sections_keep_their_names_and_a_proposal_its_address(
    name: str, source: str | None
) -> None:
    """Sections keep their names, the abstract is the reference, and a proposal says where it is from."""
    sections = (Section("Layout", (("Indent.",),)), Section("Lines", (("Wrap.",),)))
    corpus = registry.corpora.load(name)
    expected = Example("PEP-8", "Style", None, (Document(source, sections),), (("How to write.",),))
    assert corpus.from_file_row(ROW) == expected
