"""Scores per example, their means and intervals, and the file they stand in."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from longsumbench.configuration import Scoring
from longsumbench.documents import Sentences
from longsumbench.errors import DataError
from longsumbench.metrics.metric import Metric, aggregate, read_scores, score_all, write_scores
from longsumbench.registry import metrics
from longsumbench.statistics import bootstrap_interval

CAT: list[Sentences] = [("the cat sat", "it slept")]


@pytest.fixture
def rouge() -> Metric:
    metric: Metric = metrics.load("rouge")(Scoring())
    return metric


def test_columns(rouge: Metric) -> None:
    """A score has precision, recall and F of all four types, in the order of the file."""
    expected = [f"{kind}_{part}" for kind in ("rouge1", "rouge2", "rougeL", "rougeLsum") for part in "prf"]
    assert rouge.columns == expected == list(rouge.score("the cat", CAT))


def test_prediction_is_split_as_the_suite_splits(rouge: Metric) -> None:
    """Sentences in another order lose ROUGE-L and keep ROUGE-Lsum: the prediction was split, the reference kept."""
    score = rouge.score("It slept. The cat sat.", CAT)
    assert score["rougeLsum_f"] == 1.0
    assert score["rougeL_f"] == pytest.approx(3 / 5)


def test_empty_prediction_counts(rouge: Metric) -> None:
    """An empty prediction is a row of zeros and is counted."""
    scored = score_all(rouge, [("a", "the cat sat", CAT), ("b", " \n", CAT)])
    assert scored.empty_predictions == 1
    assert not scored.per_example.loc["b"].any()
    assert aggregate(scored.per_example)["rouge1"]["p"] == 50.0


def test_empty_reference_is_left_out(rouge: Metric) -> None:
    """An example whose references are all empty is named and not in the mean; one usable reference keeps it."""
    scored = score_all(rouge, [("a", "x", [("",), ()]), ("b", "the cat sat", [(), *CAT]), ("c", "y", [])])
    assert scored.empty_references == ("a", "c")
    assert list(scored.per_example.index) == ["b"]


def test_nothing_to_score(rouge: Metric) -> None:
    """Without one usable reference there is no mean, and that is said."""
    scored = score_all(rouge, [("a", "x", [("—",)])])
    with pytest.raises(DataError, match="no example can be scored"):
        aggregate(scored.per_example)


def test_double_prediction(rouge: Metric) -> None:
    """Two predictions for one example are an error that names it."""
    with pytest.raises(DataError, match="'a'"):
        score_all(rouge, [("a", "x", CAT), ("a", "y", CAT)])


def test_aggregate_by_hand() -> None:
    """Means are plain, in percent; the interval is the bootstrap's over the rows sorted by id."""
    table = pd.DataFrame({"x_p": [0.5, 1], "x_r": [0, 0.5], "x_f": [0.2, 0.6]}, index=pd.Index(["b", "a"], name="id"))
    low, high = bootstrap_interval([60.0, 20.0], 200, seed=1)
    assert aggregate(table, 200)["x"] == pytest.approx({"p": 75, "r": 25, "f": 40, "f_lo": low, "f_hi": high})


def test_order_of_examples_changes_nothing() -> None:
    """Means and intervals are the same to the last bit in whatever order examples were finished."""
    values = np.random.default_rng(1).random((50, 3))
    table = pd.DataFrame(values, columns=["x_p", "x_r", "x_f"], index=[f"e{number}" for number in range(50)])
    assert aggregate(table, 100) == aggregate(table.sample(frac=1, random_state=1), 100)


def test_scores_file(tmp_path: Path, rouge: Metric) -> None:
    """A table of scores is read back to the last bit, whatever its ids look like."""
    items = [(name, "the cat is one third of it", CAT) for name in ("007", "NA", "a,b", 'say "x"', "")]
    table = score_all(rouge, items).per_example
    write_scores(tmp_path / "scores.csv", table)
    pd.testing.assert_frame_equal(read_scores(tmp_path / "scores.csv"), table, check_exact=True, check_index_type=False)
    assert (tmp_path / "scores.csv").read_text().startswith("id,rouge1_p,rouge1_r,rouge1_f,rouge2_p,")


@pytest.mark.parametrize("content", [None, "", "name,x\na,1\n", "id,x\na,high\n"])
def test_no_scores_file(tmp_path: Path, content: str | None) -> None:
    """A missing file, or one that is no table of scores, is an error that names it."""
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"scores\.csv"):
        read_scores(path)


def test_line_breaks_of_a_prediction_end_its_sentences() -> None:
    """Two lines in the other order than the reference's sentences: the union LCS finds both, so Lsum is 1, L is 1/2."""
    reference = ("epsilon zeta eta theta", "alpha beta gamma delta")
    scores = metrics.load("rouge")(Scoring()).score("alpha beta gamma delta\nepsilon zeta eta theta", [reference])
    assert (scores["rougeLsum_f"], scores["rougeL_f"]) == (1.0, 0.5)
