"""Opinosis and FewSum: users' reviews with several references."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.paths import SHARED as SHARED_ROOT
from support.requirements import SHARED_FOLDER

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.corpora import fewsum, opinosis
from longsumbench.corpora.reading.load import load_texts

SHARED = SHARED_ROOT / "data"


def group(**changes: Any) -> dict[str, Any]:
    """Eight reviews and three summaries; a field set to None is left out."""
    reviews = {f"rev{number}": f"Review {number}. Good." for number in range(1, 9)}
    summaries = {f"summ{number}": f"Summary {number}." for number in range(1, 4)}
    row = {
        "cat": "cloth",
        "group_id": "B0",
        **reviews,
        **summaries,
        "rating1": "4.0",
        "domain": "amazon",
        **changes,
    }
    return {field: value for field, value in row.items() if value is not None}


def rows(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(SHARED / name / "test.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_a_topic_by_hand() -> None:
    """Every sentence is a paragraph as given, the topic is the title, and a summary's lines are its sentences."""
    row = {
        "topic": "battery-life_amazon_kindle",
        "sentences": ["It lasts . Long .", " ", "Not  bad"],
        "summaries": ["Good.\r\nIt lasts", "Good.", "Good."],
    }
    document = Document(None, (Section(None, (("It lasts . Long .",), ("Not bad",))),))
    references = (("Good.", "It lasts"), ("Good.",), ("Good.",))
    expected = Example(
        "battery-life_amazon_kindle", "battery-life amazon kindle", None, (document,), references
    )
    assert opinosis.opinosis_example(row) == expected


def test_a_group_by_hand() -> None:
    """Eight documents, three references, and the domain in the id."""
    read = fewsum.fewsum_example(group())
    assert (read.id, len(read.documents)) == ("amazon/B0", 8)
    assert read.documents[2] == Document("review 3", (Section(None, (("Review 3.", "Good."),)),))
    assert read.references == (("Summary 1.",), ("Summary 2.",), ("Summary 3.",))


@pytest.mark.skipif(not (SHARED / "opinosis").is_dir(), reason=SHARED_FOLDER)
def test_real_topics_keep_all_sentences_and_summaries(stages: ArtifactCache) -> None:
    """51 topics, whose sentences and summaries are whole and as many as in the file."""
    texts = load_texts(DatasetSettings(name="opinosis", path=str(SHARED / "opinosis")), stages)
    assert texts.facts["examples"] == {"test": 51}
    for example, row in zip(texts.splits["test"], rows("opinosis"), strict=True):
        assert [sentence.split() for sentence in example.sentences()] == [
            one.split() for one in row["sentences"]
        ]
        assert [" ".join(one).split() for one in example.references] == [
            one.split() for one in row["summaries"]
        ]


@pytest.mark.skipif(not (SHARED / "fewsum").is_dir(), reason=SHARED_FOLDER)
def test_real_groups_keep_all_reviews_and_summaries(stages: ArtifactCache) -> None:
    """160 groups of eight reviews and three summaries, no word of which is lost."""
    texts = load_texts(DatasetSettings(name="fewsum", path=str(SHARED / "fewsum")), stages)
    assert texts.facts["examples"] == {"train": 58, "validation": 42, "test": 60}
    assert texts.multi_document
    for example, row in zip(texts.splits["test"], rows("fewsum"), strict=True):
        for number, document in enumerate(example.documents, start=1):
            assert " ".join(document.sentences()).split() == row[f"rev{number}"].split()
        assert [" ".join(one).split() for one in example.references] == [
            row[f"summ{n}"].split() for n in (1, 2, 3)
        ]
