"""Names, numbers and copied words of a summary: worked by hand, against slower metrics, and on real corpora."""

import math

import numpy as np
import pandas as pd
import pytest
from agreement import PUBLISHED
from hypothesis import given, strategies as st
from support.waiting import assert_linear

from longsumbench.core import Example, Scoring
from longsumbench.core.registry import metrics
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.metrics.evaluate import DEFAULT_METRICS
from longsumbench.metrics.names_and_numbers import names_in, numbers_in

SOURCE = "Mary Smith of the U.S. paid 3,000 dollars on 5 March 2021. Some bacteria grew by twelve percent."
WORDS = st.lists(
    st.sampled_from(
        ["a", "b", "c", "d.", "longer-than-sixteen-letters", "longer-than-sixteen letters"]
    )
)
TEXTS = WORDS.map(" ".join)


def example(source: str, title: str | None = None, query: str | None = None) -> Example:
    """Return an example with this source."""
    row = {"id": "e", "title": title, "query": query, "document": source, "summary": "x"}
    return jsonl_example(row)


def score(name: str, prediction: str, source: str = SOURCE, **topic: str) -> list[float]:
    """Return the columns of a metric, in their order."""
    metric = metrics.load(name)(Scoring())
    return list(metric.score(prediction, example(source, **topic)).values())


@pytest.mark.parametrize(
    ("expected", "predictions"),
    [
        (1.0, "Dr. Smith paid.|The U.S. paid."),
        (0.0, "Mary Jones paid."),
        (1 / 3, "Smith's aide met Jones in Rome."),
        (
            math.nan,
            "Bacteria grew. However, they died.|They met in March.|mary smith paid|MARY SMITH PAID JONES|",
        ),
    ],
)
def test_names_by_hand(expected: float, predictions: str) -> None:
    """The share of names that the source has, without titles; undefined, not 0, without names and in lower case.

    Words at a sentence start are no names, and a month is a date.
    """
    for prediction in predictions.split("|"):
        assert score("entity_precision", prediction) == pytest.approx([expected], nan_ok=True)


@pytest.mark.parametrize(
    ("expected", "predictions"),
    [
        (
            1.0,
            "3000 dollars|three thousand dollars|3 thousand or 3k dollars|12 % more|On 2021-03-05|On March 5th, 2021",
        ),
        (0.0, "4,000 dollars"),
        (1 / 2, "On the fifth of April"),
        (1 / 3, "It grew by 12.0 in 1999 and 300"),
        (math.nan, "one of the first|p53 may march"),
    ],
)
def test_numbers_by_hand(expected: float, predictions: str) -> None:
    """Numbers and dates are compared by their value; undefined, not 0, without numbers."""
    for prediction in predictions.split("|"):
        assert score("number_precision", prediction) == pytest.approx([expected], nan_ok=True)


def test_notations_of_the_source() -> None:
    """Words, scales, ordinals and dates in digits of the source match digits of the summary."""
    source = "The twenty-first of 2.5 million on 03/04/1999, one hundred and five times, 5km."
    predictions = "21|2,500,000|2.5 million|in April 1999|105|5 km|the 21st"
    for prediction in predictions.split("|"):
        assert score("number_precision", prediction, source) == [1.0], prediction
    assert score("number_precision", "250 million", source) == [0.0]


def test_title_and_query_count() -> None:
    """Names and numbers of the title and the query are known, too; nothing is copied from them."""
    topic = {"title": "Jones", "query": "What in 1999?"}
    assert score("entity_precision", "It was Jones.", **topic) == [1.0]
    assert score("number_precision", "in 1999", **topic) == [1.0]
    assert score("copied", "what in", **topic) == [0.0, 0.0]


def test_copied_by_hand() -> None:
    """Of six pairs the source has "some bacteria", "bacteria grew" and "grew by"; these are four words."""
    assert score("copied", "Some bacteria grew by much more money.") == [3 / 6, 4.0]
    assert score("copied", "dollars percent") == [0.0, 1.0]
    assert np.isnan(score("copied", "one")).all()


@given(TEXTS, TEXTS)
def test_copied_equals_slow_counts(prediction: str, source: str) -> None:
    """The share of bigrams is 1 − novel_ngrams_2, the longest copy that of all common sequences; also unicode."""
    for tokenizer in ("default", "unicode"):
        novel, copied = (
            metrics.load(name)(Scoring(tokenizer=tokenizer)) for name in ("novel_ngrams", "copied")
        )
        expected = 1 - novel.score(prediction, example(source))["novel_ngrams_2"]
        found = copied.score(prediction, example(source))
        assert found["copied_bigrams"] == pytest.approx(expected, nan_ok=True)
        words, text = (novel.words(side) for side in (prediction, source))
        sequences = {text[start:end] for end in range(len(text) + 1) for start in range(end)}
        longest = 0
        for start in range(len(words)):
            while words[start : start + longest + 1] in sequences and start + longest < len(words):
                longest += 1
        if len(words) > 1:
            assert found["copied_longest"] == longest


def test_names_and_numbers_are_read_once() -> None:
    """Sequences of capitalized words are one name, a scale belongs to its number, an ordinal ends a number."""
    names = list(
        names_in("Then Anna-Lena O'Brien met John F. Kennedy's aide in Paris, France.", "")
    )
    assert names == ["Anna-Lena O'Brien", "John F Kennedy", "Paris", "France"]
    values = [
        number.value or number.word
        for number in numbers_in("The first 205 of $3.5 million, twenty-third May.")
    ]
    assert values == ["205", "3500000", "23", "may"]


def test_stated_agreement_is_published() -> None:
    """The τ in the clause of each default metric are in agreement.csv."""
    table = pd.read_csv(PUBLISHED).query("level == 'within'")
    published = set(table["tau"].round(2))
    for name in DEFAULT_METRICS:
        words = [word.strip("(),") for word in metrics.load(name).agrees.split()]
        numbers = {float(word) for word in words if word.lstrip("-")[:1].isdigit()}
        assert numbers <= published


def test_many_names_take_linear_time() -> None:
    """Whether many words at sentence starts are common ones is found by reading the source once."""
    text = " ".join(f"Name{number}." for number in range(40_000))
    assert_linear(lambda length: list(names_in(text[:length], text[:length].lower())), len(text))
