"""NEWTS: a row is two examples, a topic each."""

from pathlib import Path
from typing import Any

import pytest
from support.dataset_rows import newts_row
from support.json_files import write_rows

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.loading.load import load_texts
from longsumbench.errors import DataError


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    return str(write_rows(path, rows))


def test_the_examples_of_a_row_stay_together(tmp_path: Path, cache: ArtifactCache) -> None:
    """Dealt by a hash, no row is in two splits."""
    path = write(tmp_path / "x.jsonl", [newts_row(f"A{number}") for number in range(100)])
    texts = load_texts(DatasetSettings(name="newts", path=path, split_by_hash=True), cache)
    stories: list[str] = []
    for split in texts.splits.values():
        stories += {identity.partition("-")[0] for identity in split.ids}
    assert len(stories) == len(set(stories)) == 100


def test_one_example_of_a_row_that_cannot_be_used(tmp_path: Path, cache: ArtifactCache) -> None:
    """It ends the reading with the row's line; not strict, it alone is left out and counted."""
    path = write(tmp_path / "test.jsonl", [newts_row("A1"), {**newts_row("A1"), "tid2": "63"}])
    problem = r"test\.jsonl:2: the id is used twice in this split: 'A1-218'"
    with pytest.raises(DataError, match=problem):
        load_texts(DatasetSettings(name="newts", path=path), cache)
    texts = load_texts(DatasetSettings(name="newts", path=path, strict=False), cache)
    assert texts.splits["test"].ids == ["A1-218", "A1-62", "A1-63"]
    assert texts.metadata["skipped"] == {"test": {"the id is used twice in this split": 1}}
