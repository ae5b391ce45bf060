"""Examples that share a source: which are one group, and what intervals, tests and floors make of it."""

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from hypothesis import given, strategies as st
from support.json_files import write_rows
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Document, Example, Metric, Scoring, Section
from longsumbench.corpora.planting.plant import plant_facts
from longsumbench.metrics import statistics
from longsumbench.metrics.aggregate import aggregate_measures
from longsumbench.metrics.evaluate import score_all, score_shuffled
from longsumbench.metrics.statistics import (
    approximate_randomization,
    mean_over_seeds,
    paired_effect,
    resampled_means,
    sum_groups,
)

SIZES = st.lists(st.integers(1, 9), min_size=3, max_size=12).filter(lambda sizes: max(sizes) > 1)
RANDOM = np.random.default_rng(3)
VALUES = RANDOM.beta(2, 5, (40, 1))
ARGUMENTS = {
    "values": VALUES,
    "parts": VALUES[:, 0],
    "wholes": 1 - VALUES[:, 0],
    "scores": [VALUES, VALUES**2, VALUES[::-1]],
    "resamples": 50,
    "seed": 1,
    "is_share": True,
}
FUNCTIONS = [
    function
    for name, function in inspect.getmembers(statistics, inspect.isfunction)
    if "groups" in [*inspect.signature(function).parameters][1:]
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_numbers_of_groups_decide_nothing(function: Callable[..., Any]) -> None:
    """Single examples under any numbers are as without groups, to the last digit; so are groups with other numbers."""
    names = ARGUMENTS.keys() & inspect.signature(function).parameters
    compute = partial(function, **{name: ARGUMENTS[name] for name in names})
    np.testing.assert_equal(compute(groups=RANDOM.permutation(40)), compute(groups=None))
    groups = RANDOM.integers(0, 9, 40)
    other_numbers = RANDOM.permutation(9)[groups]
    np.testing.assert_equal(compute(groups=other_numbers), compute(groups=groups))


@given(SIZES, st.integers(0, 99))
def test_the_error_is_that_of_the_matrix_formula(sizes: list[int], seed: int) -> None:
    """CR2 and its degrees are those of Bell and McCaffrey with matrices, for examples in any order."""
    random = np.random.default_rng(seed)
    groups = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    values = random.normal(size=len(groups))
    residual_maker = np.eye(len(groups)) - 1 / len(groups)
    terms = []
    for group in np.unique(groups):
        own = groups == group
        adjustment = np.linalg.inv(scipy.linalg.sqrtm(residual_maker[np.ix_(own, own)]))
        terms.append(adjustment.sum(axis=0) @ residual_maker[own] / len(groups))
    effect = mean_over_seeds(values[:, None], groups=groups)
    assert effect.error**2 == pytest.approx(((np.array(terms) @ values) ** 2).sum())
    covariances = np.array(terms) @ np.transpose(terms)
    degrees = np.trace(covariances) ** 2 / (covariances**2).sum()
    assert effect.example_degrees == pytest.approx(degrees)


def test_three_groups_by_hand() -> None:
    """Of 3; 0, 0; 1, 1, 1 the residuals add up to 2, -2 and 0, so the variance is (4 · 6/5 + 4 · 6/4 + 0) / 36."""
    values, groups = np.array([3.0, 0, 0, 1, 1, 1]), np.array([5, 2, 2, 9, 9, 9])
    effect = mean_over_seeds(values[:, None], groups=groups)
    # shares p of 1/6, 2/6 and 3/6; with w = p² / (1 − p) the sums are Σp² = 350, Σw² = 251 and (Σw)² = 441, each / 900
    expected = (1, math.sqrt(0.3), 900 / (350 - 251 + 441))
    assert effect[:3] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_swaps_of_whole_groups(seed: int) -> None:
    """The test swaps all questions of a text together: its p-value is the share of all 2^9 swaps, also the t test's."""
    random = np.random.default_rng(seed)
    groups = random.permutation(np.repeat(np.arange(9), random.integers(2, 5, 9)))
    differences = random.normal(0.4, 1, 9)[groups] + random.normal(0, 0.3, len(groups))
    swaps = np.array(list(product([-1, 1], repeat=9)))[:, groups] @ differences
    exact = np.mean(np.abs(swaps) >= abs(differences.sum()) - 1e-9)
    p_value = approximate_randomization(sum_groups(differences, groups))
    assert p_value == pytest.approx(exact, abs=0.02)
    t_test = paired_effect(differences[:, None], groups=groups).p_value()
    assert t_test == pytest.approx(exact, abs=0.08)


def test_equal_questions_are_one_observation() -> None:
    """Each example three times is the mean of one; its interval and test are those of one, not narrower."""
    thrice, groups = np.repeat(VALUES, 3, axis=0), np.repeat(np.arange(40), 3)
    assert mean_over_seeds(thrice, groups=groups) == pytest.approx(mean_over_seeds(VALUES))
    assert resampled_means(thrice, 50, groups) == pytest.approx(resampled_means(VALUES, 50))


def test_the_order_of_rows_decides_nothing() -> None:
    """Intervals of a table are those of its rows in any order; questions of a text that lack a measure do not count."""
    table = pd.DataFrame(
        {"m": RANDOM.random(12), "group": np.arange(12) // 3}, list("lkjihgfedcba")
    )
    assert aggregate_measures(table, 50) == aggregate_measures(table.sample(frac=1), 50)
    table["m"] = [1.0, *[math.nan] * 10, 1.0]
    mean = aggregate_measures(table, 50)["m"]
    # two texts with 1 of 1: the lower end of the exact binomial interval
    assert (mean.n, mean.lo, mean.hi) == (2, pytest.approx(100 * math.sqrt(0.025)), 100)


class Meeting(Metric):
    """Records which prediction meets which reference."""

    name, columns = "meeting", ("meets",)

    def __init__(self) -> None:
        super().__init__(Scoring())
        self.met: dict[str, str] = {}

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Record it."""
        self.met[prediction] = example.references[0][0]
        return {"meets": float(self.met[prediction])}

    def signature(self, n: int) -> str:
        """Return its name."""
        return self.name


def questions(groups: list[str]) -> list[Example]:
    """Return examples whose only reference is their id."""
    return [Example(f"{n}", None, None, (), ((f"{n}",),), group=g) for n, g in enumerate(groups)]


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=12).filter(lambda g: len(set(g)) > 1))
def test_no_output_meets_a_reference_of_its_text(groups: list[str]) -> None:
    """For a floor each output is used once, and always for another text."""
    examples, metric = questions(groups), Meeting()
    table = score_shuffled([metric], examples, [example.id for example in examples])
    assert list(table.index) == [example.id for example in examples]
    assert metric.met.keys() == set(table.index)
    assert all(groups[int(output)] != groups[int(target)] for output, target in metric.met.items())


def test_a_floor_of_single_questions_is_a_cycle() -> None:
    """With a text each, the ids are shuffled, and each output meets the reference of the next one; its row has that score."""
    metric = Meeting()
    table = score_shuffled([metric], questions(list("abcdefgh")), [*map(str, range(8))])
    assert dict(table["meets"]) == {output: float(met) for output, met in metric.met.items()}
    order = [*map(str, np.random.default_rng(1).permutation(8))]
    assert metric.met == dict(zip(order, [*order[1:], order[0]], strict=True))
    assert score_shuffled([metric], questions(["a", "a"]), ["0", "1"]).empty


def test_groups_are_a_column_only_if_shared() -> None:
    """The column numbers the texts in reading order, as whole numbers; without a shared text there is none."""
    for groups, numbers in ((["b", "a", "b"], [0, 1, 0]), (["b", "a", "c"], None)):
        table = score_all([Meeting()], zip("012", questions(groups), strict=True)).per_example
        assert (table["group"].tolist() if "group" in table else None) == numbers


def text_of(*sentences: str, identity: str = "x", title: str | None = None) -> Example:
    """Return an example of one document."""
    return Example(identity, None, None, (Document(title, (Section(None, (sentences,)),)),), ())


def test_the_source_of_untidy_texts() -> None:
    """The same sentences are one source whatever the title; nothing but blanks, or no document, is none."""
    first = text_of("Half \ud800 a pair.", "Yes.")
    other = text_of("Half \ud800 a pair.", "Yes.", identity="y", title="Other")
    assert first.source_group() == other.source_group()
    assert first.source_group() != text_of("Half a pair.", "Yes.").source_group()
    assert replace(first, group="m").source_group() == replace(text_of("No."), group="m").group
    for empty in (text_of(), text_of(" ", ""), Example("x", None, None, (), ())):
        assert [empty.source_group(), replace(empty, id="y").source_group()] == ["x", "y"]
        assert replace(empty, group="").source_group() == "x"


def test_planted_facts_change_no_source() -> None:
    """Questions about one meeting are one group, whatever facts were planted for each of them."""
    meeting = text_of(*(f"On day {day} it rained in the valley." for day in range(60)))
    planted = [plant_facts(replace(meeting, id=name), 4) for name in ("q1", "q2", "q3")]
    assert len({each.source_text() for each in planted}) == 3
    assert {each.source_group() for each in planted} == {meeting.source_group()}


def test_own_texts_name_their_groups(tmp_path: Path, cache: ArtifactCache) -> None:
    """`dataset.columns.group` may hold numbers or texts; without it texts decide; a row without the field is an error."""
    rows: list[dict[str, Any]] = [
        {"id": n, "document": "It rained.", "summary": "Rain.", "talk": talk}
        for n, talk in enumerate([7, "7", "x"])
    ]
    path = write_rows(tmp_path / "test.jsonl", rows)
    for columns, number in ((None, 1), ({"group": "talk"}, 2)):
        texts = read_texts("jsonl", path, cache, columns=columns)
        assert len({example.source_group() for example in texts.splits["test"]}) == number
    write_rows(path, [{**rows[0], "talk": None}])
    problem = reading_problem("jsonl", path, cache, columns={"group": "talk"})
    assert "the field 'group'" in problem
