"""The overlap of two texts, from which precision and recall are computed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from longsumbench.rouge.lcs import match_bits, sequence_length, union_words
from longsumbench.rouge.vocabulary import END


class Overlap(NamedTuple):
    """Counts of words and bigrams."""

    reference: int  # words of the reference
    candidate: int  # words of the candidate
    unigrams: int
    bigrams: int
    sequence: int  # words of the LCS of the texts
    union: int  # words of the union LCS, each at most as often as in the candidate


def count_overlap(reference: Sequence[int], candidate: Sequence[int]) -> Overlap:
    """Count what two texts have in common; a text is the numbers of its words, with 0 after each sentence."""
    words, bigrams = counted_words(reference)
    candidate_words, candidate_bigrams = counted_words(candidate)
    bits, marks = match_bits(candidate, words)
    length = len(candidate)
    return Overlap(
        words.total(),
        candidate_words.total(),
        common(words, candidate_words),
        common(bigrams, candidate_bigrams),
        sequence_length(reference, bits, length),
        common(union_words(reference, bits, marks, length), candidate_words),
    )


def counted_words(text: Sequence[int]) -> tuple[Counter[int], Counter[tuple[int, int]]]:
    """Count a text's words and its bigrams, which cross the ends of sentences."""
    words = [word for word in text if word != END]
    return Counter(words), Counter(pairwise(words))


def common(first: Mapping[Any, int], second: Mapping[Any, int]) -> int:
    """Count the n-grams in both, each with the smaller of its two counts."""
    if len(first) > len(second):
        first, second = second, first
    return sum(min(count, second[gram]) for gram, count in first.items() if gram in second)
