"""Longest common subsequences, a row of the table at a time: whole numbers whose bits are the candidate's words.

Row i of the table of LCS lengths rises by 0 or 1 from column to column; a bit is 1 where it does not rise (Hyyrö 2004).
The next row takes one addition, whose carries run through the bits; the row's difference to the one before it takes one
subtraction. All sentences of a candidate lie in one number. The mark that ends a sentence has a bit of its own:

* kept at 1 it lets carries pass, and the candidate is one sequence;
* kept at 0 it takes them in, and every sentence has a table of its own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from longsumbench.rouge.vocabulary import END


def match_bits(candidate: Sequence[int], wanted: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """Return word → the bits of its places in the candidate, for the wanted words, and the bits of the marks."""
    bits = dict.fromkeys(wanted.keys() & set(candidate), 0)
    marks = 0
    for place, word in enumerate(candidate):
        if word in bits:
            bits[word] |= 1 << place
        elif word == END:
            marks |= 1 << place
    return bits, marks


def sequence_length(reference: Sequence[int], bits: Mapping[int, int], length: int) -> int:
    """Return the length of the LCS of two texts, each read as one sequence.

    Args:
        reference: its words.
        bits: the candidate's, see `match_bits`.
        length: the candidate's, with its marks.
    """
    full = row = (1 << length) - 1
    for word in reference:
        if match := bits.get(word):
            rising = row & match
            row = ((row + rising) | (row ^ rising)) & full
    return length - row.bit_count()


def union_words(reference: Sequence[int], bits: Mapping[int, int], marks: int, length: int) -> Counter[int]:
    """Count the words of the union LCS: for each sentence of the reference, its words in any candidate sentence's LCS.

    Args:
        reference: its words, each sentence followed by the mark.
        bits: the candidate's, see `match_bits`.
        marks: the bits of the candidate's marks.
        length: the candidate's, with its marks.
    """
    union: Counter[int] = Counter()
    free = row = (1 << length) - 1 ^ marks
    rows: list[tuple[int, int, int]] = []  # word, its bits, the bits where backtracking takes it
    for word in reference:
        if match := bits.get(word):
            rising = row & match
            following = (row + rising) | (row ^ rising)
            rows.append((word, match, (following - row) | match))
            row = following & free
        elif word == END:
            _backtrack(rows, marks >> 1, union)
            row = free
            rows.clear()
    return union


def _backtrack(rows: Sequence[tuple[int, int, int]], at: int, union: Counter[int]) -> None:
    """Walk up the tables of all candidate sentences at once, each from its last column.

    A row is taken where its word matches or where the table rises to it, and there at the nearest match to the left,
    which is what `rouge_score` does: on a match go up and left, else left where the table rises, else up.

    Args:
        rows: of one reference sentence, those with a match.
        at: the bits of the columns.
        union: counts the words of the rows that some sentence takes.
    """
    for word, match, taken_at in reversed(rows):
        taken = at & taken_at
        if not taken:
            continue
        union[word] += 1
        on_match = taken & match
        at = at ^ taken | on_match >> 1
        risen = taken ^ on_match
        while risen:
            column = risen & -risen
            at |= (1 << (match & column - 1).bit_length()) >> 2
            risen ^= column
