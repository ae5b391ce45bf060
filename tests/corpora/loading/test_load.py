"""Reading corpora: what comes out, what is kept, and one clear line for anything wrong."""

import gzip
import json
import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.corpora.loading import load as loading, store
from longsumbench.corpora.loading.load import load_texts
from longsumbench.corpora.loading.rows import split_by_hash
from longsumbench.errors import UsageError

read = partial(read_texts, "jsonl")
problem = partial(reading_problem, "jsonl")

Row = dict[str, Any]


def row(number: int, **changes: Any) -> Row:
    """A row of jsonl; a field set to None is left out."""
    content = {
        "id": f"x{number}",
        "document": f"Text {number}. More.",
        "summary": f"Sum {number}.",
        **changes,
    }
    return {key: value for key, value in content.items() if value is not None}


def write(path: Path, rows: list[Row], pack: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(json.dumps(item) + "\n" for item in rows).encode()
    path.write_bytes(gzip.compress(content) if pack else content)
    return path


def test_a_folder_becomes_splits(tmp_path: Path, cache: ArtifactCache) -> None:
    """A file a split, under its own name or an alias, packed or not, becomes a sequence of examples."""
    write(tmp_path / "train.txt", [row(1), row(2)])
    write(tmp_path / "val.jsonl.gz", [row(3)], pack=True)
    write(tmp_path / "test.json", [row(4, title="T", query="Q?")])
    (tmp_path / "vocab").write_text("not a split")
    texts = read(tmp_path, cache)
    assert list(texts.splits) == ["train", "validation", "test"]
    assert texts.splits["train"].ids == ["x1", "x2"]
    assert texts.splits["test"][0] == jsonl_example(row(4, title="T", query="Q?"))
    assert texts.metadata["examples"] == {"train": 2, "validation": 1, "test": 1}
    assert str(tmp_path) not in json.dumps(dict(texts.metadata))


def test_a_split_is_a_sequence(tmp_path: Path, cache: ArtifactCache) -> None:
    """Length, indices from both ends, iteration, word counts; a copy through pickle reads the same."""
    split = read(write(tmp_path / "x.jsonl", [row(n) for n in range(5)]), cache).splits["test"]
    copy = pickle.loads(pickle.dumps(split))  # noqa: S301 - written a moment ago
    assert [example.id for example in split] == [copy[n].id for n in range(5)] == copy.ids
    assert split[-1] == split[4] == list(copy)[4]
    assert list(split.source_words) == [3] * len(split)
    assert list(split.reference_words) == [2] * 5
    assert split[-2:] == [split[3], split[4]]
    with pytest.raises(IndexError):
        split[5]


def test_reading_again_finds_the_stage(
    tmp_path: Path, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files are read once; a changed file is read anew."""
    path = write(tmp_path / "x.jsonl", [row(1)])
    first = read(path, cache)
    monkeypatch.setattr(loading, "_build", lambda *arguments: pytest.fail("read again"))
    assert read(path, cache).fingerprint == first.fingerprint
    monkeypatch.undo()
    write(path, [row(2)])
    os.utime(path, ns=(1, 1))
    assert read(path, cache).fingerprint != first.fingerprint


def test_the_fingerprint_is_of_the_content(tmp_path: Path, cache: ArtifactCache) -> None:
    """Another folder, packing or extension keeps it; another text, order or limit changes it."""
    rows = [row(1), row(2)]
    packed = read(write(tmp_path / "b" / "test.txt.gz", rows, pack=True).parent, cache)
    single = read(write(tmp_path / "mine.jsonl", rows), cache)
    assert packed.fingerprint == single.fingerprint
    fingerprints = {single.fingerprint, read(tmp_path / "mine.jsonl", cache, limit=1).fingerprint}
    for changed in (rows[::-1], [row(1), row(2, title="T")]):
        path = write(tmp_path / f"{len(fingerprints)}.jsonl", changed)
        fingerprints.add(read(path, cache).fingerprint)
    assert len(fingerprints) == 4


def test_the_limit_holds_for_each_split(tmp_path: Path, cache: ArtifactCache) -> None:
    """The first N examples of every split are read, and what follows is not read."""
    write(tmp_path / "train.jsonl", [row(n) for n in range(5)])
    with write(tmp_path / "test.jsonl", [row(n) for n in range(5)]).open("a") as file:
        file.write("no JSON\n")
    texts = read(tmp_path, cache, limit=3)
    assert [split.ids for split in texts.splits.values()] == [["x0", "x1", "x2"]] * 2


def test_one_file_dealt_by_hash(tmp_path: Path, cache: ArtifactCache) -> None:
    """About 80/10/10; an example's split depends on its id alone; without the setting the file is the test split."""
    path = write(tmp_path / "x.jsonl", [row(n) for n in range(600)])
    texts = read(path, cache, split_by_hash=True)
    shares = {name: len(split) / 600 for name, split in texts.splits.items()}
    assert shares == pytest.approx({"train": 0.8, "validation": 0.1, "test": 0.1}, abs=0.04)
    assert all(split_by_hash(identity) == "train" for identity in texts.splits["train"].ids)
    assert list(read(path, cache).splits) == ["test"]


def test_what_has_nothing_to_read_is_named(tmp_path: Path, cache: ArtifactCache) -> None:
    """A missing path, a folder without splits, an empty file and rows that all fail are each said plainly."""
    assert "no such file or folder" in problem(tmp_path / "absent", cache)
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "no split files" in problem(folder, cache)
    (folder / "test.jsonl").write_text("\n \n")
    assert problem(folder, cache) == f"{folder / 'test.jsonl'}: the file is empty"
    (folder / "test.jsonl").write_text("{}\n")
    assert "no usable example in split 'test' (1 × the field" in problem(
        folder, cache, strict=False
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"name": "jsonl", "path": ".", "split_by_hash": True}, "one file"),
        ({"name": "aclsum", "document_length": 64}, "leave out dataset.document_length"),
    ],
)
def test_settings_that_do_not_fit(
    settings: Row, expected: str, here: Path, cache: ArtifactCache
) -> None:
    """A setting that the dataset has no use for is an error of usage."""
    write(here / "test.jsonl", [row(1)])
    with pytest.raises(UsageError, match=expected):
        load_texts(DatasetSettings(**settings), cache)


def test_large_splits_are_written_in_batches(
    tmp_path: Path, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More text than one record batch holds is written in several, and every example is found again."""
    monkeypatch.setattr(store, "_BATCH_BYTES", 300)
    split = read(write(tmp_path / "x.jsonl", [row(n) for n in range(10)]), cache).splits["test"]
    assert [split[n].id for n in (9, 0, 4)] == ["x9", "x0", "x4"]
    assert [example.id for example in split] == split.ids
