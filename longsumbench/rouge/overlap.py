"""The overlap of two texts, from which precision and recall are computed."""

from collections.abc import Sequence
from typing import NamedTuple

from longsumbench.rouge.lcs import match_bits, sequence_length, union_words
from longsumbench.rouge.ngrams import common, counted_words


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
