"""eLife articles: the release's layout, and the abstract as the reference."""

import gzip
import json
from typing import Any

import pytest
from support.paths import SHARED as SHARED_ROOT
from support.requirements import SHARED_FOLDER

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Corpus, DatasetSettings, Document, Example, Section, registry
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import UsageError

SHARED = SHARED_ROOT / "data" / "elife"


@pytest.fixture
def corpus() -> Corpus:
    """The dataset, by its name."""
    found: Corpus = registry.corpora.load("elife")
    return found


def article(**changes: Any) -> dict[str, Any]:
    """An article of two sections, with the fields that eLife's articles have beyond the release's."""
    return {
        "article_id": "10.7554/eLife.1",
        "title": "On cells",
        "abstract_text": ["<S> Cells grow. </S>", "<S> We show how. </S>"],
        "article_text": ["Cells are small.", "They grew."],
        "section_names": ["Introduction", "Results"],
        "sections": [["Cells are small."], ["They grew."]],
        "labels": None,
        "digest": ["In plain words."],
        "subjects": ["Research article"],
        "license": "http://creativecommons.org/licenses/by/3.0/",
        **changes,
    }


def test_an_article(corpus: Corpus) -> None:
    """Title, section names and sentences are kept; the reference is the abstract, and the digest is nowhere."""
    assert corpus.from_file_row is not None
    sections = (Section("Introduction", (("Cells are small.",),)), Section("Results", (("They grew.",),)))
    assert corpus.from_file_row(article()) == Example(
        "10.7554/eLife.1", "On cells", None, (Document(None, sections),), (("Cells grow.", "We show how."),)
    )


def test_without_files(stages: ArtifactCache) -> None:
    """It is on no hub: without a path the one line says what to add."""
    with pytest.raises(UsageError, match=r"'elife' needs dataset\.path="):
        load_texts(DatasetSettings(name="elife"), stages)


@pytest.mark.skipif(not SHARED.is_dir(), reason=SHARED_FOLDER)
@pytest.mark.slow
def test_the_real_articles(stages: ArtifactCache) -> None:
    """All 1,609 articles are read, none is without a title, text or abstract, and references are no digests."""
    texts = load_texts(DatasetSettings(name="elife", path=str(SHARED)), stages)
    assert texts.facts["examples"] == {"train": 1370, "validation": 92, "test": 147}
    assert not texts.multi_document
    with gzip.open(SHARED / "test.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for example, row in zip(texts.splits["test"], rows, strict=True):
        assert (example.id, example.title) == (row["article_id"], row["title"])
        assert example.source_words() > 1_000
        abstract = " ".join(row["abstract_text"]).replace("<S>", "").replace("</S>", "")
        assert " ".join(example.references[0]).split() == abstract.split()
