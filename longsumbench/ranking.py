"""Ranking paragraphs by what they share with the title: tf-idf, and plain title similarity.

A ranker is a function (title, paragraphs) → one score per paragraph, higher is better; `rank` turns scores into an
order. `longsumbench.registry.rankers` knows them by name.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from longsumbench.errors import UsageError

Scores = NDArray[np.float64]
WORD = r"(?u)\b\w+\b"  # the library's pattern, but words of one letter count too


def tfidf_with_title(title: str | None, paragraphs: Sequence[str]) -> Scores:
    """Score paragraphs by the cosine of their tf-idf vectors with the title's (Hierarchical Transformer, Eq. 25).

    A word's weight is N_w · ln(N_d / N_dw): its count in the text, the paragraphs given, and those with the word; the
    title is not one of them. Lower-cased words, no stop list. A word that stands in every paragraph weighs nothing, and
    so does a title word that stands in none: it would divide every score by the same number.

    Returns:
        Shape [paragraphs], each 0–1; a text without words, or without words that weigh, scores 0.

    Raises:
        UsageError: there is no title.
    """
    counts = _counts(title, paragraphs)
    texts = counts[1:]
    in_paragraphs = np.bincount(texts.indices, minlength=counts.shape[1])
    weights = np.log(max(1, len(paragraphs)) / np.maximum(in_paragraphs, 1)) * (in_paragraphs > 0)
    return _with_first(counts.multiply(weights).tocsr())


def title_similarity(title: str | None, paragraphs: Sequence[str]) -> Scores:
    """Score paragraphs by the cosine of their word counts with the title's: every word weighs the same.

    Unlike tf-idf a score depends on no other paragraph, so it also means something where all of them name the title.

    Returns:
        Shape [paragraphs], each 0–1; a text without words scores 0.

    Raises:
        UsageError: there is no title.
    """
    return _with_first(_counts(title, paragraphs))


def rank(scores: Sequence[float] | Scores) -> list[int]:
    """Return the indices from the best score to the worst; of equal ones the earlier first."""
    return [int(index) for index in np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")]


def _counts(title: str | None, paragraphs: Sequence[str]) -> Any:
    """Return a sparse matrix of word counts: the title's in row 0, then one row per paragraph."""
    if title is None:
        raise UsageError("this ranker compares paragraphs with the title, and the example has none: choose another")
    vectorizer = CountVectorizer(token_pattern=WORD)
    return vectorizer.fit_transform([title, *paragraphs, "x"])[:-1]  # "x": the library refuses texts without any word


def _with_first(vectors: Any) -> Scores:
    """Return the cosine of the first row with each of the others; 0 where either is a zero vector."""
    if vectors.shape[0] < 2:
        return np.zeros(0)
    similar: Scores = cosine_similarity(vectors[1:], vectors[:1])[:, 0]
    return similar
