"""Novel and repeated n-grams and lengths: worked by hand, and what must hold of any texts."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from support.drawn import example

from longsumbench.core import Scoring, Sentences
from longsumbench.core.registry import metrics

SOURCE = "The cat sat on the mat. It slept."
TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d."]), max_size=20).map(" ".join)


def score(
    name: str, prediction: str, source: str = SOURCE, references: tuple[Sentences, ...] = (("x",),)
) -> list[float]:
    """Return the columns of a metric, in their order."""
    metric = metrics.load(name)(Scoring())
    row = metric.score(prediction, replace(example("e", [source]), references=references))
    return [row[column] for column in metric.columns]


def test_repetition_by_hand() -> None:
    """Again come "the", "cat" and "the cat"; no three words do."""
    assert score("repetition", "The cat saw the cat.") == pytest.approx([2 / 5, 1 / 4, 0, 0])


def test_length_by_hand() -> None:
    """Four words next to references of two and of six: the ratio is 1; a third one without words does not count."""
    references: tuple[Sentences, ...] = (("one two",), ("one two three.", "four five six"), ("—",))
    assert score("length_ratio", "A b, c d.", references=references) == [1.0, 4.0, 4.0]


def test_a_word_is_a_tokenizers() -> None:
    """With tokenizer=unicode the words of every script count; the default one drops them."""
    assert score("length_ratio", "кот спал")[1] == 0.0
    metric = metrics.load("length_ratio")(Scoring(tokenizer="unicode"))
    of_word = example("e", ["кот"], reference=["кот"])
    assert metric.score("кот спал", of_word)["length_ratio"] == 2.0
    assert metric.signature(1) == "length_ratio:1|tokenizer:unicode"


@pytest.mark.parametrize("name", ["novel_ngrams", "repetition"])
def test_short_summaries(name: str) -> None:
    """A column of n-grams applies to summaries of n words and more; an empty summary has none."""
    assert [math.isnan(value) for value in score(name, "cat sat")] == [False, False, True, True]
    assert all(map(math.isnan, score(name, "")))


@given(TEXTS, TEXTS)
def test_a_longer_ngram_is_new_where_a_part_of_it_is(prediction: str, source: str) -> None:
    """The shares equal a count word by word, and what is in the source is new nowhere."""
    words, known = prediction.replace(".", "").split(), f" {source.replace('.', '')} "
    for n, value in enumerate(score("novel_ngrams", prediction, source), start=1):
        grams = [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]
        if grams:
            assert value == pytest.approx(
                sum(f" {gram} " not in known for gram in grams) / len(grams)
            )
    copied = score("novel_ngrams", source, source)
    assert all(value == 0 or math.isnan(value) for value in copied)
