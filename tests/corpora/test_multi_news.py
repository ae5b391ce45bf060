"""Multi-News: the rows of the hub's copy, the release's pairs of files, and JSON lines with the hub's fields."""

from functools import partial
from pathlib import Path

import pytest
from support.hub import offer_on_hub
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.corpora.loading.load import load_texts
from longsumbench.corpora.multi_news import multi_news_example

read = partial(read_texts, "multi_news")
problem = partial(reading_problem, "multi_news")

CLUSTER = "It snowed. It froze. NEWLINE_CHAR NEWLINE_CHAR Nobody came. ||||| ||||| Snow fell. |||||"
SUMMARY = "– It snowed. Nobody came."
FIRST = Section(None, (("It snowed.", "It froze."), ("Nobody came.",)))
SECOND = Section(None, (("Snow fell.",),))
EXAMPLE = Example(
    "test-0",
    None,
    None,
    (Document(None, (FIRST,)), Document(None, (SECOND,))),
    (("– It snowed.", "Nobody came."),),
)


def write(
    folder: Path, split: str, clusters: list[str], summaries: list[str], ending: str = "src.cleaned"
) -> Path:
    """Write both files of a split."""
    folder.mkdir(exist_ok=True)
    (folder / f"{split}.{ending}").write_text("".join(f"{line}\n" for line in clusters))
    (folder / f"{split}.tgt").write_text("".join(f"{line}\n" for line in summaries))
    return folder


def test_an_article_is_a_document_and_a_line_a_paragraph() -> None:
    """Each article is a document and each of its lines a paragraph; empty ones are left out, the dash stays."""
    assert multi_news_example({"id": "test-0", "document": CLUSTER, "summary": SUMMARY}) == EXAMPLE


def test_files_of_the_release_become_splits(tmp_path: Path, cache: ArtifactCache) -> None:
    """Its files become splits, with ids by the number of the line; the record names the files."""
    for split, count in (("train", 3), ("val", 2), ("test", 1)):
        write(tmp_path, split, [CLUSTER] * count, [SUMMARY] * count)
    texts = read(tmp_path, cache)
    assert list(texts.splits) == ["train", "validation", "test"]
    assert texts.splits["validation"].ids == ["validation-0", "validation-1"]
    assert list(texts.splits["test"]) == [EXAMPLE]
    assert texts.metadata["files"][:2] == ["train.src.cleaned", "train.tgt"]


def test_the_hub_and_the_release_are_the_same_texts(
    tmp_path: Path, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the hub become the examples, ids and fingerprint of the release's lines."""
    row = {"document": CLUSTER.replace("NEWLINE_CHAR", "\n"), "summary": SUMMARY}
    asked = offer_on_hub(monkeypatch, tmp_path, [row] * 2)
    fetched = load_texts(DatasetSettings(name="multi_news"), cache)
    assert asked == [("Awesome075/multi_news_parquet", None)]
    for split in ("train", "validation", "test"):
        write(tmp_path / "release", split, [CLUSTER] * 2, [SUMMARY] * 2)
    assert read(tmp_path / "release", cache).fingerprint == fetched.fingerprint


@pytest.mark.parametrize(
    ("cluster", "summary", "expected"),
    [
        ("|||||", "D.", "test.src.cleaned:2: the cluster is empty"),
        ("C d.", "", "test.src.cleaned:2: the summary is empty: line 2 of test.tgt"),
    ],
)
def test_a_bad_line_is_named_or_left_out(
    cluster: str, summary: str, expected: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """It ends the reading with file, line and reason; not strict, it is left out and the others keep their ids."""
    write(tmp_path, "test", ["A b.", cluster, "E f."], ["C.", summary, "G."])
    assert expected in problem(tmp_path, cache)
    texts = read(tmp_path, cache, strict=False)
    assert texts.splits["test"].ids == ["test-0", "test-2"]


def test_files_of_different_length_are_refused(tmp_path: Path, cache: ArtifactCache) -> None:
    """A missing line shifts the summaries of all later clusters."""
    write(tmp_path, "test", ["A.", "B.", "C."], ["A.", "B."])
    expected = "test.src.cleaned: line 3 is missing here or in test.tgt: a cluster and its summary must be on the same"
    assert expected in problem(tmp_path, cache)


def test_files_that_are_missing_or_too_many(tmp_path: Path, cache: ArtifactCache) -> None:
    """A half without the other, or two files for one half, is one line."""
    write(tmp_path, "val", ["A."], ["B."])
    (tmp_path / "train.src.cleaned").write_text("A.\n")
    assert "train.src.cleaned: half of a split: add the other file" in problem(tmp_path, cache)
    write(tmp_path, "train", ["A."], ["B."], "src")
    expected = "two files for the split 'train', train.src and train.src.cleaned"
    assert expected in problem(tmp_path, cache)
