"""Finished runs next to each other: who may be compared, what is tested, what is reported, as a user types it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support.run_records import TRAINED, record

from longsumbench.cli.main import main
from longsumbench.core import Summary
from longsumbench.metrics.aggregate import write_scores
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.metrics.statistics import holm
from longsumbench.outputs.compare import Comparison, compare
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.predictions import write_summaries

LIMITED = {"dataset": {"name": "arxiv", "path": None, "limit": 5, "workers": 3}}
Scores = Mapping[str, float]
Typed = Callable[..., tuple[int, str, str]]


def scored(scores: Scores, **extra: Sequence[float]) -> pd.DataFrame:
    """A table of scores whose ROUGE F is all the same, in the order given."""
    columns = {f"{kind}_{part}": list(scores.values()) for kind in ROUGE_TYPES for part in "prf"}
    return pd.DataFrame({**columns, **extra}, index=pd.Index(list(scores), name="id"))


@pytest.fixture
def finished(tmp_path: Path) -> Callable[..., Path]:
    """Write the files of a finished run; return its folder."""

    def write(
        model: str,
        scores: Scores,
        extra: Mapping[str, Sequence[float]] | None = None,
        **facts: object,
    ) -> Path:
        examples = f"{sorted(scores)}"
        made = record(
            model,
            30,
            **{"n": len(scores), "examples": examples, "command": ("longsumbench", "run"), **facts},
        )
        folder = tmp_path / "runs" / made.key.dataset / model / made.run_id
        made.write(folder)
        write_scores(folder / "scores.csv", scored(scores, **(extra or {})))
        write_summaries(
            folder / "predictions.jsonl",
            [Summary(name, f"{model} on {name}.", None) for name in scores],
        )
        return folder

    return write


@pytest.fixture
def typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Typed:
    """Run the command in a wide terminal; return its exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: object) -> tuple[int, str, str]:
        code = main(["compare", *map(str, words), "--results-dir", str(tmp_path)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def compared(root: Path, *names: str, **options: bool) -> Comparison:
    return compare(*names, results_dir=root, **options)


FOUR = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
OTHERS = {"d": 0.3, "c": 0.3, "b": 0.6, "a": 0.4}


def test_two_runs_by_hand(finished: Callable[..., Path], tmp_path: Path) -> None:
    """Examples are paired by id in any order: +30, +40, 0 and -10 points are +15 in the mean."""
    finished("lead", FOUR)
    finished("trunc", OTHERS)
    (pair,) = compared(tmp_path, "lead", "trunc").pairs
    for row in pair.rows:
        assert (row.n, row.higher, row.lower, row.equal) == (4, 2, 1, 1)
        assert (row.baseline_mean, row.mean, row.difference) == pytest.approx((25, 40, 15))
        assert row.low < 15 < row.high
    assert [row.measure for row in pair.rows] == list(ROUGE_TYPES)
    assert [one.id for one in pair.moved] == ["b", "a", "c", "d"]
    gains, losses = pair.extremes(10)
    assert [one.id for one in gains] == ["b", "a"]
    assert [one.id for one in losses] == ["d"]
    assert pair.extremes(1) == (gains[:1], losses)
    assert pair.extremes(0) == ((), ())


def test_trained_and_untrained(finished: Callable[..., Path], tmp_path: Path) -> None:
    """A line says which run was trained here and which is a checkpoint as it is; two of a kind need none."""
    finished("lead", FOUR)
    finished("trunc", FOUR, fit=TRAINED)
    finished("seq2seq", FOUR, system={"checkpoint": "facebook/bart-large-cnn"})
    (line,) = [
        line
        for line in compared(tmp_path, "trunc", "seq2seq", "lead").about()
        if "Not trained" in line
    ]
    assert (
        line
        == "Trained here: trunc (trunc000). Not trained here, perhaps on these texts: seq2seq (seq2seq0)."
    )
    assert not any("rained here" in line for line in compared(tmp_path, "trunc", "lead").about())


def test_lengths_and_warnings(finished: Callable[..., Path], tmp_path: Path) -> None:
    """The mean length of the outputs is above the tables, and who wrote the same text over and over."""
    for model, outputs_cut in (("lead", 0), ("trunc", 7)):
        finished(
            model,
            {f"{n}": 0.1 * n for n in range(8)},
            outputs_cut=outputs_cut,
            outputs=OutputFacts(0, 0, 0, 0, reference_words=60.0),
        )
    path = tmp_path / "runs" / "arxiv" / "trunc" / "trunc0000000" / "predictions.jsonl"
    write_summaries(path, [Summary(f"{place}", "The very same text.", None) for place in range(8)])
    message = compared(tmp_path, "lead", "trunc").about()
    assert (
        "Mean length in words: lead (lead0000) 3, trunc (trunc000) 4, the references 60." in message
    )
    assert [line for line in message if line.startswith("Warning")] == [
        "Warning, trunc (trunc000): nearly identical outputs, 1 of 8 distinct; "
        "7 of 8 outputs stopped at the length limit."
    ]


def test_corrected_over_the_whole_table(finished: Callable[..., Path], tmp_path: Path) -> None:
    """All measures of all pairs are corrected together; with --all-pairs there are more pairs, so more correction."""
    chance = np.random.default_rng(1)
    for shift, model in enumerate(("lead", "random", "trunc")):
        finished(
            model,
            {
                f"{place}": value + 0.03 * shift
                for place, value in enumerate(chance.uniform(0, 0.9, 40))
            },
        )
    few = compared(tmp_path, "lead", "random", "trunc")
    many = compared(tmp_path, "lead", "random", "trunc", all_pairs=True)
    for comparison, tests in ((few, 8), (many, 12)):
        rows = [row for pair in comparison.pairs for row in pair.rows]
        scores = {run.record.run_id: run.scores for run in comparison.runs}
        single = [
            scipy.stats.ttest_rel(
                scores[pair.run.record.run_id][f"{row.measure}_f"],
                scores[pair.baseline.record.run_id][f"{row.measure}_f"],
            ).pvalue
            for pair in comparison.pairs
            for row in pair.rows
        ]
        assert [row.p_holm for row in rows] == pytest.approx(holm(single).tolist())
        assert f"corrected (Holm) for the {tests} tests of this table" in " ".join(
            comparison.method()
        )
    assert [(pair.baseline.record.key.model, pair.run.record.key.model) for pair in many.pairs] == [
        ("lead", "random"),
        ("lead", "trunc"),
        ("random", "trunc"),
    ]
    assert [pair.run.record.key.model for pair in few.pairs] == ["random", "trunc"]


def test_what_was_measured_beside_rouge(finished: Callable[..., Path], tmp_path: Path) -> None:
    """Shares are 0–100, other measures keep their unit; only examples to which a measure applies are counted."""
    nan = float("nan")

    def facts(share: float, density: float) -> dict[str, object]:
        measures = {
            "fact_recall": share,
            "density": density,
            "fact_recall_single_position_3": 1,
            "fact_recall_chance": 1,
        }
        means = {
            name: {"mean": mean, "lo": mean, "hi": mean, "n": 4} for name, mean in measures.items()
        }
        return {"measures": means, "units": {"density": "words"}, "ranked_by": "fact_recall"}

    def extra(recall: list[float], density: list[float]) -> dict[str, list[float]]:
        places = {"fact_recall_single_position_3": [0.01] * 4, "fact_recall_chance": [0.01] * 4}
        return {"fact_recall": recall, "density": density, **places}

    finished("lead", FOUR, extra([0.0, 0.5, nan, 1.0], [1, 2, 3, 6]), **facts(50, 3))
    finished("trunc", FOUR, extra([0.5, 1.0, nan, 1.0], [2, 3, 4, 7]), **facts(250 / 3, 4))
    comparison = compared(tmp_path, "lead", "trunc")
    (pair,) = comparison.pairs
    assert [row.measure for row in pair.rows] == [*ROUGE_TYPES, "fact_recall", "density"]
    recall, density = pair.rows[-2:]
    assert (recall.n, recall.baseline_mean, recall.difference) == pytest.approx((3, 50, 100 / 3))
    assert (density.n, density.baseline_mean, density.difference) == (4, 3, 1)
    assert pair.main == recall
    assert [one.id for one in pair.moved] == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": "validation"}, "validation instead of test split"),
        ({"fingerprint": "f2"}, "other texts (f2 instead of f1)"),
        (
            {"fingerprint": "f2", "config": LIMITED},
            "other texts (dataset.limit=5 instead of the default)",
        ),
        (
            {"dataset": "pubmed", "fingerprint": "f2"},
            "pubmed instead of arxiv, other texts (f2 instead of f1)",
        ),
        (
            {"signature": "rouge:rouge_score-0.1.2|stemmer:none|n:20|v:1"},
            "stemmer:none instead of stemmer:porter",
        ),
    ],
)
def test_unlike_runs_are_refused(
    finished: Callable[..., Path], typed: Typed, changes: dict[str, object], message: str
) -> None:
    """Runs on other texts, or scored otherwise, are not compared, not even with --intersect; one line says why."""
    finished("lead", FOUR)
    finished("trunc", OTHERS, **changes)
    for flags in ((), ("--intersect",)):
        code, out, err = typed("lead", "trunc", *flags)
        assert (code, out) == (2, "")
        assert (
            err
            == f"longsumbench: trunc (trunc000) may not be compared with lead (lead0000): {message}\n"
        )


def test_other_examples_are_an_error_with_counts(
    finished: Callable[..., Path], typed: Typed, tmp_path: Path
) -> None:
    """Without --intersect nothing is compared; with it the common examples are, which are counted and named."""
    finished("lead", FOUR)
    finished(
        "trunc",
        {"b": 0.6, "d": 0.3, "e": 0.9},
        signature="rouge:rouge_score-0.1.2|stemmer:porter|n:3|v:1",
    )
    code, out, err = typed("lead", "trunc")
    assert (code, out) == (2, "")
    assert (
        "different examples (lead (lead0000) 4, trunc (trunc000) 3; 2 in common): --intersect compares"
        in err
    )
    code, out, err = typed("lead", "trunc", "--intersect", "--output", tmp_path / "written")
    assert (code, err) == (0, "")
    counts = "the 2 examples that all runs scored, of: lead (lead0000) 4, trunc (trunc000) 3."
    assert counts in " ".join(out.split())
    assert "\nCompared: b, d\n" in out
    assert " n:2 " in out
    assert compared(tmp_path, "lead", "trunc", intersect=True).pairs[0].rows[
        0
    ].difference == pytest.approx(15)
    assert "b, d" in (tmp_path / "written" / "comparison.md").read_text(encoding="utf-8")
    finished("random", {"e": 0.9})
    code, _, err = typed("lead", "random", "--intersect")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "0 in common): there is nothing to compare" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lead", "name two or more runs"),
        ("", "name two or more runs"),
        ("lead lead", "lead (lead0000) is named twice"),
        ("lead nobody", "no finished run is called 'nobody' under"),
        ("lead trunc --examples -1", "--examples=-1 is below 0"),
        ("lead trunc --al-pairs", "unknown flag '--al-pairs' (did you mean '--all-pairs'?)"),
    ],
)
def test_a_wrong_word_is_one_line_with_exit_code_2(
    finished: Callable[..., Path], typed: Typed, words: str, message: str
) -> None:
    """Wrong usage ends with exit code 2 and one line."""
    finished("lead", FOUR)
    finished("trunc", OTHERS)
    code, out, err = typed(*words.split())
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    "missing", [["scores.csv"], ["predictions.jsonl"], ["scores.csv", "predictions.jsonl"]]
)
def test_a_record_alone_is_not_enough(
    finished: Callable[..., Path], typed: Typed, missing: list[str]
) -> None:
    """A run that came without its files is an error that names them and the command that makes them."""
    finished("lead", FOUR)
    folder = finished(
        "trunc", OTHERS, command=("longsumbench", "run", "model=trunc", "dataset.path=my texts")
    )
    for name in missing:
        (folder / name).unlink()
    code, out, err = typed("lead", "trunc")
    assert (code, out) == (3, "")
    message = f"{folder}: {' and '.join(missing)} missing; the same `longsumbench run` command makes the run again"
    assert err == f"longsumbench: {message}: longsumbench run model=trunc 'dataset.path=my texts'\n"


def test_what_is_printed_and_written(
    finished: Callable[..., Path], typed: Typed, tmp_path: Path
) -> None:
    """The table is on stdout, the files next to the results under the runs' ids; a CSV row a pair and measure."""
    finished("lead", FOUR)
    finished("trunc", OTHERS, variant="input_length=64,x=1", seed=3)
    finished("oracle", OTHERS, oracle=True)
    code, out, err = typed("lead", "trunc", "oracle")
    assert (code, err) == (0, "")
    folder = tmp_path / "comparisons" / "lead0000-trunc000-oracle00"
    assert out.splitlines()[-2:] == [str(folder / f"comparison.{end}") for end in ("csv", "md")]
    assert "trunc input_length=64 x=1 seed=3 (trunc000) minus lead (lead0000)" in out
    assert "Oracles, which saw the references or their lengths: oracle (oracle00)." in out
    table = pd.read_csv(folder / "comparison.csv")
    assert list(table.columns) == [
        *(
            "baseline_model",
            "baseline_variant",
            "baseline_run_id",
            "model",
            "variant",
            "run_id",
            "measure",
            "n",
        ),
        *("baseline_mean", "mean", "difference", "low", "high", "p_holm", "detectable"),
        *("higher", "lower", "equal", "outcome"),
    ]
    assert table["measure"].tolist() == [*ROUGE_TYPES, *ROUGE_TYPES]
    assert table["difference"].tolist() == [15.0] * 8
