"""What a dataset is like: hand-worked numbers, the same as other ways give them, and `longsumbench stats`."""

from pathlib import Path

import numpy as np
import pytest
from support.commands import Command
from support.toys import ToySplit, write_jsonl

from longsumbench.analysis.dataset.report import DatasetReport
from longsumbench.analysis.dataset.stats import (
    DatasetStats,
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
from longsumbench.metrics.aggregate import aggregate
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
    assert found.counts.to_dict("list") == {
        "source_words": [10, 8],
        "target_words": [4, 2],
        "documents": [2, 1],
        "sections": [3, 1],
        "paragraphs": [3, 1],
        "sentences": [4, 1],
        "references": [2, 1],
        "queries": [1, 0],
    }
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
    assert found.sampled.loc["c"].isna().all()
    stats = DatasetStats("toys", "f" * 64, {}, 1, (found,), "rouge")
    assert "What the best extract scores" in DatasetReport(stats).render()
    assert oracle_scores(found)[0] == 1


def test_the_best_extract_is_the_systems(tmp_path: Path) -> None:
    """The scores, their means and intervals are those of a run of model=oracle on the same examples."""
    folder = write_jsonl(tmp_path / "texts")
    words = [
        "model=oracle",
        "dataset=jsonl",
        f"dataset.path={folder}",
        f"results_dir={tmp_path}",
        "baselines=false",
    ]
    (planned,) = plan(words)
    of_run = run_point(planned)
    stats = describe_dataset(DatasetSettings("jsonl", str(folder)), StatsSettings())
    test = next(split for split in stats.splits if split.name == "test")
    n, scores = oracle_scores(test)
    assert (n, scores) == (of_run.evaluation.n, of_run.evaluation.scores)
    assert stats.oracle_signature == of_run.evaluation.signature.replace(
        f"|n:{of_run.evaluation.n}", ""
    )
    columns = [column for column in test.sampled if str(column).startswith("rouge")]
    assert scores == aggregate(test.sampled[columns])


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


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("smaple=5", 2, "unknown setting 'smaple' (did you mean 'sample'?)"),
        ("model=trunc", 2, "unknown setting 'model'"),
        ("stray", 2, "'stray' is not a setting: write key=value"),
        ("rank=tfidf --output x", 2, "--output cannot be combined with rank="),
        ("dataset=jsonl dataset.path=TEXTS/none.jsonl", 3, "none.jsonl"),
    ],
)
def test_what_cannot_be_described_is_said(
    words: str, code: int, message: str, tmp_path: Path, run_command: Command
) -> None:
    """Bad words and unfit texts end with their exit code and one line, before anything is printed."""
    texts = write_jsonl(tmp_path / "texts", train=0, validation=0)
    output = run_command(code, "stats", *words.replace("TEXTS", str(texts)).split())
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert message in output.err
