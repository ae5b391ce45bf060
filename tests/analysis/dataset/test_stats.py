"""What a dataset is like: hand-worked numbers, the same as other ways give them, and `longsumbench stats`."""

from pathlib import Path

import numpy as np
import pytest
from support.commands import Command
from support.toys import ToySplit, write_jsonl

from longsumbench.analysis.dataset.stats import (
    COUNTED,
    StatsSettings,
    describe_dataset,
    read_splits,
)
from longsumbench.analysis.dataset.tables import (
    kept_measures,
    lengths,
    oracle_scores,
    summarize_lengths,
)
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import plan


def one(
    name: str,
    documents: tuple[Document, ...],
    *references: tuple[str, ...],
    query: str | None = None,
) -> Example:
    return Example(name, "a title", query, documents, references)


# 6 + 4 words; 2 documents; 2 + 1 sections with text; 2 + 1 paragraphs; 3 + 1 sentences
FIRST = one(
    "a",
    (
        Document(
            "x",
            (
                Section("One", (("The cat sat.", "It slept."),)),
                Section("Two", (("Then",), ())),
                Section("Three", ()),
            ),
        ),
        Document(None, (Section(None, (("A dog ran off.",),)),)),
    ),
    ("The cat sat down.",),
    ("A dog ran.", "Then it slept."),
    query="who?",
)
SECOND = one(
    "b",
    (Document(None, (Section(None, (("one two three four five six seven eight",),)),)),),
    ("one two",),
)


def test_counts_by_hand() -> None:
    """Words, documents, and sections, paragraphs, sentences and references with text; whether there is a query."""
    (found,) = read_splits({"test": ToySplit("test", [FIRST, SECOND])}, StatsSettings())
    assert tuple(found.counts) == COUNTED
    assert found.counts.to_numpy().tolist() == [[10, 4, 2, 3, 3, 4, 2, 1], [8, 2, 1, 1, 1, 1, 1, 0]]
    assert found.is_whole


def test_what_is_kept_by_hand() -> None:
    """SECOND: 8 words for 2, all copied in a fragment of 2. FIRST: means over its two references, 10/4 and 10/6."""
    (split,) = read_splits({"test": ToySplit("test", [FIRST, SECOND])}, StatsSettings())
    first, second = split.sampled.loc["a"], split.sampled.loc["b"]
    assert (second["extractive_coverage"], second["extractive_density"]) == (1, 2)
    assert np.isnan(second["novel_ngrams_3"])  # of two words
    assert first["extractive_compression"] == pytest.approx((10 / 4 + 10 / 6) / 2)
    measures = kept_measures(split)
    assert measures["extractive_compression"].mean == pytest.approx((25 / 12 + 4) / 2)
    assert measures["novel_ngrams_3"].n == 1


def test_an_example_without_reference_is_in_no_mean_of_it() -> None:
    """It counts as an example; nothing is said of its target, of what is kept and of the best extract."""
    without = one("c", SECOND.documents, ())
    (found,) = read_splits({"test": ToySplit("test", [SECOND, without])}, StatsSettings())
    assert found.counts["references"].tolist() == [1, 0]
    assert summarize_lengths(lengths(found)["target_words"]) == (1, 2, 2, 2, 2)
    assert found.sampled.loc["c"].drop("group").isna().all()
    assert oracle_scores(found)[0] == 1


def test_the_best_extract_is_the_systems(tmp_path: Path) -> None:
    """The scores, their means and intervals are those of a run of model=oracle on the same examples."""
    folder = write_jsonl(tmp_path / "texts")
    words = (
        f"model=oracle dataset=jsonl dataset.path={folder} results_dir={tmp_path} baselines=false"
    )
    (planned,) = plan(words.split())
    of_run = run_point(planned)
    stats = describe_dataset(DatasetSettings("jsonl", str(folder)), StatsSettings())
    test = next(split for split in stats.splits if split.name == "test")
    n, scores = oracle_scores(test)
    assert (n, scores) == (of_run.evaluation.n, of_run.evaluation.scores)
    assert stats.oracle_signature == of_run.evaluation.signature.replace(f"|n:{n}", "")


def test_files_have_the_printed_tables(tmp_path: Path, run_command: Command) -> None:
    """--output writes the tables, and the same numbers as --csv; a sample is named in both."""
    words = f"dataset=jsonl dataset.path={write_jsonl(tmp_path / 'texts')} sample=5"
    folder, table = tmp_path / "out", tmp_path / "all.csv"
    shown = run_command(0, "stats", *words.split(), "--csv", table, "--output", folder).out
    page = (folder / "stats.md").read_text()
    assert (folder / "stats.csv").read_text() == table.read_text()
    for text in ("What the best extract scores", "of a sample drawn by seed 1: 5 of 24"):
        assert text in page
        assert text in " ".join(shown.split())
