"""NEWTS: a row is two examples, a topic each."""

import json
from pathlib import Path
from typing import Any

import pytest

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.corpora.newts import newts_example
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import DataError


def story(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "AssignmentId": f"A{number}",
        "docId": "e2be",
        "article": "It snowed. She was rescued.",
        "tid1": "218",
        "tid2": "62",
        "words1": "snow, weather, cold,",
        "words2": "island, rescue",
        "phrases1": "cold weather",
        "sentences1": "This topic is about snow.",
        "summary1": "It was cold. It snowed.\n She froze",
        "summary2": "A rescue.",
        **changes,
    }


def test_a_row_is_two_examples() -> None:
    """Each summary is the reference of its own topic, whose words are the query; line breaks end its sentences."""
    documents = (Document("e2be", (Section(None, (("It snowed.", "She was rescued."),)),)),)
    assert newts_example(story()) == (
        Example(
            "A1-218",
            None,
            "snow, weather, cold",
            documents,
            (("It was cold.", "It snowed.", "She froze"),),
        ),
        Example("A1-62", None, "island, rescue", documents, (("A rescue.",),)),
    )


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_the_examples_of_a_row_stay_together(tmp_path: Path, stages: ArtifactCache) -> None:
    """Dealt by a hash, no row is in two splits."""
    path = write(tmp_path / "x.jsonl", [story(number) for number in range(100)])
    texts = load_texts(DatasetSettings(name="newts", path=path, split_by_hash=True), stages)
    stories = [
        {identity.partition("-")[0] for identity in split.ids} for split in texts.splits.values()
    ]
    assert sum(map(len, stories)) == len(set.union(*stories)) == 100
    assert all(
        len(split.ids) == 2 * len(names)
        for split, names in zip(texts.splits.values(), stories, strict=True)
    )


def test_one_example_of_a_row_that_cannot_be_used(tmp_path: Path, stages: ArtifactCache) -> None:
    """It ends the reading with the row's line; not strict, it alone is left out and counted."""
    path = write(tmp_path / "test.jsonl", [story(1), story(1, tid2="63")])
    with pytest.raises(
        DataError, match=r"test\.jsonl:2: the id is used twice in this split: 'A1-218'"
    ):
        load_texts(DatasetSettings(name="newts", path=path), stages)
    texts = load_texts(DatasetSettings(name="newts", path=path, strict=False), stages)
    assert texts.splits["test"].ids == ["A1-218", "A1-62", "A1-63"]
    assert texts.facts["skipped"] == {"test": {"the id is used twice in this split": 1}}
