"""Finished runs next to each other: who may be compared, what is tested, what is reported, as a user types it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support.commands import Typed
from support.run_records import TRAINED, changed, measured, record, scores, write_run

from longsumbench.core import Summary
from longsumbench.leaderboards.significance import Outcome, build_blocks, read_all_scores
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.metrics.statistics import holm, paired_effect
from longsumbench.outputs.compare import Comparison, compare
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

Finished = Callable[..., Path]
LIMITED = {"dataset": {"name": "arxiv", "path": None, "limit": 5, "workers": 3}}
Scores = Mapping[str, float]


@pytest.fixture
def finished(tmp_path: Path) -> Finished:
    """Write the files of a finished run; return its folder."""

    def write(
        model: str,
        scores: Scores,
        extra: Mapping[str, Sequence[float]] | None = None,
        **facts: object,
    ) -> Path:
        fields = {"n": len(scores), "examples": f"{sorted(scores)}", **facts}
        run = record(model, 30, **{"command": ("longsumbench", "run"), **fields})
        summaries = [Summary(name, f"{model} on {name}.", None) for name in scores]
        return write_run(tmp_path, run, summaries, [*scores.values()], **(extra or {}))

    return write


@pytest.fixture
def compared_by_command(tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Run `compare` in a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: typed("compare", *words, "--results-dir", tmp_path)


def compared(root: Path, *names: str, **options: Any) -> Comparison:
    return compare(*names, results_dir=root, **options)


DEFAULT = ["rouge1", "rouge2", "rougeLsum"]
FOUR = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}
OTHERS = {"d": 0.3, "c": 0.3, "b": 0.6, "a": 0.4}


def test_two_runs_by_hand(finished: Finished, tmp_path: Path) -> None:
    """Examples are paired by id in any order: +30, +40, 0 and -10 points are +15 in the mean; four have no test."""
    finished("lead", FOUR)
    finished("trunc", OTHERS)
    comparison = compared(tmp_path, "lead", "trunc")
    (pair,) = comparison.pairs
    for row in pair.rows:
        assert (row.n, row.higher, row.lower, row.equal) == (4, 2, 1, 1)
        assert (row.baseline_mean, row.mean, row.difference) == pytest.approx((25, 40, 15))
        assert np.isnan([row.low, row.high]).all()
    assert [row.measure for row in pair.rows] == DEFAULT


def test_questions_about_one_text_are_one_case(finished: Finished, tmp_path: Path) -> None:
    """Twelve questions about six meetings are tested as `paired_effect` does with groups, also if one run lacks them."""
    gaps = np.repeat([0.3, 0.1, 0.25, 0.2, 0.15, 0.28], 2) + np.tile([0.01, -0.01], 6)
    groups = np.arange(12) // 2
    finished("lead", dict.fromkeys("lkjihgfedcba", 0.2))
    finished("trunc", dict(zip("lkjihgfedcba", 0.2 + gaps, strict=True)), {"group": groups})
    comparison = compared(tmp_path, "lead", "trunc", measures=["rouge1"])
    (row,) = comparison.pairs[0].rows
    effect = paired_effect(100 * gaps[:, None], groups=groups)
    assert (row.difference, row.p) == pytest.approx((effect.mean, effect.p_value()))
    assert comparison.about()[0] == "test split, 12 examples of 6 texts."


def test_what_is_said_above_the_tables(finished: Finished, tmp_path: Path) -> None:
    """Who was trained here next to who was not, mean lengths, and who wrote the same text over and over."""
    outputs = OutputStats(8, 8, 1, 0, words=54.0, reference_words=60.0)
    scores = {f"{index}": 0.1 * index for index in range(8)}
    finished("lead", scores)
    finished("trunc", scores, fit=TRAINED, outputs=outputs, outputs_cut=7)
    finished("seq2seq", scores, system={"checkpoint": "facebook/bart-large-cnn"})
    assert compared(tmp_path, "trunc", "seq2seq", "lead").about()[1:] == [
        "Trained here: trunc (trunc000). Not trained here, perhaps on these texts: seq2seq (seq2seq0).",
        "Mean words of the outputs / the references: trunc (trunc000) 54 / 60.",
        "Warning, trunc trunc000: nearly identical outputs, 1 of 8 distinct; 7 of 8 outputs stopped at the length limit.",
    ]
    pair = compared(tmp_path, "lead", "trunc")
    assert pair.pairs[0].main.outcome == Outcome.NOT_LEARNED
    assert "one of the two did not learn to summarize." in pair.render()
    assert not any("rained here" in line for line in pair.about())


def test_corrected_over_the_whole_table(finished: Finished, tmp_path: Path) -> None:
    """All measures of all pairs are corrected together; with --all-pairs there are more pairs, so more correction."""
    chance = np.random.default_rng(1)
    scores = {}
    for shift, model in enumerate(("lead", "random", "trunc")):
        scores[model] = chance.uniform(0, 0.9, 40) + 0.03 * shift
        finished(model, dict(zip(map(str, range(40)), scores[model].tolist(), strict=True)))
    sides = {False: [("lead", "random"), ("lead", "trunc")]}
    sides[True] = [*sides[False], ("random", "trunc")]
    for all_pairs, models in sides.items():
        comparison = compared(tmp_path, "lead", "random", "trunc", all_pairs=all_pairs)
        frame = comparison.frame()
        p_values = []
        for baseline, model in models:
            p_value = scipy.stats.ttest_rel(scores[model], scores[baseline]).pvalue
            p_values += [p_value] * len(DEFAULT)
        assert frame["p"].tolist() == pytest.approx(p_values)
        assert frame["p_holm"].tolist() == pytest.approx(holm(p_values).tolist())
        pairs = dict.fromkeys(zip(frame["baseline_model"], frame["model"], strict=True))
        assert list(pairs) == models
        tests = f"corrected (Holm) for the {len(p_values)} tests of this table"
        assert tests in comparison.method()[0]


def test_one_difference_has_one_interval(finished: Finished, tmp_path: Path) -> None:
    """Tested alone, it has the plain test's p and interval, as in the table; otherwise the level says that it has not.

    With seven gains of 0.7 to 0.95 the plain interval would pass 100.
    """
    gains = [0.7, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95]
    finished("lead", {f"{place}": 0.0 for place in range(7)})
    folder = finished("trunc", {f"{place}": gain for place, gain in enumerate(gains)})
    changed(RunRecord.read(folder), scores=scores(90)).write(folder)
    (alone,) = compared(tmp_path, "lead", "trunc", measures="rouge1").pairs[0].rows
    results = Results(tmp_path)
    records = [*results.records("arxiv")]
    (block,) = build_blocks(records, read_all_scores(results, records))
    judged = next(test for (_, name), test in block.differences.items() if name == "rouge1")
    assert (alone.confidence, alone.p) == (95, alone.p_holm)
    assert (-judged.high, -judged.low) == pytest.approx((alone.low, alone.high))
    together = compared(tmp_path, "lead", "trunc").pairs[0].rows[0]
    assert together.p == alone.p
    assert together.confidence == pytest.approx(100 * (1 - 0.05 / 3))
    assert together.low < alone.low < alone.high <= together.high <= 100


def test_what_was_measured_beside_rouge(finished: Finished, tmp_path: Path) -> None:
    """Shares are 0–100, other measures keep their unit; only examples to which a measure applies are counted."""
    nan = float("nan")

    means = {"fact_recall": 50.0, "density": 3.0}
    breakdown = {"fact_recall_single_position_3": 1.0, "fact_recall_chance": 1.0}
    facts = {"measures": measured(means | breakdown), "units": {"density": "words"}}
    columns = {name: [0.01] * 4 for name in breakdown}
    lead = {"fact_recall": [0.0, 0.5, nan, 1.0], "density": [1, 2, 3, 6]}
    trunc = {"fact_recall": [0.5, 1.0, nan, 1.0], "density": [2, 3, 4, 7]}
    finished("lead", FOUR, columns | lead, **facts, ranked_by="fact_recall")
    finished("trunc", FOUR, columns | trunc, **facts, ranked_by="fact_recall")
    comparison = compared(tmp_path, "lead", "trunc")
    (pair,) = comparison.pairs
    assert [row.measure for row in pair.rows] == [*DEFAULT, "fact_recall"]
    recall = pair.rows[-1]
    (density,) = compared(tmp_path, "lead", "trunc", measures="density").pairs[0].rows
    assert (recall.n, recall.baseline_mean, recall.difference) == pytest.approx((3, 50, 100 / 3))
    assert (density.n, density.baseline_mean, density.difference) == (4, 3, 1)
    assert pair.main == recall


def test_unlike_runs_are_refused(finished: Finished, compared_by_command: Typed) -> None:
    """Runs on other texts are not compared, not even with --intersect; one line says why."""
    finished("lead", FOUR)
    finished("trunc", OTHERS, fingerprint="f2", config=LIMITED)
    refused = "longsumbench: trunc (trunc000) may not be compared with lead (lead0000)"
    reason = "other texts (dataset.limit=5 instead of the default)"
    answer = compared_by_command("lead", "trunc", "--intersect")
    assert answer == (2, "", f"{refused}: {reason}\n")


def test_other_examples_are_an_error_with_counts(
    finished: Finished, compared_by_command: Typed, tmp_path: Path
) -> None:
    """Without --intersect nothing is compared; with it the common examples are, which are counted and named."""
    finished("lead", FOUR)
    signature = "rouge:rouge_score-0.1.2|stemmer:porter|n:3|v:1"
    finished("trunc", {"b": 0.6, "d": 0.3, "e": 0.9}, signature=signature)
    code, out, err = compared_by_command("lead", "trunc")
    counts = "lead (lead0000) 4, trunc (trunc000) 3"
    assert (code, out) == (2, "")
    assert f"different examples ({counts}; 2 in common): --intersect compares" in err
    folder = tmp_path / "written"
    code, out, err = compared_by_command("lead", "trunc", "--intersect", "--output", folder)
    assert (code, err) == (0, "")
    for text in (f"the 2 examples that all runs scored, of: {counts}.", "Compared: b, d", " n:2 "):
        assert text in out
    (pair,) = compared(tmp_path, "lead", "trunc", intersect=True).pairs
    assert pair.main.difference == pytest.approx(15)
    assert "b, d" in (folder / "comparison.md").read_text()
    finished("random", {"e": 0.9})
    code, _, err = compared_by_command("lead", "random", "--intersect")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "0 in common): there is nothing to compare" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("lead", "name two or more runs"),
        ("lead lead", "lead (lead0000) is named twice"),
        ("lead trunc --measures rouge1,rouge3", "unknown measure of trunc (trunc000) and lead"),
    ],
)
def test_a_wrong_word_is_one_line_with_exit_code_2(
    finished: Finished, compared_by_command: Typed, words: str, message: str
) -> None:
    """Wrong usage ends with exit code 2 and one line."""
    finished("lead", FOUR)
    finished("trunc", OTHERS)
    code, out, err = compared_by_command(*words.split())
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


def test_what_is_printed_and_written(
    finished: Finished, compared_by_command: Typed, tmp_path: Path
) -> None:
    """The table is on stdout, the files next to the results under the runs' ids; a CSV row a pair and measure."""
    finished("lead", FOUR)
    finished("trunc", OTHERS, variant="input_length=64,x=1", seed=3)
    finished("oracle", OTHERS, oracle=True)
    code, out, err = compared_by_command("lead", "trunc", "oracle")
    assert (code, err) == (0, "")
    folder = tmp_path / "comparisons" / "lead0000-trunc000-oracle00"
    assert out.splitlines()[-2:] == [str(folder / f"comparison.{end}") for end in ("csv", "md")]
    assert "trunc, x 1, input_length 64, seed 3 (trunc000) minus lead (lead0000)" in out
    assert "Oracles, which saw the references or their lengths: oracle (oracle00)." in out
    table = pd.read_csv(folder / "comparison.csv")
    columns = "baseline_model baseline_variant baseline_run_id model variant run_id measure n"
    columns += " baseline_mean mean difference low high confidence p p_holm detectable higher lower equal outcome"
    assert list(table.columns) == columns.split()
    assert table["measure"].tolist() == [*DEFAULT, *DEFAULT]
    assert table["difference"].tolist() == [15.0] * 6
    assert table["low"].isna().all()
