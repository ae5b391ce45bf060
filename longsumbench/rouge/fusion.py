"""The two source sentences that a summary sentence fuses, best of all pairs and exact (PageSum, §5.6 and Appendix A).

The text of a pair s_i ⊕ s_j, i < j, is the words of sentence i followed by those of sentence j: the bigram at the seam
counts, and a common subsequence goes on across it.

Few pairs are scored. What a pair has in common with the summary sentence is at most what its sentences have in common
with it alone, and for ROUGE-2 one bigram more at the seam. Once some pair is known to be good, most others cannot be
better. Letters: N source sentences, L words of a summary sentence, K distinct bigrams or words of the summary, A and B
some of the source sentences.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longsumbench.api.config import check_choice
from longsumbench.rouge.all_pairs import PAIR_MEASURES, Ids, Ints, number_words, score_counts, shared_ngrams
from longsumbench.rouge.cut_lcs import TextsToMatch

FUSION_TYPES = ("rouge1", "rouge2", "rougeL")
_ROUNDING = 1e-9  # bounds and differences of scores are trusted up to this
_PAIRS_AT_ONCE = 1 << 20  # held in memory together
_PROMISING = 32  # sentences whose pairs are scored first, for a score to beat


class SourcePair(NamedTuple):
    """Two interdependent source sentences and what they say of a summary sentence h (PageSum, Eq. 13).

    Args:
        first: index of the pair's earlier sentence.
        second: index of the later one.
        score: ROUGE(h, s1 ⊕ s2), 0–1.
        alone: ROUGE(h, s1) and ROUGE(h, s2), 0–1.
        distance: how far apart they are, as a share of the source's sentences (PageSum, Fig. 4).
    """

    first: int
    second: int
    score: float
    alone: tuple[float, float]
    distance: float

    def fused(self, overlap: float = 20.0, rise: float = 10.0) -> bool:
        """Tell whether h fuses both: each overlaps with it, and each adds to the other (PageSum, Eqs. 15, 16).

        Args:
            overlap: t1, ROUGE 0–100, to be exceeded by each sentence alone.
            rise: t2, ROUGE 0–100, to be exceeded by what the pair has more than each sentence alone.
        """
        least = overlap / 100 + _ROUNDING
        most = self.score - rise / 100 - _ROUNDING
        return all(least < one < most for one in self.alone)


class _Shared(Protocol):
    """What source sentences have in common with one summary sentence.

    Args:
        alone: [N], each sentence alone.
        seam: [N], the most that a pair can have in common at its seam when the sentence comes first.
    """

    alone: Ints
    seam: Ints

    def together(self, first: Ints, second: Ints) -> Ints:
        """Return what the pairs have in common, [A, B]; meant for sentences in this order only."""


def best_pairs(
    sentences: Sequence[Sequence[Hashable]],
    summary: Sequence[Sequence[Hashable]],
    kind: str = "rouge1",
    measure: str = "recall",
) -> list[SourcePair]:
    """Find, for each summary sentence, the pair of source sentences that scores best against it (PageSum, Eqs. 13, 14).

    Of equal pairs it is the first: the least i, then the least j. Where no pair scores above 0 that is the source's
    first two sentences.

    Args:
        sentences: the source's, as their words (tokens, stems or ids), in order; one may be empty.
        summary: the summary's, likewise.
        kind: "rouge1", "rouge2" or "rougeL".
        measure: "recall" (the paper's), "precision" or "f1".

    Raises:
        UsageError: an unknown type or measure.
        ValueError: the source has fewer than two sentences.
    """
    check_choice("kind", kind, FUSION_TYPES)
    check_choice("measure", measure, PAIR_MEASURES)
    if len(sentences) < 2:
        raise ValueError(f"a pair takes two source sentences, of {len(sentences)}")
    source, targets = number_words(sentences, summary)
    unit = 2 if kind == "rouge2" else 1
    lengths = np.array([len(ids) for ids in source], np.int64)
    shared: Iterator[_Shared] = _subsequences(source, targets) if kind == "rougeL" else _ngrams(source, targets, unit)
    return [
        _Search(one, lengths, unit, max(0, len(ids) - unit + 1), measure).best()
        for ids, one in zip(targets, shared, strict=True)
    ]


class _Search:
    """The search over all pairs for one summary sentence.

    Args:
        shared: what the source sentences have in common with it.
        lengths: [N], words of the source sentences.
        unit: words of an n-gram.
        size: n-grams of the summary sentence.
        measure: as in `best_pairs`.
    """

    def __init__(self, shared: _Shared, lengths: Ints, unit: int, size: int, measure: str) -> None:
        self._shared, self._lengths, self._unit, self._size, self._measure = shared, lengths, unit, size, measure

    def best(self) -> SourcePair:
        """Return the best pair."""
        alone = score_counts(self._shared.alone, self._num_ngrams(self._lengths), self._size, self._measure)
        promising = np.sort(np.argsort(-alone, kind="stable")[:_PROMISING])
        _, _, score_to_beat = self._best_of(promising, promising)
        worth, needed = self._worth(score_to_beat)
        some = np.flatnonzero(worth >= needed - worth.max())
        high = np.flatnonzero(worth >= needed / 2)  # a pair without any of these is worth too little
        found = self._best_of(high, some), self._best_of(some, high)
        first, second, together = min(found, key=lambda pair: (-pair[2], pair[0], pair[1]))
        distance = (second - first) / len(alone)
        return SourcePair(first, second, together, (float(alone[first]), float(alone[second])), distance)

    def _best_of(self, first: Ints, second: Ints) -> tuple[int, int, float]:
        """Return the best pair, and its score, of an earlier sentence of the one kind and a later one of the other.

        Where none scores above 0 that is the first pair. Both kinds ascend, so the first of equals is found first.
        """
        best = (0, 1, 0.0)
        rows_at_once = max(1, _PAIRS_AT_ONCE // max(1, len(second)))
        for start in range(0, len(first), rows_at_once):
            rows = first[start : start + rows_at_once]
            sizes = self._num_ngrams(self._lengths[rows, None] + self._lengths[second])
            scores = score_counts(self._shared.together(rows, second), sizes, self._size, self._measure)
            scores[rows[:, None] >= second] = 0.0
            row, column = divmod(int(scores.argmax()), len(second))
            if scores[row, column] > best[2]:
                best = int(rows[row]), int(second[column]), float(scores[row, column])
        return best

    def _worth(self, least: float) -> tuple[NDArray[np.float64], float]:
        """Return what each sentence is worth, and how much the two of a pair must be worth to score `least`.

        A score is c · common / (r · size + p · n-grams of the pair), c, r and p given by the measure. It reaches a
        bound when c · common − bound · p · words reaches bound · (r · size − p · (n − 1)), and the left side is at most
        a sum over the two sentences. The bound is at least the least score above 0.
        """
        factor, of_size, of_pair = {"f1": (2, 1, 1), "precision": (1, 0, 1), "recall": (1, 1, 0)}[self._measure]
        largest = of_size * self._size + of_pair * 2 * int(self._lengths.max())
        least = max(least, factor / max(1, largest))
        worth = factor * (self._shared.alone + self._shared.seam) - least * of_pair * self._lengths
        return worth, least * (of_size * self._size - of_pair * (self._unit - 1)) - _ROUNDING

    def _num_ngrams(self, words: Ints) -> Ints:
        return np.maximum(words - self._unit + 1, 0)


class _Seam(NamedTuple):
    """A bigram that stands where some sentence meets another."""

    gram: int
    ends: NDArray[np.bool_]
    begins: NDArray[np.bool_]


class _Ngrams:
    """N-grams in common with one summary sentence.

    Args:
        held: [K, N], how often its n-grams stand in the source sentences.
        counts: [K], how often they stand in it.
        seams: of its bigrams that may stand at a seam, the row in `held`, and whether their first word ends a sentence
            and their second begins one: [N] each.
    """

    def __init__(self, held: Ints, counts: Ints, seams: Sequence[_Seam]) -> None:
        self._held, self._counts, self._seams = np.minimum(held, counts[:, None]), counts, seams
        self.alone = self._held.sum(axis=0)
        self.seam = np.zeros_like(self.alone)
        for seam in seams:
            self.seam[seam.ends] = 1

    def together(self, first: Ints, second: Ints) -> Ints:
        """Return min(c, a + b), summed over n-grams, as min(c, a) + min(c, b) − what both hold of the same.

        Of an n-gram that the summary sentence has c times, the first sentence holds the first min(c, a) and the second
        the last min(c, b); so one matrix product counts what both hold.
        """
        copies = np.repeat(np.arange(len(self._counts)), self._counts)
        before = np.arange(len(copies)) - np.repeat(self._counts.cumsum() - self._counts, self._counts)
        behind = self._counts[copies] - 1 - before
        of_first = (self._held[:, first][copies] > before[:, None]).astype(np.float32)  # sums below 2²⁴ are exact
        of_second = (self._held[:, second][copies] > behind[:, None]).astype(np.float32)
        both = (of_first.T @ of_second).astype(np.int64)
        common: Ints = self.alone[first, None] + self.alone[second] - both
        for seam in self._seams:
            rows, columns = np.flatnonzero(seam.ends[first]), np.flatnonzero(seam.begins[second])
            held = self._held[seam.gram, first[rows], None] + self._held[seam.gram, second[columns]]
            common[np.ix_(rows, columns)] += held < self._counts[seam.gram]
        return common


def _ngrams(source: Sequence[Ids], targets: Sequence[Ids], unit: int) -> Iterator[_Ngrams]:
    """Yield the n-grams in common with each summary sentence."""
    held, wanted = shared_ngrams(source, targets, unit)
    grams = sorted({gram for ids in targets for gram in pairwise(ids)}) if unit == 2 else []
    lasts = np.array([ids[-1] if ids else -1 for ids in source])
    firsts = np.array([ids[0] if ids else -1 for ids in source])
    ending, beginning = set(lasts.tolist()), set(firsts.tolist())
    seams = {
        row: _Seam(row, lasts == one, firsts == other)
        for row, (one, other) in enumerate(grams)
        if one in ending and other in beginning
    }
    for counts in wanted:
        own = np.flatnonzero(counts)
        at_seams = [seams[row]._replace(gram=place) for place, row in enumerate(own.tolist()) if row in seams]
        yield _Ngrams(held[own], counts[own], at_seams)


class _Subsequences:
    """Longest common subsequences with one summary sentence.

    Args:
        before: [N, L + 1], with its first 0, 1, … L words.
        behind: [N, L + 1], with the words behind those.
    """

    def __init__(self, before: NDArray[np.int32], behind: NDArray[np.int32]) -> None:
        self._before, self._behind = before, behind
        self.alone = before[:, -1].astype(np.int64)
        self.seam = np.zeros_like(self.alone)

    def together(self, first: Ints, second: Ints) -> Ints:
        """Return the most, over all places where the summary sentence can be cut in two."""
        before, behind = self._before[first].T, self._behind[second].T
        common = np.zeros((len(first), len(second)), np.int32)
        for one, other in zip(before, behind, strict=True):
            np.maximum(common, one[:, None] + other, out=common)
        return common.astype(np.int64)


def _subsequences(source: Sequence[Ids], targets: Sequence[Ids]) -> Iterator[_Subsequences]:
    """Yield the longest common subsequences with each summary sentence."""
    texts = TextsToMatch(source)
    return (_Subsequences(*texts.lcs_of_cuts(ids)) for ids in targets)
