"""Exact ROUGE-n of many texts against many references at once, from counts.

Words are ids of a tokenizer or of `number_words`. Letters: T texts, R references, K distinct n-grams of the references.
"""

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAIR_MEASURES = ("f1", "precision", "recall")

Ids = Sequence[int]
Ints = NDArray[np.int64]


def number_words(*collections: Sequence[Sequence[Hashable]]) -> list[list[list[int]]]:
    """Give every distinct word a number and return the texts of each collection as these ids."""
    ids: dict[Hashable, int] = {}

    def number(text: Sequence[Hashable]) -> list[int]:
        return [ids.setdefault(word, len(ids)) for word in text]

    return [list(map(number, texts)) for texts in collections]


def rouge_n(
    texts: Sequence[Ids], references: Sequence[Ids], ngram: int = 2
) -> dict[str, NDArray[np.float64]]:
    """Score every text against every reference by ROUGE-n.

    A common n-gram counts as often as it occurs in both. A text or a reference of fewer than n words scores 0.

    Returns:
        By measure, [R, T], 0–1: "f1", "precision" (over the text's n-grams), "recall" (over the reference's).
    """
    in_texts, in_references = shared_ngrams(texts, references, ngram)
    common = np.zeros((len(references), len(texts)), np.int64)
    for row, counts in zip(common, in_references, strict=True):
        indices = np.flatnonzero(counts)
        np.minimum(in_texts[indices], counts[indices, None]).sum(axis=0, out=row)
    sizes, size = num_ngrams(texts, ngram), in_references.sum(axis=1)[:, None]
    return {measure: score_counts(common, sizes, size, measure) for measure in PAIR_MEASURES}


def shared_ngrams(texts: Sequence[Ids], references: Sequence[Ids], ngram: int) -> tuple[Ints, Ints]:
    """Count the n-grams of all references in the texts and in each reference.

    Returns:
        Counts in the texts, [K, T], and in the references, [R, K]; the n-grams are in the order of their ids.
    """
    tokens, starts, owners = _ngram_starts(texts, ngram)
    gold, gold_starts, gold_owners = _ngram_starts(references, ngram)
    vocabulary, gold = np.unique(gold, return_inverse=True)
    tokens = _rank_among(vocabulary, tokens)
    # ranks, and -1 for a token that no reference has
    base = len(vocabulary) + 1
    codes, gold_codes = tokens[starts], gold[gold_starts]
    for offset in range(1, ngram):
        alive = codes >= 0
        starts, owners, codes = starts[alive], owners[alive], codes[alive]
        longer, gold_codes = np.unique(
            gold_codes * base + gold[gold_starts + offset] + 1, return_inverse=True
        )
        codes = _rank_among(longer, codes * base + tokens[starts + offset] + 1)
    alive = codes >= 0
    distinct = int(gold_codes.max(initial=-1)) + 1
    in_texts = np.bincount(
        codes[alive] * len(texts) + owners[alive], minlength=distinct * len(texts)
    )
    in_references = np.bincount(
        gold_owners * distinct + gold_codes, minlength=len(references) * distinct
    )
    return in_texts.reshape(distinct, len(texts)), in_references.reshape(len(references), distinct)


def num_ngrams(texts: Sequence[Ids], ngram: int) -> Ints:
    """Count the n-grams of every text: [T]."""
    return np.array([max(0, len(ids) - ngram + 1) for ids in texts], np.int64)


def score_counts(common: Ints, sizes: Ints, size: Ints | int, measure: str) -> NDArray[np.float64]:
    """Return ROUGE, 0–1, from numbers of n-grams: `common` ones, `sizes` of the texts, and `size` of the reference.

    Each score is one division of integers, so equal scores are equal bit for bit.
    """
    numerator = 2 * common if measure == "f1" else common
    denominator = {"f1": sizes + size, "precision": sizes, "recall": size}[measure]
    return np.asarray(numerator / np.maximum(denominator, 1), np.float64)


def _ngram_starts(texts: Sequence[Ids], ngram: int) -> tuple[Ints, Ints, Ints]:
    """Return the tokens of all texts in one array, the start of each n-gram, and the n-gram's text."""
    lengths = np.array([len(ids) for ids in texts], np.int64)
    tokens = np.fromiter(chain.from_iterable(texts), np.int64, int(lengths.sum()))
    ends = np.repeat(lengths.cumsum(), lengths)  # the end of each token's text
    starts = np.flatnonzero(np.arange(len(tokens)) + ngram <= ends)
    owners = np.repeat(np.arange(len(lengths)), np.maximum(lengths - ngram + 1, 0))
    return tokens, starts, owners


def _rank_among(sorted_values: Ints, values: Ints) -> Ints:
    """Return the index of each value among the sorted ones; -1 for another value."""
    if not len(sorted_values):
        return np.full_like(values, -1)
    places: Any = np.searchsorted(sorted_values, values)
    places[places == len(sorted_values)] = 0
    return np.where(sorted_values[places] == values, places, -1)
