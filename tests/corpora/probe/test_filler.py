"""`dataset.filler`: the sentences of another dataset around the facts of `probe`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.json_files import write_rows

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Example, registry
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.corpora.probe.filler import usable_prose
from longsumbench.corpora.probe.probe import Controls, reports
from longsumbench.errors import DataError, SuiteError
from longsumbench.metrics.fact_recall import FactRecall

SENTENCES = 30  # of a document


def sentence(split: str, number: int) -> str:
    """A sentence with a comma, a hyphen, brackets and quotation marks."""
    return f'In {split} {number} we saw the well-known, "small" cells (or so).'


def write_corpus(
    folder: Path, documents: int = 8, splits: Iterable[str] = ("train", "validation", "test")
) -> Path:
    """Write a dataset in which every sentence states its split and its number."""
    folder.mkdir(exist_ok=True)
    for split in splits:
        rows = []
        for document in range(documents):
            numbers = range(document * SENTENCES, (document + 1) * SENTENCES)
            text = "\n\n".join(sentence(split, number) for number in numbers)
            rows.append({"id": f"{split}{document}", "document": text, "summary": "A summary."})
        write_rows(folder / f"{split}.jsonl", rows)
    return folder


def fill(path: Path, cache: ArtifactCache, **settings: Any) -> Texts:
    return load_texts(
        DatasetSettings("probe", str(path), **{"filler": "jsonl", "limit": 24, **settings}), cache
    )


def prose_in(example: Example) -> list[str]:
    return [found for found in example.sentences() if " we saw " in found]


def test_prose_replaces_the_plain_distractors() -> None:
    """Seven of ten distractors are prose, and the reference still states what the report says."""
    prose = tuple(sentence("train", number) for number in range(400))
    metric = FactRecall(None)  # type: ignore[arg-type] # it looks at no setting
    num_prose = num_others = 0
    for example in reports([1024], 3, 60, Controls(prose=prose)):
        num_prose += len(prose_in(example))
        others = (text for text in example.sentences() if text not in prose)
        num_others += sum(
            " goes to the " not in text and " bid from " not in text for text in others
        )
        assert metric.score(" ".join(example.references[0]), example)["fact_recall"] == 1
    num_decisions = 60 * 4  # of the facts that are decided for a firm
    assert num_prose / (num_prose + num_others - num_decisions) == pytest.approx(0.7, abs=0.04)


def test_which_sentences_are_left_out() -> None:
    """Phrases of the probe in any casing, sentences of other lengths or without an end, and repeated ones."""
    usable = (
        "The bidders went home for the night.",
        "What a well-known, beautiful city?",
        "It was priceless to them!",
    )
    own = (
        "The Market fell by ten points.",
        "Its price fell again last year.",
        "We thank Stone for his help.",
        "They made a bid for it.",
        "All of it goes to him.",
    )
    none = ("Too short a.", "This has no end mark at all", "It is as long as this " * 7 + "one.")
    found = usable_prose([*usable, *own, usable[0], *none, usable[0]])
    assert found.sentences == usable
    assert sorted(found.left_out.values()) == [2, 3, 5]
    assert found.left_out["sentence with a site, a firm, 'bid' or 'goes to'"] == 5


def test_what_is_left_out_is_counted(
    tmp_path: Path, cache: ArtifactCache, log_lines: list[str]
) -> None:
    """The record has the counts by split, the filler and its licence; one line has the sums."""
    folder = write_corpus(tmp_path / "texts")
    with (folder / "test.jsonl").open("a") as file:
        text = "The market is open on Sundays. It goes to show that it works. Short."
        file.write(json.dumps({"id": "more", "document": text, "summary": "A summary."}) + "\n")
    texts = fill(folder, cache, document_length=64)
    own = "sentence with a site, a firm, 'bid' or 'goes to'"
    short = "sentence without 5 to 40 tokens and an end mark"
    assert texts.metadata["left_out"] == {"test": {own: 2, short: 1}}
    assert [line for line in log_lines if "filler" in line] == [
        f"dataset.filler=jsonl: left out 2 × {own}, 1 × {short}"
    ]
    assert texts.metadata["options"] == {"filler": "jsonl"}
    assert texts.metadata["licence"] == registry.corpora.load("jsonl").licence


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"filler": "probe"}, "dataset.filler=probe: choose a dataset of real texts"),
        ({"document_length": 9_999}, "tokens in split 'test', and a report has 9,999"),
    ],
)
def test_fillers_that_do_not_fit(
    settings: dict[str, Any], expected: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """One line says what is wrong, and what to do."""
    with pytest.raises(SuiteError, match=f"^.*{expected}.*$"):
        fill(write_corpus(tmp_path), cache, **settings)


def test_a_filler_needs_all_splits(tmp_path: Path, cache: ArtifactCache) -> None:
    """A missing split is an error that names it; one file can be divided."""
    folder = write_corpus(tmp_path, documents=40, splits=["test"])
    problem = "jsonl has no train split, only test: .*dataset.split_by_hash=true"
    with pytest.raises(DataError, match=problem):
        fill(folder, cache)
    texts = fill(folder / "test.jsonl", cache, document_length=64, split_by_hash=True)
    assert len(texts.splits) == 3
