"""Ranking paragraphs by what they share with the title."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longsumbench.errors import UsageError
from longsumbench.ranking import rank, tfidf_with_title, title_similarity
from longsumbench.registry import rankers

TEXT = st.lists(st.sampled_from(["red", "fox", "den", "a", "the"]), max_size=6).map(" ".join)


def by_hand(title: str, paragraphs: list[str]) -> list[float]:
    """Eq. 25 and the cosine, written down with dictionaries."""
    bags = [text.split() for text in paragraphs]

    def vector(words: list[str]) -> dict[str, float]:
        found = {word: sum(word in bag for bag in bags) for word in words}
        return {word: words.count(word) * log(len(bags) / n) for word, n in found.items() if n}

    def norm(weights: dict[str, float]) -> float:
        return sqrt(sum(weight**2 for weight in weights.values()))

    query = vector(title.split())
    scores = []
    for words in bags:
        weights = vector(words)
        product = sum(weights.get(word, 0.0) * weight for word, weight in query.items())
        scores.append(product / (norm(weights) * norm(query)) if product else 0.0)
    return scores


@given(TEXT, st.lists(TEXT, max_size=6))
def test_tfidf_is_the_papers_equation(title: str, paragraphs: list[str]) -> None:
    """Scores from the library's counts equal Eq. 25 written down word by word."""
    assert tfidf_with_title(title, paragraphs) == pytest.approx(by_hand(title, paragraphs))


@given(TEXT, st.lists(TEXT, max_size=6))
def test_scores_lie_between_zero_and_one(title: str, paragraphs: list[str]) -> None:
    """Both rankers give one finite score per paragraph, 0–1."""
    for ranker in (tfidf_with_title, title_similarity):
        scores = ranker(title, paragraphs)
        assert scores.shape == (len(paragraphs),)
        assert np.all((scores >= 0) & (scores <= 1 + 1e-12))


def test_worked_tfidf() -> None:
    """Of "red fox", "red den den", "red" for "fox den": red weighs 0, fox and den ln 3, so 1/√2 twice and 0."""
    scores = tfidf_with_title("Fox den!", ["Red fox.", "red den den", "red"])
    assert scores == pytest.approx([1 / sqrt(2), 1 / sqrt(2), 0])
    assert rank(scores) == [0, 1, 2]


def test_worked_title_similarity() -> None:
    """The title "red fox" against "the red fox" is 2/√6, against "red" 1/√2, and words elsewhere change neither."""
    assert title_similarity("red fox", ["the red fox", "red"]) == pytest.approx([2 / sqrt(6), 1 / sqrt(2)])
    assert title_similarity("red fox", ["red", "fox hen"])[0] == pytest.approx(1 / sqrt(2))


def test_words_of_one_letter_count() -> None:
    """A title of one letter finds the paragraph that has it."""
    assert rank(tfidf_with_title("C", ["about B", "about C"])) == [1, 0]


def test_texts_without_words_score_zero() -> None:
    """Neither an empty paragraph nor an empty title is like anything; no paragraphs have no scores."""
    for ranker in (tfidf_with_title, title_similarity):
        assert ranker("red", ["", "…", "red fox", "fox"])[[0, 1]] == pytest.approx([0, 0])
        assert ranker("…", ["", "red"]) == pytest.approx([0, 0])
        assert ranker("red", []).shape == (0,)


@given(st.lists(st.floats(0, 1)))
def test_rank_sorts_stably(scores: list[float]) -> None:
    """The order goes from the best to the worst score, of equal ones the earlier first."""
    assert rank(scores) == sorted(range(len(scores)), key=lambda index: (-scores[index], index))


@pytest.mark.parametrize("name", ["tfidf", "title"])
def test_a_missing_title_is_an_error(name: str) -> None:
    """Both registered rankers need a title, and say so."""
    with pytest.raises(UsageError, match="title"):
        rankers.load(name)(None, ["a paragraph"])
