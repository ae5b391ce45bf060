"""Every real corpus at hand is read, with the structure that its authors gave it."""

import pytest
import read_corpora
from support.paths import ROOT
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache

SHARED = ROOT.parent / "shared" / "data"
LIMIT = 25  # examples of a split
REFERENCES = {"squality": {4}, "fewsum": {3}, "opinosis": {3, 4, 5, 10}}  # where it is not one
DOCUMENTS = {
    "fewsum": range(8, 9),
    "peer_reviews": range(2, 9),
    "openstax": range(1, 25),
    "multinews_sample": range(5, 6),
}
NAMED = "elife proposals sumpubmed wiki_sections openstax openstax_modules qmsum peer_reviews"
QUERIED = {"qmsum", "squality", "newts"}


DATASETS = dict(read_corpora.datasets_in(SHARED)) if SHARED.is_dir() else {}


@pytest.mark.parametrize("name", DATASETS)
def test_a_real_corpus_keeps_its_structure(name: str, cache: ArtifactCache) -> None:
    """Documents, section names, queries and references are there as the dataset says, and no paragraph is empty."""
    texts = read_texts(name, DATASETS[name], cache, limit=LIMIT)
    examples = [example for split in texts.splits.values() for example in split]
    assert all(0 < count <= LIMIT for count in texts.metadata["examples"].values())
    assert not texts.metadata["skipped"]
    for example in examples:
        assert len(example.references) in REFERENCES.get(name, {1})
        assert all(example.references)
        assert len(example.documents) in DOCUMENTS.get(name, range(1, 2))
        assert (example.query is not None) == (name in QUERIED)
        sections = [section for document in example.documents for section in document.sections]
        assert all(sentences for section in sections for sentences in section.paragraphs)
        assert (
            any(section.name for section in sections)
            or name not in NAMED.split()
            or len(sections) == 1
        )
