"""NEWTS: a row is two examples, a topic each."""

from pathlib import Path

from support.dataset_rows import newts_row
from support.json_files import write_rows
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache


def test_the_examples_of_a_row_stay_together(tmp_path: Path, cache: ArtifactCache) -> None:
    """Dealt by a hash, no row is in two splits."""
    path = write_rows(tmp_path / "x.jsonl", [newts_row(f"A{number}") for number in range(100)])
    stories: list[str] = []
    for split in read_texts("newts", path, cache, split_by_hash=True).splits.values():
        stories += {identity.partition("-")[0] for identity in split.ids}
    assert len(stories) == len(set(stories)) == 100


def test_one_example_of_a_row_that_cannot_be_used(tmp_path: Path, cache: ArtifactCache) -> None:
    """It ends the reading with the row's line; not strict, it alone is left out and counted."""
    rows = [newts_row("A1"), {**newts_row("A1"), "tid2": "63"}]
    path = write_rows(tmp_path / "test.jsonl", rows)
    problem = "test.jsonl:2: the id is used twice in this split: 'A1-218'"
    assert problem in reading_problem("newts", path, cache)
    texts = read_texts("newts", path, cache, strict=False)
    assert texts.splits["test"].ids == ["A1-218", "A1-62", "A1-63"]
    assert texts.metadata["skipped"] == {"test": {"the id is used twice in this split": 1}}
