"""Exact search for the two source sentences that a summary sentence fuses (PageSum, §5.6 and Appendix A).

The text of a pair s_i ⊕ s_j, i < j, is the words of sentence i followed by those of sentence j. The bigram at the seam
counts, and a common subsequence may cross it.

A pair has at most as much in common with the summary sentence as its two sentences alone, plus one bigram at the seam
for ROUGE-2. So one good pair rules out most others, and few pairs are scored. Letters: N source sentences, L words of a
summary sentence, K distinct bigrams or words of the summary, A and B subsets of the source sentences.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import check_choice
from longsumbench.rouge.all_pairs import Ids, Ints, number_words, shared_ngrams
from longsumbench.rouge.overlap import Lengths, lengths_of_prefixes

FUSION_TYPES = ("rouge1", "rouge2", "rougeL")
# a bigram, the sentences that end and that begin with it
_Seam = tuple[int, NDArray[np.bool_], NDArray[np.bool_]]
_SCORE_TOLERANCE = 1e-9  # of differences of scores
_PAIRS_AT_ONCE = 1 << 20  # in memory
# sentences whose pairs are scored first, for a lower bound
_PROMISING = 32


class SourcePair(NamedTuple):
    """Two interdependent source sentences and their scores against a summary sentence h (PageSum, Eq. 13).

    Args:
        first: index of the earlier sentence.
        second: index of the later sentence.
        score: ROUGE(h, s1 ⊕ s2), 0–1.
        alone: ROUGE(h, s1) and ROUGE(h, s2), 0–1.
        distance: between them, as a share of the source's sentences (PageSum, Fig. 4).
    """

    first: int
    second: int
    score: float
    alone: tuple[float, float]
    distance: float

    def fused(self, overlap: float = 20.0, rise: float = 10.0) -> bool:
        """Return True if h fuses both: each overlaps with h and adds to the other (PageSum, Eqs. 15, 16).

        Args:
            overlap: t1, ROUGE 0–100; each sentence alone scores above it.
            rise: t2, ROUGE 0–100; the pair exceeds each sentence alone by more.
        """
        lowest = overlap / 100 + _SCORE_TOLERANCE
        highest = self.score - rise / 100 - _SCORE_TOLERANCE
        return all(lowest < score < highest for score in self.alone)


class _Shared(NamedTuple):
    """What source sentences have in common with one summary sentence.

    Args:
        alone: [N], each sentence alone.
        seam: [N], the maximum in common at the seam of a pair that begins with the sentence.
        together: returns what pairs have in common, [A, B]; valid if the first sentence precedes the second.
    """

    alone: Ints
    seam: Ints
    together: Callable[[Ints, Ints], Ints]


def best_pairs(
    sentences: Sequence[Sequence[Hashable]],
    summary: Sequence[Sequence[Hashable]],
    kind: str = "rouge1",
) -> list[SourcePair]:
    """Find the pair of source sentences with the best recall of each summary sentence (PageSum, Eqs. 13, 14).

    Of equal pairs, it is the one with the smallest i, then the smallest j. If no pair scores above 0, it is the first
    two sentences of the source.

    Args:
        sentences: of the source, in order, as words (tokens, stems or ids); a sentence may be empty.
        summary: the sentences of the summary, as words.
        kind: "rouge1", "rouge2" or "rougeL".

    Raises:
        UsageError: the type is unknown.
        ValueError: the source has fewer than two sentences.
    """
    check_choice("kind", kind, FUSION_TYPES)
    if len(sentences) < 2:
        raise ValueError(f"a pair needs two source sentences; there are {len(sentences)}")
    source, targets = number_words(sentences, summary)
    unit = 2 if kind == "rouge2" else 1
    shared = _subsequences(source, targets) if kind == "rougeL" else _ngrams(source, targets, unit)
    pairs = []
    for ids, counts in zip(targets, shared, strict=True):
        first, second, together = _find_best(counts)
        size = max(1, len(ids) - unit + 1)
        alone = int(counts.alone[first]) / size, int(counts.alone[second]) / size
        distance = (second - first) / len(source)
        pairs.append(SourcePair(first, second, together / size, alone, distance))
    return pairs


def _find_best(shared: _Shared) -> tuple[int, int, int]:
    """Return the pair with the most in common with a summary sentence, and how much that is."""
    promising = np.sort(np.argsort(-shared.alone, kind="stable")[:_PROMISING])
    _, _, count = _best_of(promising, promising, shared)
    # A better pair has as much in common, and more than nothing. One of its sentences has at least half of that.
    least = max(1, count)
    most = shared.alone + shared.seam
    possible = np.flatnonzero(most >= least - most.max())
    high = np.flatnonzero(2 * most >= least)
    pairs = _best_of(high, possible, shared), _best_of(possible, high, shared)
    return min(pairs, key=lambda pair: (-pair[2], pair[0], pair[1]))


def _best_of(first: Ints, second: Ints, shared: _Shared) -> tuple[int, int, int]:
    """Return the first best pair of an earlier sentence from `first` and a later one from `second`, and its count.

    Both are ascending. If no pair has anything in common, it is (0, 1).
    """
    best = (0, 1, 0)
    rows_at_once = max(1, _PAIRS_AT_ONCE // max(1, len(second)))
    for start in range(0, len(first), rows_at_once):
        rows = first[start : start + rows_at_once]
        counts = shared.together(rows, second)
        counts[rows[:, None] >= second] = 0
        row, column = divmod(int(counts.argmax()), len(second))
        if counts[row, column] > best[2]:
            best = int(rows[row]), int(second[column]), int(counts[row, column])
    return best


def _ngrams(source: Sequence[Ids], targets: Sequence[Ids], unit: int) -> Iterator[_Shared]:
    """Yield the n-grams in common with each summary sentence."""
    in_source, in_targets = shared_ngrams(source, targets, unit)
    lasts = np.array([ids[-1] if ids else -1 for ids in source])
    firsts = np.array([ids[0] if ids else -1 for ids in source])
    grams = sorted(set(chain.from_iterable(map(pairwise, targets)))) if unit == 2 else []
    seams = [(lasts == first, firsts == second) for first, second in grams]
    for counts in in_targets:
        indices = np.flatnonzero(counts)
        counts_of_own = counts[indices]
        counts_in_source = np.minimum(in_source[indices], counts_of_own[:, None])
        alone, seam = counts_in_source.sum(axis=0), np.zeros(len(source), np.int64)
        possible: list[_Seam] = []
        for place, row in enumerate(indices if grams else ()):
            ends, begins = seams[row]
            if ends.any() and begins.any():
                possible.append((place, ends, begins))
                seam[ends] = 1
        together = partial(_common_ngrams, counts_in_source, counts_of_own, alone, possible)
        yield _Shared(alone, seam, together)


def _common_ngrams(
    in_source: Ints, counts: Ints, alone: Ints, seams: Sequence[_Seam], first: Ints, second: Ints
) -> Ints:
    """Return min(c, a + b), summed over n-grams, as min(c, a) + min(c, b) − the overlap of both.

    Of the c copies of an n-gram in the summary sentence, the first sentence covers the first min(c, a) and the second
    the last min(c, b). So one matrix product counts the copies that both cover.
    `in_source` [K, N] has at most the counts of the summary sentence, [K]. `first` [A] and `second` [B] are sentences.
    """
    copies = np.repeat(np.arange(len(counts)), counts)
    copies_before = np.arange(len(copies)) - np.repeat(counts.cumsum() - counts, counts)
    copies_after = counts[copies] - 1 - copies_before
    of_first = (in_source[:, first][copies] > copies_before[:, None]).astype(
        np.float32
    )  # sums below 2²⁴ are exact
    of_second = (in_source[:, second][copies] > copies_after[:, None]).astype(np.float32)
    common: Ints = alone[first, None] + alone[second] - (of_first.T @ of_second).astype(np.int64)
    for gram, ends, begins in seams:
        rows, columns = np.flatnonzero(ends[first]), np.flatnonzero(begins[second])
        covered = in_source[gram, first[rows], None] + in_source[gram, second[columns]]
        common[np.ix_(rows, columns)] += covered < counts[gram]
    return common


def _subsequences(source: Sequence[Ids], targets: Sequence[Ids]) -> Iterator[_Shared]:
    """Yield the longest common subsequences with each summary sentence."""
    prefix_lengths = lengths_of_prefixes(source, targets)
    reversed_source = [ids[::-1] for ids in source]
    suffix_lengths = lengths_of_prefixes(reversed_source, [ids[::-1] for ids in targets])
    for prefixes, suffixes in zip(prefix_lengths, suffix_lengths, strict=True):
        alone = prefixes[-1].astype(np.int64)
        together = partial(_common_subsequences, prefixes, suffixes[::-1])
        yield _Shared(alone, np.zeros_like(alone), together)


def _common_subsequences(prefixes: Lengths, suffixes: Lengths, first: Ints, second: Ints) -> Ints:
    """Return the maximum over all cuts of the summary sentence: the lengths [L + 1, N] before them and after them."""
    common = np.zeros((len(first), len(second)), np.int32)
    for of_first, of_second in zip(prefixes[:, first], suffixes[:, second], strict=True):
        np.maximum(common, of_first[:, None] + of_second, out=common)
    return common.astype(np.int64)
