"""Examples that are in two splits: counted, reported, an error where that is asked for."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.json_files import write_json, write_rows
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.corpora.loading import load as loading
from longsumbench.errors import DataError

read = partial(read_texts, "jsonl")

# By hand: of the four test examples, one has a text of train, one an id of train, one both; of the two of validation,
# one has the text of a training example, the other that of a tested one.
SPLITS = json.loads("""
{"train": {"a": "One.", "b": "Two.", "c": "Three."},
 "validation": {"d": "Two.", "e": "Five."},
 "test": {"f": "One.", "b": "Four.", "c": "Three.", "g": "Five."}}
""")
# pair of splits → examples, those with the same text, id and reference, and the first one
EXPECTED = json.loads("""
{"validation in train": [1, 1, 0, 0, "d"],
 "test in train": [3, 2, 2, 0, "f"],
 "test in validation": [1, 1, 0, 0, "g"]}
""")


@pytest.fixture(autouse=True)
def nothing_said_before() -> None:
    """Every test is a process of its own, as far as warnings go: within one, each is said once."""
    loading.warn_once.cache_clear()


def written(folder: Path, splits: dict[str, dict[str, str]]) -> Path:
    folder.mkdir(exist_ok=True)
    for split, texts in splits.items():
        rows = (
            {"id": identity, "document": text, "summary": "S."} for identity, text in texts.items()
        )
        write_rows(folder / f"{split}.jsonl", rows)
    return folder


def test_overlaps_are_counted_and_told(
    tmp_path: Path,
    cache: ArtifactCache,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The metadata hold the counts of every pair of splits; one line of a process tells them, read before or not."""
    folder = written(tmp_path / "texts", SPLITS)
    overlaps = read(folder, cache).metadata["overlaps"]
    assert {pair: [*counts.values()] for pair, counts in overlaps.items()} == EXPECTED
    said = capsys.readouterr().err
    assert said.startswith(
        "warning: splits of dataset 'jsonl' overlap: 1 of 2 in validation also in train"
    )
    assert "3 of 4 in test also in train (2 by text, 2 by id, 0 by reference; 'f')" in said
    assert said.count("\n") == 1
    monkeypatch.setattr(loading, "_build", lambda *arguments: pytest.fail("read again"))
    read(folder, cache)
    # said once in a process: a run's baselines do not say it again
    assert not capsys.readouterr().err
    loading.warn_once.cache_clear()
    read(folder, cache)
    assert capsys.readouterr().err == said
    # it differs in no row, so it shares the stage
    with pytest.raises(DataError, match=r"3 of 4 in test .* take these out of one split"):
        read(folder, cache, strict=True)


MEETING = {"id": "m", "document": "One.", "query": "Why?", "summary": "It was cheap."}


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 1),  # people's question and answer, of another meeting
        ({"query": "When?"}, 0),  # a short answer to another question
        # as long as chance does not repeat
        ({"query": "When?", "summary": "It was cheap, so they chose it."}, 1),
    ],
)
def test_an_annotation_in_two_splits_is_an_overlap(
    changes: dict[str, Any], count: int, tmp_path: Path, cache: ArtifactCache
) -> None:
    """A summary that is in two splits is counted, whatever its text; short ones only with their query."""
    tested = {**MEETING, "id": "n", "document": "Two.", **changes}
    trained = {**MEETING, "summary": changes.get("summary") or MEETING["summary"]}
    for split, row in {"train": trained, "test": tested}.items():
        write_json(tmp_path / f"{split}.jsonl", row)
    overlaps = read(tmp_path, cache).metadata.get("overlaps", {})
    assert overlaps.get("test in train", {}).get("same_reference", 0) == count
