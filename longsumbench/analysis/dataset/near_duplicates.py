"""Finds examples of different splits with nearly the same source, as when a system is tested on training texts.

Candidates are found by MinHash and locality-sensitive hashing (the library datasketch). Each candidate pair is then
checked by the Jaccard similarity of its sets of word sequences.

    sources, smaller splits first --see--> NearDuplicates --overlaps, nearest--> SplitOverlaps, DuplicatePairs

Only the smaller splits are kept in memory, as hashes; the largest split is streamed.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.core import Example, Split

SHINGLE_WORDS = 5  # per sequence
SIMILARITY = 0.8  # smallest Jaccard similarity of near-duplicates
NEAREST = 10  # pairs that are listed
# A pair of similarity s is a candidate with probability 1 - (1 - s^4)^16: 99.98 % at 0.8, 0.003 % at 0.04
_PERMUTATIONS, _BANDS = 64, 16
_LOW_BITS = np.uint64(2**32 - 1)

Shingles: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, order=True)
class DuplicatePair:
    """Two examples of different splits, each as (split, id)."""

    similarity: float  # Jaccard, 0–1
    first: tuple[str, str]
    second: tuple[str, str]


@dataclass(frozen=True)
class SplitOverlap:
    """The near-duplicates of two splits, in the order train, validation, test."""

    first: str
    second: str
    pairs: int  # number of pairs
    of_first: int  # number of examples with a near-duplicate in the other split
    of_second: int
    size_of_first: int  # number of examples of the split
    size_of_second: int


def shingles(example: Example) -> Shingles:
    """Return hashes of the distinct five-word sequences of an example's source, sorted.

    Words are separated by whitespace and lower-cased. Sequences continue across sentences, sections and documents. A
    text of fewer words is one sequence.
    """
    words = [word for sentence in example.sentences() for word in sentence.lower().split()]
    hashes = pd.util.hash_array(np.array(words, dtype=object))
    width = min(SHINGLE_WORDS, len(words))
    count = len(words) - width + 1 if words else 0
    sequences = pd.DataFrame({start: hashes[start : start + count] for start in range(width)})
    return np.unique(pd.util.hash_pandas_object(sequences, index=False).to_numpy(np.uint64))


def jaccard(first: Shingles, second: Shingles) -> float:
    """Return the Jaccard similarity of two texts' sequences, 0–1; 0 if both are empty."""
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / max(1, len(first) + len(second) - common)


class NearDuplicates:
    """Compares the sources of examples of different splits.

    Call `see` for each example, split by split in the order of `order`.
    """

    def __init__(self, splits: Mapping[str, Split]) -> None:
        from datasketch import MinHash, MinHashLSH

        self._splits = splits
        self.order = sorted(splits, key=lambda name: len(splits[name]))
        banded = {"num_perm": _PERMUTATIONS, "params": (_BANDS, _PERMUTATIONS // _BANDS)}
        self._indices = {name: MinHashLSH(**banded) for name in self.order[:-1]}  # the last split is never queried
        self._empty = MinHash(_PERMUTATIONS, seed=1, hashfunc=int)  # takes numbers below 2³²
        pairs = list(combinations(splits, 2))
        self._num_pairs = dict.fromkeys(pairs, 0)
        self._affected = {pair: [bytearray(len(splits[name])) for name in pair] for pair in pairs}
        self._nearest: list[tuple[float, int, int, str, str]] = []

    def see(self, split: str, index: int, example: Example) -> None:
        """Compare an example with those of earlier splits, and store it for later ones."""
        hashes = shingles(example)
        if not len(hashes):
            return
        sketch = self._empty.copy()
        sketch.update_batch((hashes & _LOW_BITS).tolist())
        for earlier_split in self.order[: self.order.index(split)]:
            for candidate in sorted(self._indices[earlier_split].query(sketch)):
                self._compare(split, index, hashes, earlier_split, candidate)
        if split in self._indices:
            self._indices[split].insert(index, sketch, check_duplication=False)

    def _compare(self, split: str, index: int, hashes: Shingles, earlier_split: str, candidate: int) -> None:
        similarity = jaccard(hashes, shingles(self._splits[earlier_split][candidate]))
        if similarity < SIMILARITY:
            return
        places = {split: index, earlier_split: candidate}
        pair = next(pair for pair in self._num_pairs if set(pair) == {split, earlier_split})
        self._num_pairs[pair] += 1
        for name, affected in zip(pair, self._affected[pair], strict=True):
            affected[places[name]] = 1
        first, second = pair  # ties are resolved by the order in the splits, not by the order of the calls
        heapq.heappush(self._nearest, (similarity, -places[second], -places[first], second, first))
        if len(self._nearest) > NEAREST:
            heapq.heappop(self._nearest)

    def overlaps(self) -> tuple[SplitOverlap, ...]:
        """Return the near-duplicates of every two splits."""
        return tuple(
            SplitOverlap(*pair, self._num_pairs[pair], *map(sum, affected), *(len(self._splits[name]) for name in pair))
            for pair, affected in self._affected.items()
        )

    def nearest(self) -> tuple[DuplicatePair, ...]:
        """Return the most similar pairs, in descending order."""
        pairs = []
        for similarity, second_index, first_index, second, first in sorted(self._nearest, reverse=True):
            ids = self._splits[first][-first_index].id, self._splits[second][-second_index].id
            pairs.append(DuplicatePair(similarity, (first, ids[0]), (second, ids[1])))
        return tuple(pairs)
