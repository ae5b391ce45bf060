"""Ranking paragraphs: by what they share with the title (tf-idf, plain counts), or with one another (LexRank).

A ranker is a function (title, paragraphs) → one score per paragraph, higher is better; `rank` turns scores into an
order. `longsumbench.api.registry.rankers` knows them by name.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import normalize

from longsumbench.api.ranker import Scores
from longsumbench.errors import UsageError

_WORD = re.compile(r"\w+")  # words of one letter count too
_BLANKS = {code: " " for code in range(128) if not _WORD.match(chr(code))}  # what takes ASCII text apart
_DAMPING = 0.85  # Erkan & Radev 2004, as PageRank's
_TOLERANCE = 1e-12  # of LexRank: how much a last step changes the scores, which sum to 1, in all
_DIGITS = 10  # behind the point: LexRank's scores are rounded, so that those equal but for rounding are equal


def tfidf_with_title(title: str | None, paragraphs: Sequence[str]) -> Scores:
    """Score paragraphs by the cosine of their tf-idf vectors with the title's (Hierarchical Transformer, Eq. 25).

    Words weigh as in `tfidf`, and the title is not one of the paragraphs. A title word that stands in none of them
    weighs nothing: it would divide every score by the same number.

    Returns:
        Shape [paragraphs], each 0–1; a text without words, or without words that weigh, scores 0.

    Raises:
        UsageError: there is no title.
    """
    counts = _counts_with_title(title, paragraphs)
    return _with_first(_weighted(counts, among=counts[1:]))


def title_similarity(title: str | None, paragraphs: Sequence[str]) -> Scores:
    """Score paragraphs by the cosine of their word counts with the title's: every word weighs the same.

    Unlike tf-idf a score depends on no other paragraph, so it also means something where all of them name the title.

    Returns:
        Shape [paragraphs], each 0–1; a text without words scores 0.

    Raises:
        UsageError: there is no title.
    """
    return _with_first(_counts_with_title(title, paragraphs))


def centrality(title: str | None, paragraphs: Sequence[str]) -> Scores:
    """Score paragraphs by LexRank, whatever the title is: the ranker `lexrank`."""
    return lexrank(paragraphs)


def lexrank(paragraphs: Sequence[str], damping: float = _DAMPING) -> Scores:
    """Score paragraphs by continuous LexRank (Erkan & Radev 2004): how much those that matter are like them.

    The scores p solve p = d · Mᵀp + (1 − d) / n, M the `similarities` with rows divided by their sums, without a
    threshold. They are found by power iteration from equal scores until a step changes them by no more than
    `_TOLERANCE` in all, so their error is at most d / (1 − d) times that, and rounded to `_DIGITS`. M is never formed:
    time and memory grow with the words, not with the pairs of paragraphs.

    Args:
        paragraphs: the texts.
        damping: d, from 0 (all alike) to below 1.

    Returns:
        Shape [paragraphs], positive, their sum 1 but for rounding.

    Raises:
        UsageError: the damping is not from 0 to below 1.
    """
    if not 0 <= damping < 1:
        raise UsageError(f"damping={damping}: LexRank needs a number from 0 to below 1")
    if not paragraphs:
        return np.zeros(0)
    vectors = _directions(paragraphs)
    by_word = vectors.T.tocsr()
    weightless = np.diff(vectors.indptr) == 0

    def neighbours(scores: Scores) -> Scores:
        """Multiply by the similarities; of a vector of zeros, only the one with itself is not 0."""
        product: Scores = vectors @ (by_word @ scores) + weightless * scores
        return product

    size = len(paragraphs)
    sums = neighbours(np.ones(size))
    scores, change = np.full(size, 1 / size), 1.0
    while change > _TOLERANCE:  # a step's change is at most d times that of the step before
        stepped = damping * neighbours(scores / sums) + (1 - damping) / size
        scores, change = stepped, float(np.abs(stepped - scores).sum())
    return scores.round(_DIGITS)


def similarities(paragraphs: Sequence[str]) -> NDArray[np.float64]:
    """Return the cosines of the paragraphs' `tfidf` vectors.

    Returns:
        Shape [paragraphs, paragraphs], symmetric, each 0–1. The diagonal is 1, also of a paragraph without words that
        weigh; it is like no other.
    """
    vectors = _directions(paragraphs)
    cosines: NDArray[np.float64] = np.minimum((vectors @ vectors.T).toarray(), 1)  # rounding passes 1
    np.fill_diagonal(cosines, 1)
    return cosines


def tfidf(paragraphs: Sequence[str]) -> Any:
    """Weigh the words of paragraphs (Hierarchical Transformer, Eq. 25).

    A word's weight is N_w · ln(N_d / N_dw): its count in the paragraph, the paragraphs given, and those with the word.
    Lower-cased words, no stop list. A word that stands in every paragraph weighs nothing.

    Returns:
        A sparse matrix [paragraphs, words], the words in alphabetical order; only weights above 0 are stored.
    """
    counts = _counts(paragraphs)
    return _weighted(counts, among=counts)


def rank(scores: Sequence[float] | Scores) -> list[int]:
    """Return the indices from the best score to the worst; of equal ones the earlier first."""
    return [int(index) for index in np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")]


def _counts_with_title(title: str | None, paragraphs: Sequence[str]) -> Any:
    """Return word counts: the title's in row 0, then one row per paragraph."""
    if title is None:
        raise UsageError("this ranker compares paragraphs with the title, and the example has none: choose another")
    return _counts([title, *paragraphs])


def _counts(texts: Sequence[str]) -> Any:
    """Return a sparse matrix of word counts, one row per text, the words in alphabetical order.

    As the library's CountVectorizer, in less than half its time.
    """
    words = [_words(text.lower()) for text in texts]
    number = {word: index for index, word in enumerate(sorted(set(chain.from_iterable(words))))}
    indices = np.fromiter(map(number.__getitem__, chain.from_iterable(words)), np.int32)
    ends = np.cumsum([0, *map(len, words)])
    counts = csr_matrix((np.ones(len(indices)), indices, ends), shape=(len(texts), len(number)))
    counts.sum_duplicates()
    return counts


def _words(text: str) -> list[str]:
    """Return a text's words; ASCII, which most paragraphs are, is taken apart in a third of the time."""
    return text.translate(_BLANKS).split() if text.isascii() else _WORD.findall(text)


def _weighted(counts: Any, among: Any) -> Any:
    """Return counts times ln(N_d / N_dw), the numbers of texts `among` those given; without the zeros."""
    having = np.bincount(among.indices, minlength=counts.shape[1])
    weights = np.log(max(1, among.shape[0]) / np.maximum(having, 1)) * (having > 0)
    weighted = counts.copy()
    weighted.data *= weights[weighted.indices]
    weighted.eliminate_zeros()
    return weighted


def _directions(paragraphs: Sequence[str]) -> Any:
    """Return the paragraphs' `tfidf` vectors, divided by their lengths; those of zeros as they are."""
    vectors = tfidf(paragraphs)
    return normalize(vectors) if vectors.nnz else vectors  # the library refuses a matrix without columns


def _with_first(vectors: Any) -> Scores:
    """Return the cosine of the first row with each of the others; 0 where either is a zero vector."""
    if vectors.shape[0] < 2 or not vectors.nnz:  # the library refuses a matrix without rows or columns
        return np.zeros(max(0, vectors.shape[0] - 1))
    similar: Scores = cosine_similarity(vectors[1:], vectors[:1])[:, 0]
    return similar
