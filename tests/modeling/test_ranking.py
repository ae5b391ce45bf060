"""Ranking paragraphs by what they share with the title, and with one another."""

import re
from math import log, sqrt

import networkx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.toys import refuses

from longsumbench.core.registry import rankers
from longsumbench.modeling.ranking import bm25, lexrank, rank, similarities, tfidf, tfidf_with_title

TEXT = st.lists(st.sampled_from(["red", "Fox", "fox,", "den", "a", "the"]), max_size=6).map(
    " ".join
)


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def by_hand(title: str, paragraphs: list[str]) -> list[float]:
    """Eq. 25 and the cosine, written down with dictionaries."""
    bags = list(map(words_of, paragraphs))

    def vector(words: list[str]) -> dict[str, float]:
        found = {word: sum(word in bag for bag in bags) for word in words}
        return {word: words.count(word) * log(len(bags) / n) for word, n in found.items() if n}

    def norm(weights: dict[str, float]) -> float:
        return sqrt(sum(weight**2 for weight in weights.values()))

    query = vector(words_of(title))
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


def bm25_by_hand(query: str, paragraphs: list[str]) -> list[float]:
    """BM25 of ATIRE, written down with lists."""
    bags, scores = list(map(words_of, paragraphs)), []
    mean = sum(map(len, bags)) / len(bags) if bags else 0.0
    for words in bags:
        score = 0.0
        for word in words_of(query):
            if count := words.count(word):
                weight = log(len(bags) / sum(word in bag for bag in bags))
                score += weight * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * len(words) / mean))
        scores.append(score)
    return scores


@given(TEXT, st.lists(TEXT, max_size=6))
def test_bm25_is_the_equation(query: str, paragraphs: list[str]) -> None:
    """Scores equal the equation written down word by word; a word twice in the query counts twice."""
    assert bm25(query, paragraphs) == pytest.approx(bm25_by_hand(query, paragraphs))


@given(st.lists(TEXT, max_size=6))
def test_similarities_are_cosines(paragraphs: list[str]) -> None:
    """They are the cosines of Eq. 25's vectors with the diagonal 1: symmetric, 0–1, and exactly so."""
    similar = similarities(paragraphs)
    assert similar.shape == (len(paragraphs), len(paragraphs))
    assert np.array_equal(similar, similar.T)
    assert np.all(np.diag(similar) == 1)
    assert np.all((similar >= 0) & (similar <= 1))
    weights = tfidf(paragraphs).toarray()
    lengths = np.linalg.norm(weights, axis=1)
    expected = weights @ weights.T / np.maximum(np.outer(lengths, lengths), 1e-9)
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(similar, expected, rtol=0, atol=1e-12)


def pagerank(paragraphs: list[str], damping: float) -> list[float]:
    """LexRank by networkx: PageRank of the graph of similarities, loops included."""
    graph = networkx.from_numpy_array(similarities(paragraphs))
    found = networkx.pagerank(graph, alpha=damping, tol=1e-15, max_iter=1_000)
    return [found[index] for index in range(len(paragraphs))]


@pytest.mark.parametrize("damping", [0.0, 0.5, 0.85, 0.95])
@given(st.lists(TEXT, min_size=1, max_size=8))
def test_lexrank_is_pagerank(damping: float, paragraphs: list[str]) -> None:
    """Scores are networkx's PageRank of the graph of similarities; they are positive and their sum is 1."""
    scores = lexrank(paragraphs, damping)
    assert scores == pytest.approx(pagerank(paragraphs, damping), rel=0, abs=1e-8)
    assert scores.min() > 0
    assert scores.sum() == pytest.approx(1)


@given(st.lists(st.floats(0, 1)))
def test_rank_sorts_stably(scores: list[float]) -> None:
    """The order goes from the best to the worst score, of equal ones the earlier first."""
    assert rank(scores) == sorted(range(len(scores)), key=lambda index: (-scores[index], index))


@pytest.mark.parametrize("name", ["tfidf", "bm25", "title"])
def test_a_missing_title_is_an_error(name: str) -> None:
    """The registered rankers by the title need one, and say so."""
    with refuses("title"):
        rankers.load(name)(None, ["a paragraph"])
