"""Coherence of references, shuffled and not, and of runs: by a metric whose numbers are known, and a tiny BERT."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.drawn import example
from support.reproduction.sampled import drawn
from support.run_records import TRAINED, record

from longsumbench.core import Example, Scoring
from longsumbench.errors import DataError
from longsumbench.metrics.statistics import holm, paired_effect
from longsumbench_reproduction.analysis.coherence import REFERENCE, SHUFFLED, score_texts, shuffled
from longsumbench_reproduction.analysis.sampled import estimate_mean
from longsumbench_reproduction.metrics.coherence import Coherence


class Ordered(Coherence):
    """The share of neighbours in alphabetical order; no model is asked."""

    def __init__(self) -> None:
        super().__init__(Scoring())

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Compare neighbouring lines."""
        lines = prediction.splitlines()
        ordered = [one <= other for one, other in pairwise(lines)]
        return {"coherence": float(np.mean(ordered)) if ordered else math.nan}

    def signature(self, n: int) -> str:
        """Name it."""
        return "ordered"


def examples(size: int) -> list[Example]:
    """Return examples whose references are in alphabetical order; the first has one sentence."""
    return [
        example(f"{n}", ["x"], reference=[f"{letter} is." for letter in "abcde"[: n + 1]])
        for n in range(size)
    ]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 8])
def test_shuffling_leaves_the_sentences(size: int) -> None:
    """They are the same in another order, the same one for the same seed; one sentence, or equal ones, stay."""
    reference = [f"{number}." for number in range(size)]
    for seed in ("a", "b", "c", "d"):
        mixed = shuffled(reference, seed)
        assert sorted(mixed) == sorted(reference)
        assert mixed == shuffled(reference, seed)
        assert (list(mixed) != reference) == (size > 1)
    assert len({shuffled(reference, f"{seed}") for seed in range(20)}) > 1 or size < 3
    assert shuffled(["a.", "a."], "x") == ("a.", "a.")


def test_rows_and_tests() -> None:
    """Rows are reference, shuffled and runs; each is tested against the first run where both apply, corrected by Holm.

    References are in order: 100. Of the run "up" too; "down" never is, and is one sentence for the last example.
    """
    all_, down = examples(5), {f"{n}": "z is.\ny is.\nx is." for n in range(4)} | {"4": "one."}
    up = {f"{n}": "a is.\nb is." for n in range(5)}
    found = score_texts(
        drawn(all_, (record("up", 1.0), up), (record("down", 1.0), down)), Ordered()
    )
    table: Any = found.table().set_index("row")
    *texts, run, other = table.index
    assert texts == [REFERENCE, SHUFFLED]
    assert table["coherence"].tolist()[::2] == [100.0, 100.0]
    assert table.loc[other, "coherence"] == 0.0
    assert table["n"].tolist() == [4, 4, 5, 4]
    assert table["one_sentence_or_none"].tolist() == [1, 1, 0, 1]
    assert table.loc[other, "difference"] == -100.0
    assert table.loc[other, "tested"] == 4
    assert math.isnan(table.loc[run, "p_holm"])
    expected = [
        paired_effect(gaps[np.isfinite(gaps), None]).p_value()
        for gaps in (
            100 * (found.scores[name] - found.scores[run]) for name in (REFERENCE, SHUFFLED, other)
        )
    ]
    assert table.loc[[REFERENCE, SHUFFLED, other], "p_holm"].tolist() == holm(expected).tolist()


def test_a_trained_run_has_one_seed_and_no_verdict() -> None:
    """However far apart, a run of a trained system has neither a p-value nor a mark; a line says why."""
    all_ = examples(40)
    first = record("up", 1.0), {f"{n}": "a is.\nb is." for n in range(40)}
    texts = {f"{n}": "z is.\ny is." for n in range(40)}
    found = score_texts(
        drawn(all_, first, (record("down", 1.0, fit=TRAINED, seed=1), texts)), Ordered()
    )
    (row,) = [row for row in found.blocks()[0].rows if "down" in row[0]]
    assert row[-2:] == ["-100.00", ""]
    assert "another may differ" in found.render()
    sure = score_texts(drawn(all_, first, (record("down", 1.0), texts)), Ordered())
    (row,) = [row for row in sure.blocks()[0].rows if "down" in row[0]]
    assert row[-2:] == ["-100.00", "< 0.001"]


def test_without_runs_the_reference_is_the_baseline() -> None:
    """Then the shuffled one is tested against it; examples without a reference are left out and counted."""
    found = score_texts(drawn([*examples(5), example("none", ["x"], reference=[])]), Ordered())
    table: Any = found.table().set_index("row")
    assert found.baseline == REFERENCE
    assert table.loc[SHUFFLED, "difference"] < 0
    assert "1 example left out: no reference" in found.render()
    with pytest.raises(DataError, match="nothing to score"):
        score_texts(drawn([example("none", ["x"], reference=[])]), Ordered())


def test_mean_of_few_values() -> None:
    """No values have no mean, one value has no interval, and equal values have one without width."""
    assert estimate_mean(np.zeros(0)) is None
    assert estimate_mean(np.array([4.0])) == pytest.approx((4, np.nan, np.nan), nan_ok=True)
    assert estimate_mean(np.full(5, 4.0)) == (4.0, 4.0, 4.0)
