"""The counts of `overlap.py`, compiled by numba: the same steps over arrays; a row of bits is an array of 64-bit words.

The code is compiled at the first call and stored in numba's cache: in this folder or, if that is read-only, the user's.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from longsumbench.rouge.overlap import Overlap

_Ids = NDArray[np.int32]
_Bits = NDArray[np.uint64]
Function = TypeVar("Function", bound=Callable[..., Any])

_compiled: Callable[[Function], Function] = numba.njit(cache=True, nogil=True)

_ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_NONE = np.uint64(0)
_ONE = np.uint64(1)
# marks a word of the reference before the candidate is searched for it
_IN_REFERENCE = -1
_SPREAD = np.uint64(
    0x9E37_79B9_7F4A_7C15
)  # 2⁶⁴ over the golden ratio: spreads the keys of a hash table


class Kernels:
    """The compiled counts, with the array that they reuse between calls."""

    def __init__(self) -> None:
        self._places = np.zeros(1 << 12, np.int32)

    def overlap(self, reference: Iterable[int], candidate: Iterable[int], words: int) -> Overlap:
        """Count what two texts have in common, as `count_overlap` does; `words` is larger than all their numbers."""
        if words > len(self._places):
            self._places = np.zeros(2 * words, np.int32)
        rows, columns = np.fromiter(reference, np.int32), np.fromiter(candidate, np.int32)
        return Overlap(*_totals(rows, columns, self._places))


@_compiled
def _totals(reference: _Ids, candidate: _Ids, places: _Ids) -> tuple[int, int, int, int, int, int]:
    """Count the overlap; `places` is all 0 before and after."""
    for word in reference:
        places[word] = _IN_REFERENCE
    places[0] = 0
    shared = 0
    words = 0
    columns = np.zeros(len(candidate), np.int32)
    for column, word in enumerate(candidate):
        words += word != 0
        if places[word] == _IN_REFERENCE:
            shared += 1
            places[word] = shared
        columns[column] = places[word]
    rows = np.zeros(len(reference), np.int32)
    reference_words = 0
    for row, word in enumerate(reference):
        reference_words += word != 0
        rows[row] = max(places[word], 0)
    for word in reference:
        places[word] = 0

    available = np.zeros(shared + 1, np.int32)
    for place in columns:
        available[place] += 1
    available[0] = 0
    width = len(candidate) // 64 + 1
    match = np.zeros((shared + 1, width), np.uint64)
    marks = np.zeros(width, np.uint64)
    for column, word in enumerate(candidate):
        bit = _ONE << np.uint64(column & 63)
        if word == 0:
            marks[column >> 6] |= bit
        elif columns[column]:
            match[columns[column], column >> 6] |= bit

    unigrams = _within_counts(np.bincount(rows, minlength=shared + 1).astype(np.int32), available)
    bigrams = _bigrams(reference, rows, candidate, columns, shared)
    sequence = _sequence(rows, match)
    union = _within_counts(_union(reference, rows, match, marks, shared), available)
    return reference_words, words, unigrams, bigrams, sequence, union


@_compiled
def _within_counts(counts: _Ids, available: _Ids) -> int:
    total = 0
    for index in range(1, len(counts)):
        total += min(counts[index], available[index])
    return total


@_compiled
def _bigrams(reference: _Ids, rows: _Ids, candidate: _Ids, columns: _Ids, shared: int) -> int:
    """Count common bigrams: add the candidate's to a hash table, then remove the reference's."""
    size = 16
    while size < 2 * len(candidate):
        size *= 2
    keys = np.zeros(size, np.int64)
    unmatched = np.zeros(size, np.int32)
    shift = np.uint64(64)
    while size > 1:
        size >>= 1
        shift -= _ONE
    last = 0
    for column, word in enumerate(candidate):
        if word == 0:
            continue
        place = columns[column]
        if last and place:
            key = np.int64(last) * (shared + 1) + place
            slot = _slot(keys, key, shift)
            keys[slot] = key
            unmatched[slot] += 1
        last = place
    total = 0
    last = 0
    for row, word in enumerate(reference):
        if word == 0:
            continue
        place = rows[row]
        if last and place:
            slot = _slot(keys, np.int64(last) * (shared + 1) + place, shift)
            if unmatched[slot] > 0:
                unmatched[slot] -= 1
                total += 1
        last = place
    return total


@_compiled
def _slot(keys: NDArray[np.int64], key: int, shift: np.uint64) -> int:
    """Return a key's slot, or an empty one; 0 is no key, and at least half of the table is 0."""
    slot = np.int64((np.uint64(key) * _SPREAD) >> shift)
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & (len(keys) - 1)
    return int(slot)


@_compiled
def _sequence(rows: _Ids, match: _Bits) -> int:
    """Return the length of the LCS of two texts, each read as one sequence."""
    width = match.shape[1]
    bits = np.full(width, _ALL_BITS, np.uint64)
    for place in rows:
        if place == 0:
            continue
        carry = _NONE
        for at in range(width):
            row = bits[at]
            rising = row & match[place, at]
            total = row + rising
            over = total < row
            total += carry
            carry = _ONE if over or total < carry else _NONE
            bits[at] = total | (row ^ rising)
    length = 0
    for row in bits:
        gone = ~row
        while gone:
            gone &= gone - _ONE
            length += 1
    return length


@_compiled
def _union(reference: _Ids, rows: _Ids, match: _Bits, marks: _Bits, shared: int) -> _Ids:
    width = match.shape[1]
    longest = 0
    count = 0
    for row, word in enumerate(reference):
        count = 0 if word == 0 else count + (rows[row] > 0)
        longest = max(longest, count)
    taken_at = np.empty((longest, width), np.uint64)
    places = np.empty(longest, np.int32)
    # of the sentences: before the mark
    last_columns = np.empty(width, np.uint64)
    for at in range(width):
        next_marks = marks[at + 1] if at + 1 < width else _NONE
        last_columns[at] = (marks[at] >> _ONE) | (next_marks << np.uint64(63))
    bits = ~marks
    columns = np.empty(width, np.uint64)
    union = np.zeros(shared + 1, np.int32)
    count = 0
    for row, word in enumerate(reference):
        if word == 0:
            if count:
                columns[:] = last_columns
                _backtrack_bits(places, taken_at, count, match, columns, union)
                bits[:] = ~marks
            count = 0
        elif rows[row]:
            _next_row(bits, match[rows[row]], marks, taken_at[count])
            places[count] = rows[row]
            count += 1
    return union


@_compiled
def _next_row(bits: _Bits, match: _Bits, marks: _Bits, taken_at: _Bits) -> None:
    """Turn `bits` into the next row of the table; write to `taken_at` where backtracking takes the row."""
    carry = _NONE
    borrow = _NONE
    for at in range(len(bits)):
        row = bits[at]
        rising = row & match[at]
        total = row + rising
        over = total < row
        total += carry
        carry = _ONE if over or total < carry else _NONE
        next_bits = total | (row ^ rising)
        difference = next_bits - row
        under = next_bits < row
        taken_at[at] = (difference - borrow) | match[at]
        borrow = _ONE if under or difference < borrow else _NONE
        bits[at] = next_bits & ~marks[at]


@_compiled
def _backtrack_bits(
    places: _Ids, taken_at: _Bits, count: int, match: _Bits, columns: _Bits, union: _Ids
) -> None:
    """Walk up the tables of all candidate sentences at once; `columns` has the bits of their columns."""
    width = len(columns)
    for row in range(count - 1, -1, -1):
        place = places[row]
        any_taken = False
        for at in range(width):
            hits = columns[at] & taken_at[row, at]
            if hits == _NONE:
                continue
            any_taken = True
            columns[at] ^= hits
            while hits:
                column = hits & (~hits + _ONE)
                hits ^= column
                _go_left(columns, match[place], at, column)
        if any_taken:
            union[place] += 1


@_compiled
def _go_left(columns: _Bits, match: _Bits, at: int, column: np.uint64) -> None:
    """Set the bit before the nearest match at or left of a column."""
    candidates = match[at] & (column | (column - _ONE))
    while candidates == _NONE:
        at -= 1
        candidates = match[at]
    for step in (32, 16, 8, 4, 2, 1):  # all bits below the highest one
        candidates |= candidates >> np.uint64(step)
    highest = candidates ^ (candidates >> _ONE)
    if highest > _ONE:
        columns[at] |= highest >> _ONE
    elif at > 0:
        columns[at - 1] |= _ONE << np.uint64(63)
