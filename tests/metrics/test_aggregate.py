"""Scores per example, their means and intervals, and the file they are in."""

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from longsumbench.core import Example, Metric, Scoring, Sentences
from longsumbench.core.registry import metrics
from longsumbench.errors import DataError
from longsumbench.metrics.aggregate import (
    MeasureMean,
    aggregate,
    aggregate_measures,
    read_score_table,
    read_scores,
    values_at,
    write_scores,
)
from longsumbench.metrics.evaluate import score_all
from longsumbench.metrics.statistics import bootstrap_interval

CAT: Sentences = ("the cat sat", "it slept")


def example(*references: Sentences, name: str = "a") -> Example:
    """An example with the references; what was summarized does not matter here."""
    return Example(name, None, None, (), references)


@pytest.fixture
def rouge() -> Metric:
    metric: Metric = metrics.load("rouge")(Scoring())
    return metric


def test_metrics_stand_side_by_side() -> None:
    """No two metrics have a column in common, each has the name it is registered by, and a unit belongs to a column."""
    classes = {name: metrics.load(name) for name in metrics.shipped()}
    columns = [column for metric in classes.values() for column in metric.columns]
    assert len(columns) == len(set(columns))
    assert [metric.name for metric in classes.values()] == list(classes)
    for metric in classes.values():
        assert set(metric.units) <= {*metric.columns, *metric.further, "judge_alpha"}


def test_empty_prediction_counts(rouge: Metric) -> None:
    """An empty prediction is a row of zeros and is counted."""
    scored = score_all([rouge], [("the cat sat", example(CAT)), (" \n", example(CAT, name="b"))])
    assert scored.empty_predictions == 1
    assert not scored.per_example.loc["b"].any()
    assert aggregate(scored.per_example)["rouge1"].p == 50.0


def test_empty_reference_is_left_out(rouge: Metric) -> None:
    """An example whose references are all empty is named and not in the mean; one usable reference keeps it."""
    usable = ("the cat sat", example((), CAT, name="b"))
    scored = score_all([rouge], [("x", example(("",), ())), usable, ("y", example(name="c"))])
    assert scored.empty_references == ("a", "c")
    assert list(scored.per_example.index) == ["b"]


def test_double_prediction(rouge: Metric) -> None:
    """Two predictions for one example are an error that names it."""
    with pytest.raises(DataError, match="'a'"):
        score_all([rouge], [("x", example(CAT)), ("y", example(CAT))])


def test_aggregate_by_hand() -> None:
    """Means are plain, in percent; the interval is the bootstrap's over the rows sorted by id."""
    table = pd.DataFrame(
        {"x_p": [0.5, 1], "x_r": [0, 0.5], "x_f": [0.2, 0.6]}, index=pd.Index(["b", "a"], name="id")
    )
    low, high = bootstrap_interval([60.0, 20.0], 200)
    assert astuple(aggregate(table, 200)["x"]) == pytest.approx((75, 25, 40, low, high))


def test_a_table_of_scores_is_read_back_to_the_last_bit(tmp_path: Path, rouge: Metric) -> None:
    """A table of scores is read back to the last bit, whatever its ids look like."""
    names = ("007", "NA", "a,b", 'say "x"', "", "=1+1", "@x", "-7", "+", "'=1", "''-a", "'quoted'")
    items = [("the cat is one third of it", example(CAT, name=name)) for name in names]
    table = score_all([rouge], items).per_example
    write_scores(tmp_path / "scores.csv", table)
    pd.testing.assert_frame_equal(
        read_scores(tmp_path / "scores.csv"), table, check_exact=True, check_index_type=False
    )
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    assert lines[0].startswith("id,rouge1_p,rouge1_r,rouge1_f,rouge2_p,")
    assert not any(line.startswith(("=", "@", "-", "+")) for line in lines)  # formulas


@pytest.mark.parametrize("content", [None, "", "id,x\na,high\n"])
def test_a_missing_or_wrong_table_of_scores_is_named(tmp_path: Path, content: str | None) -> None:
    """A missing file, or one that is no table of scores, is an error that names it."""
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"scores\.csv"):
        read_scores(path)


def test_a_measure_is_averaged_where_it_applies() -> None:
    """Mean, interval and number are those of the examples that have a value; the interval is a plain bootstrap's."""
    values = np.array([0.5, np.nan, 1.0, np.nan, 0.25])
    table = pd.DataFrame({"x": values, "never": np.nan, "y": 0.25}, index=[*"abcde"])
    measures = aggregate_measures(table.iloc[::-1], resamples=300)
    low, high = bootstrap_interval([50.0, 100.0, 25.0], 300)
    assert astuple(measures["x"]) == pytest.approx((175 / 3, low, high, 3))
    assert measures["y"] == MeasureMean(25.0, 25.0, 25.0, 5)
    assert "never" not in measures


def test_scores_are_read_without_pandas_and_aligned_by_id(tmp_path: Path) -> None:
    """By hand: two of three examples in another order, and one that the table does not have."""
    (tmp_path / "scores.csv").write_text('id,score,words\n"b\nb",0.5,3\na,nan,4\nc,0.25,5\n')
    table = read_score_table(tmp_path / "scores.csv")
    assert table.sort().index == ["a", "b\nb", "c"]
    assert table.sort()["words"].tolist() == [4, 3, 5]
    for scores in (table, table.frame()):
        assert values_at(scores, "score", ["c", "x", "b\nb"]).tolist() == pytest.approx(
            [0.25, np.nan, 0.5], nan_ok=True
        )
