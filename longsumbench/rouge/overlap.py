"""The overlap of two texts, from which precision and recall are computed.

Longest common subsequences (LCS) are bit-parallel: each row of the table is an integer with a bit per candidate word.
Row i of the table of LCS lengths rises by 0 or 1 from column to column; a bit is 1 where it does not rise (Hyyrö 2004).
One addition, whose carries run through the bits, gives the next row. One subtraction gives its difference to the
previous row. All sentences of a candidate are in one integer. The mark that ends a sentence has its own bit:

* at 1, carries pass it, and the candidate is one sequence;
* at 0, carries stop there, and every sentence has its own table.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from longsumbench.rouge.tokenizer import END


class Overlap(NamedTuple):
    """Counts of words and bigrams."""

    reference: int  # words of the reference
    candidate: int  # words of the candidate
    unigrams: int
    bigrams: int
    sequence: int  # words of the LCS of the texts
    # words of the union LCS, each at most as often as in the candidate
    union: int


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


def match_bits(candidate: Sequence[int], words: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Return word → the bits of its positions in the candidate, and the bits of the marks."""
    bits = dict.fromkeys(words.keys() & set(candidate), 0)
    marks = 0
    for index, word in enumerate(candidate):
        if word in bits:
            bits[word] |= 1 << index
        elif word == END:
            marks |= 1 << index
    return bits, marks


def sequence_length(reference: Sequence[int], bits: Mapping[int, int], length: int) -> int:
    """Return the length of the LCS of two texts, each read as one sequence.

    The bits and the length, with its marks, are those of the candidate (`match_bits`).
    """
    full = row = (1 << length) - 1
    for word in reference:
        if match := bits.get(word):
            rising = row & match
            row = ((row + rising) | (row ^ rising)) & full
    return length - row.bit_count()


def union_words(
    reference: Sequence[int], bits: Mapping[int, int], marks: int, length: int
) -> Counter[int]:
    """Count the words of the union LCS: a reference sentence's words in the LCS with any candidate sentence.

    Each sentence of the reference is followed by the mark. Bits, marks and length are those of the candidate
    (`match_bits`).
    """
    union: Counter[int] = Counter()
    free = row = (1 << length) - 1 ^ marks
    # word, its bits, the bits where backtracking takes it
    rows: list[tuple[int, int, int]] = []
    for word in reference:
        if match := bits.get(word):
            rising = row & match
            next_row = (row + rising) | (row ^ rising)
            rows.append((word, match, (next_row - row) | match))
            row = next_row & free
        elif word == END:
            _backtrack_rows(rows, marks >> 1, union)
            row = free
            rows.clear()
    return union


def _backtrack_rows(rows: Sequence[tuple[int, int, int]], at: int, union: Counter[int]) -> None:
    """Walk up the tables of all candidate sentences at once, each from its last column.

    A row is taken where its word matches, or at the nearest match to the left of where the table rises to the row.
    This equals `rouge_score`: on a match go up and left, else left where the table rises, else up.
    `at` has the bits of the columns.
    """
    for word, match, taken_at in reversed(rows):
        hits = at & taken_at
        if not hits:
            continue
        union[word] += 1
        on_match = hits & match
        at = at ^ hits | on_match >> 1
        risen = hits ^ on_match
        while risen:
            column = risen & -risen
            at |= (1 << (match & column - 1).bit_length()) >> 2
            risen ^= column
