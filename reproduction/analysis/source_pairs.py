"""Exact search for the two source sentences that a summary sentence fuses (PageSum, §5.6 and Appendix A).

The text of a pair s_i ⊕ s_j, i < j, is the words of sentence i followed by those of sentence j. The bigram at the seam
counts, and a common subsequence may cross it.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from longsumbench.rouge.all_pairs import Ids, number_words
from longsumbench.rouge.overlap import common, match_bits, sequence_length

_CountCommon: TypeAlias = Callable[[Ids], int]
_SCORE_TOLERANCE = 1e-9  # of differences of scores


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


def best_pairs(
    sentences: Sequence[Sequence[Hashable]],
    summary: Sequence[Sequence[Hashable]],
    kind: str = "rouge1",
) -> list[SourcePair]:
    """Find the pair of source sentences with the best recall of each summary sentence (PageSum, Eqs. 13, 14).

    Of equal pairs, it is the one with the smallest i, then the smallest j. If no pair scores above 0, it is the first
    two sentences of the source.

    Args:
        sentences: two or more of the source, in order, as words (tokens, stems or ids); a sentence may be empty.
        summary: the sentences of the summary, as words.
        kind: "rouge1", "rouge2" or "rougeL".
    """
    source, targets = number_words(sentences, summary)
    pairs = []
    for target in targets:
        count_common = _COUNTERS[kind](target)
        alone = list(map(count_common, source))
        first, second, together = _find_best(source, alone, count_common, int(kind == "rouge2"))
        size = max(1, len(target) - (kind == "rouge2"))
        scores_alone = alone[first] / size, alone[second] / size
        distance = (second - first) / len(source)
        pairs.append(SourcePair(first, second, together / size, scores_alone, distance))
    return pairs


def _find_best(
    source: Sequence[Ids], alone: Sequence[int], count_common: _CountCommon, seam: int
) -> tuple[int, int, int]:
    """Return the first best pair and how much it has in common with the summary sentence.

    A pair has at most as much as both sentences alone, plus `seam`. So pairs with much alone are scored first, and most
    others not at all. If no pair has anything in common, it is (0, 1).
    """
    best = (0, 0, 1)  # minus the count, and the indices
    order = sorted(range(len(source)), key=lambda index: -alone[index])
    for position, weaker in enumerate(order):
        for stronger in order[:position]:
            if alone[stronger] + alone[weaker] + seam < max(1, -best[0]):
                break
            first, second = sorted((stronger, weaker))
            best = min(best, (-count_common([*source[first], *source[second]]), first, second))
    return best[1], best[2], -best[0]


def _common_words(target: Ids) -> _CountCommon:
    counts = Counter(target)
    return lambda words: common(Counter(words), counts)


def _common_bigrams(target: Ids) -> _CountCommon:
    counts = Counter(pairwise(target))
    return lambda words: common(Counter(pairwise(words)), counts)


def _common_sequence(target: Ids) -> _CountCommon:
    counts = Counter(target)

    def count(words: Ids) -> int:
        bits, _ = match_bits(words, counts)
        return sequence_length(target, bits, len(words))

    return count


# Words of a summary sentence → a function: words → how much both have in common
_COUNTERS: Mapping[str, Callable[[Ids], _CountCommon]] = {
    "rouge1": _common_words,
    "rouge2": _common_bigrams,
    "rougeL": _common_sequence,
}
