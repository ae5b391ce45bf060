"""Proposals and SumPubMed: the release's layout under names of their own."""

import pytest
from support.paths import SHARED as SHARED_ROOT
from support.requirements import SHARED_FOLDER

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section, registry
from longsumbench.corpora.reading.load import load_texts

SHARED = SHARED_ROOT / "data"
ROW = {
    "article_id": "PEP-8",
    "title": "Style",
    "abstract_text": ["<S> How to write. </S>"],
    "article_text": ["Indent.", "Wrap."],
    "section_names": ["Layout", "Lines"],
    "sections": [["Indent."], ["Wrap."]],
    "labels": None,
    "license": "CC0",
    "url": "https://peps.python.org/pep-0008/",
}


@pytest.mark.parametrize(("name", "source"), [("proposals", ROW["url"]), ("sumpubmed", None)])
def test_the_release_layout(name: str, source: str | None) -> None:
    """Sections keep their names, the abstract is the reference, and a proposal says where it is from."""
    sections = (Section("Layout", (("Indent.",),)), Section("Lines", (("Wrap.",),)))
    corpus = registry.corpora.load(name)
    expected = Example("PEP-8", "Style", None, (Document(source, sections),), (("How to write.",),))
    assert corpus.from_file_row(ROW) == expected


@pytest.mark.skipif(not (SHARED / "sumpubmed").is_dir(), reason=SHARED_FOLDER)
@pytest.mark.slow
def test_sumpubmed_reads_as_pubmed_does(stages: ArtifactCache) -> None:
    """Its own name changes no text: both names give the same fingerprint."""
    path = str(SHARED / "sumpubmed" / "test.jsonl.gz")
    names = ("sumpubmed", "pubmed")
    own, other = (load_texts(DatasetSettings(name=name, path=path, limit=20), stages) for name in names)
    assert own.fingerprint == other.fingerprint


@pytest.mark.skipif(not (SHARED / "proposals").is_dir(), reason=SHARED_FOLDER)
@pytest.mark.slow
def test_the_real_proposals(stages: ArtifactCache) -> None:
    """All 3,294 are read; each has a title, an address and at least two sections with names."""
    texts = load_texts(DatasetSettings(name="proposals", path=str(SHARED / "proposals")), stages)
    assert texts.facts["examples"] == {"train": 2656, "validation": 269, "test": 369}
    for example in texts.splits["test"]:
        (document,) = example.documents
        assert example.title
        assert str(document.source).startswith("https://")
        assert len(document.sections) >= 2
        assert all(section.name for section in document.sections)
