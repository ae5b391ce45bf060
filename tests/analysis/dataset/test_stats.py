"""What a dataset is like: hand-worked numbers, the same as other ways give them, and `longsumbench stats`."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import Command
from support.json_files import read_json
from support.toys import TINY, ToySplit, tiny_overrides, write_jsonl

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
from longsumbench.cli.main import main
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.metrics.aggregate import aggregate
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import plan

SMALL = "model.vocabulary_size=320 model.input_length=12 model.snippet_length=6 model.num_snippets=3 model.decode_length=5"


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
    assert summarize_lengths(lengths(found, 0)["target_words"]) == (1, 2, 2, 2, 2)
    assert found.sampled.loc["c"].isna().all()
    stats = DatasetStats("toys", "f" * 64, {}, 1, (found,), (), "test", (), "rouge")
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


def test_a_system_tells_what_its_run_cuts(tmp_path: Path) -> None:
    """Sources and targets are cut token for token as in a finished run under the same words."""
    folder = write_jsonl(tmp_path / "texts")
    words = [*tiny_overrides(folder, steps=2), *SMALL.split(), f"results_dir={tmp_path}"]
    assert main(["run", *words, "baselines=false"]) == 0
    words = [word for word in words if not word.startswith(("score.", "results_dir"))]
    assert main(["stats", *words, "--output", str(tmp_path / "out")]) == 0
    table = pd.read_csv(tmp_path / "out" / "stats.csv")
    page = (tmp_path / "out" / "stats.md").read_text()
    assert "What training would cut from the targets" in page
    (path,) = (tmp_path / "runs").glob("*/*/*/record.json")
    of_run = read_json(path)

    def counted(what: str) -> dict[str, float]:
        rows = table[table["what"] == what]
        return dict(zip(rows["statistic"], rows["value"], strict=True))

    read, targets = counted("reading"), counted("targets")
    for numbers, ledger in (
        (read, of_run["ledger"]["source"]),
        (targets, of_run["fit"]["targets"]),
    ):
        for cut in ledger["cuts"]:
            assert numbers[f"{cut['cause']}_tokens"] == cut["tokens"]
            assert numbers[f"{cut['cause']}_words"] == cut["words"]
        parts = [value for name, value in numbers.items() if name.endswith("_tokens")]
        assert sum(parts) == ledger["tokens"]
    assert len(of_run["ledger"]["source"]["cuts"]) > 1
    assert targets["cut"] == of_run["fit"]["targets_cut"] > 0


def test_systems_side_by_side(tmp_path: Path, run_command: Command) -> None:
    """Systems with the same tokenizer share a row of lengths; one that ranks by what it would have to learn says so.

    Whatever each one sees and cuts adds up to the whole.
    """
    folder = write_jsonl(tmp_path / "texts")
    tiny = " ".join(f"model.{key}={value}" for key, value in TINY.items())
    words = f"dataset=jsonl dataset.path={folder} model=lead,random,trunc,flat_transformer scale=tiny {tiny} sample=5"
    shown = " ".join(
        run_command(0, "stats", *words.split(), "--csv", tmp_path / "all.csv").out.split()
    )
    assert (
        "tokens 1: tokens of trunc, flat_transformer, of a sample drawn by seed 1: 5 of 24" in shown
    )
    assert ": its ranker, lstm, is not trained: texts are read in the order of the source" in shown
    assert "random: keeps no ledger" in shown
    table = pd.read_csv(tmp_path / "all.csv")
    read = table[(table["what"] == "reading") & table["statistic"].str.endswith("_words")]
    words_of_systems = read.groupby("name")["value"].sum()
    assert [name.split()[0] for name in words_of_systems.index] == [
        "flat_transformer",
        "lead",
        "trunc",
    ]
    assert words_of_systems.nunique() == 1  # there are no titles, which some systems read


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("smaple=5", 2, "unknown setting 'smaple' (did you mean 'sample'?)"),
        ("model.input_length=5", 2, "'model.input_length=5' needs a system: add model=NAME"),
        ("stray", 2, "'stray' is not a setting: write key=value"),
        ("rank=tfidf --output x", 2, "--output cannot be combined with rank="),
        (
            "dataset=jsonl dataset.path=TEXTS model=trunc scale=tiny",
            3,
            "learns from a training split",
        ),
        ("dataset=jsonl dataset.path=TEXTS dataset.split=train model=lead", 3, "no split 'train'"),
        (
            "dataset=jsonl dataset.path=TEXTS model=lead",
            3,
            "model.length=train needs a train split",
        ),
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


def test_other_systems_are_described_if_one_cannot_be_loaded(
    tmp_path: Path, run_command: Command
) -> None:
    """A system without its training split is left out with the reason; without any other it is an error."""
    texts = write_jsonl(tmp_path / "texts", train=0, validation=0)
    output = run_command(0, "stats", "dataset=jsonl", f"dataset.path={texts}", "model=lead,oracle")
    assert re.search(r"^oracle ", output.out, re.MULTILINE)
    assert "left out: lead: model.length=train needs a train split" in output.err
