"""Proxy labels: how much of the gold summary, or of a segment of it, a snippet says (SEAL, §3.4, §3.5, Appendix A).

Pure functions over token ids; no torch. Letters: N snippets, S segments, K distinct n-grams of the segments.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longsumbench.configuration import allowed, at_least

MEASURES = ("f1", "precision", "recall")

Ints = NDArray[np.int64]


def target_segments(labels: Sequence[int], segment_length: int, end: int) -> list[list[int]]:
    """Cut a target into the stretches that are decoded one after another, without the end token (SEAL, §3.5).

    The end token takes a place: a target whose end begins a stretch of its own has an empty last segment. With
    `segment_length` at the target's length or above there is one segment: the whole summary, which EA's labels want.

    Args:
        labels: the target's ids, the end token last.
        segment_length: tokens of a segment, the end token's place counted.
        end: the id of the end token.

    Raises:
        UsageError: the length is below 1.
        ValueError: the target does not end with the end token.
    """
    at_least("segment_length", segment_length, 1)
    if not len(labels) or labels[-1] != end:
        raise ValueError(f"the target does not end with the end token {end}")
    starts = range(0, len(labels), segment_length)
    return [[one for one in labels[start : start + segment_length] if one != end] for start in starts]


def proxy_labels(
    snippets: Sequence[Sequence[int]],
    segments: Sequence[Sequence[int]],
    ngram: int = 2,
    measure: str = "f1",
    sequential: bool = False,
) -> NDArray[np.float32]:
    """Label every snippet by its ROUGE-n against every gold segment (SEAL, Table 3).

    An n-gram counts as often as it stands in both, and crosses neither snippets nor segments. What is shorter than n
    tokens, a snippet or a segment, has label 0.

    Args:
        snippets: token ids, without special tokens.
        segments: the same for the gold segments; the whole summary is one segment.
        ngram: n.
        measure: "f1", "precision" (over the snippet's n-grams) or "recall" (over the segment's).
        sequential: labels of 1 and 0 instead. For each segment, the snippet that raises the measure of the chosen
            snippets' summed n-grams most is chosen, the earlier one of equals, while one raises it (Nallapati et al.
            2017).

    Returns:
        [S, N], 0–1.

    Raises:
        UsageError: an unknown measure, or n below 1.
    """
    allowed("measure", measure, MEASURES)
    at_least("ngram", ngram, 1)
    held, wanted = shared_ngrams(snippets, segments, ngram)
    sizes = np.array([max(0, len(ids) - ngram + 1) for ids in snippets], np.int64)
    labels = np.zeros((len(segments), len(snippets)), np.float32)
    for index, counts in enumerate(wanted):
        size = int(counts.sum())
        if size == 0:
            continue
        own = np.flatnonzero(counts)
        if sequential:
            labels[index, _greedy(held[own], counts[own], sizes, size, measure)] = 1
        else:
            common = np.minimum(held[own], counts[own, None]).sum(axis=0)
            labels[index] = score(common, sizes, size, measure)
    return labels


def shared_ngrams(
    snippets: Sequence[Sequence[int]], segments: Sequence[Sequence[int]], ngram: int
) -> tuple[Ints, Ints]:
    """Count, in snippets and segments, the n-grams that stand in any segment.

    Returns:
        [K, N] and [S, K]; n-grams of no segment are in neither.
    """
    tokens, starts, owners = _places(snippets, ngram)
    gold, gold_starts, gold_owners = _places(segments, ngram)
    known, gold = np.unique(gold, return_inverse=True)
    tokens = _rank(known, tokens)
    base = len(known) + 1  # ranks and the -1 of a token that no segment has
    codes, gold_codes = tokens[starts], gold[gold_starts]
    for offset in range(1, ngram):
        alive = codes >= 0
        starts, owners, codes = starts[alive], owners[alive], codes[alive]
        longer, gold_codes = np.unique(gold_codes * base + gold[gold_starts + offset] + 1, return_inverse=True)
        codes = _rank(longer, codes * base + tokens[starts + offset] + 1)
    alive = codes >= 0
    distinct = int(gold_codes.max(initial=-1)) + 1
    held = np.bincount(codes[alive] * len(snippets) + owners[alive], minlength=distinct * len(snippets))
    wanted = np.bincount(gold_owners * distinct + gold_codes, minlength=len(segments) * distinct)
    return held.reshape(distinct, len(snippets)), wanted.reshape(len(segments), distinct)


def score(common: Ints, sizes: Ints, size: int, measure: str) -> NDArray[np.float64]:
    """Return ROUGE-n from counts: n-grams in common, in the snippets and in the segment.

    One division of whole numbers each, so equal scores are equal bit for bit.
    """
    numerator = 2 * common if measure == "f1" else common
    denominator = {"f1": sizes + size, "precision": sizes, "recall": np.full_like(sizes, size)}[measure]
    return np.asarray(numerator / np.maximum(denominator, 1), np.float64)


def _greedy(held: Ints, counts: Ints, sizes: Ints, size: int, measure: str) -> list[int]:
    """Return the chosen snippets of one segment.

    Args:
        held: [K, N], of the segment's own n-grams.
        counts: [K], how often they stand in the segment.
        sizes: [N], n-grams of the snippets.
        size: n-grams of the segment.
        measure: as in `proxy_labels`.
    """
    left = np.flatnonzero(held.any(axis=0))  # the others can only lower a score
    held, sizes = held[:, left], sizes[left]
    chosen: list[int] = []
    common = taken = 0
    best = 0.0
    while len(left):
        gains = np.minimum(held, counts[:, None]).sum(axis=0)
        scores = score(common + gains, taken + sizes, size, measure)
        place = int(scores.argmax())
        if scores[place] <= best:
            break
        best, common, taken = scores[place], common + int(gains[place]), taken + int(sizes[place])
        counts = np.maximum(counts - held[:, place], 0)
        chosen.append(int(left[place]))
        left, sizes, held = np.delete(left, place), np.delete(sizes, place), np.delete(held, place, axis=1)
    return chosen


def _places(texts: Sequence[Sequence[int]], ngram: int) -> tuple[Ints, Ints, Ints]:
    """Return the tokens of all texts in a row, where an n-gram begins, and the text that it is in."""
    lengths = np.array([len(ids) for ids in texts], np.int64)
    tokens = np.fromiter(chain.from_iterable(texts), np.int64, int(lengths.sum()))
    ends = np.repeat(lengths.cumsum(), lengths)  # of the text a token is in
    starts = np.flatnonzero(np.arange(len(tokens)) + ngram <= ends)
    owners = np.repeat(np.arange(len(lengths)), np.maximum(lengths - ngram + 1, 0))
    return tokens, starts, owners


def _rank(known: Ints, values: Ints) -> Ints:
    """Return the place of each value among the known ones, which are sorted; -1 for another value."""
    if not len(known):
        return np.full_like(values, -1)
    places: Any = np.searchsorted(known, values)
    places[places == len(known)] = 0
    return np.where(known[places] == values, places, -1)
