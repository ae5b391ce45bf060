"""Examples of different splits whose sources are nearly the same: what was trained on is then tested on.

Candidates are found by MinHash and locality-sensitive hashing (the library datasketch); whether two are near-duplicates
is then computed from their texts: the Jaccard similarity of the sets of their sequences of words.

    sources, the smaller splits first --see--> NearDuplicates --found--> Overlap for each two splits, the nearest pairs

Only the smaller splits are kept in memory, as hashes; the largest one streams past them.
"""

import heapq
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longsumbench.api.documents import Example
from longsumbench.api.system import Split

if TYPE_CHECKING:
    from datasketch import MinHash, MinHashLSH

SHINGLE_WORDS = 5  # of a sequence
SIMILARITY = 0.8  # Jaccard, from which on two sources are near-duplicates
NEAREST = 10  # pairs that are named
# A pair of similarity s is looked at with probability 1 - (1 - s^4)^16: 99.98 % at 0.8, 0.003 % at 0.04
_PERMUTATIONS, _BANDS = 64, 16
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the polynomial that makes one number of several words'
_LOW_BITS = np.uint64(2**32 - 1)

Shingles: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, order=True)
class DuplicatePair:
    """Two examples of different splits.

    Attributes:
        similarity: Jaccard, 0–1.
        one, other: (split, id) of each.
    """

    similarity: float
    one: tuple[str, str]
    other: tuple[str, str]


@dataclass(frozen=True)
class SplitOverlap:
    """What two splits share.

    Attributes:
        one, other: the splits, in the order train, validation, test.
        pairs: of near-duplicates.
        of_one, of_other: examples of each split that have a near-duplicate in the other one.
        size_of_one, size_of_other: examples of each split.
    """

    one: str
    other: str
    pairs: int
    of_one: int
    of_other: int
    size_of_one: int
    size_of_other: int


def shingles(example: Example) -> Shingles:
    """Return the sequences of five words of an example's source, as sorted numbers, each once.

    Words are whitespace-separated and in lower case; sequences go on across sentences, sections and documents. A text
    of fewer words is one sequence.
    """
    words = [word for sentence in example.sentences() for word in sentence.lower().split()]
    numbers = np.fromiter((zlib.crc32(word.encode("utf-8", "replace")) for word in words), np.uint64, len(words))
    width = min(SHINGLE_WORDS, len(words))
    count = len(words) - width + 1 if words else 0
    joined = np.zeros(count, np.uint64)
    for start in range(width):
        joined = mix_hashes(joined * _FACTOR + numbers[start : start + count])
    return np.unique(joined)


def mix_hashes(numbers: Shingles) -> Shingles:
    """Spread the bits of some numbers over all of theirs; different ones stay different (splitmix64's last step)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def jaccard(one: Shingles, other: Shingles) -> float:
    """Return the share of all sequences of two texts that are in both, 0–1; of empty ones 0."""
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / max(1, len(one) + len(other) - common)


def _empty_sketch() -> "MinHash":
    """Return the MinHash of a text without sequences; it takes numbers below 2³²."""
    from datasketch import MinHash

    return MinHash(_PERMUTATIONS, seed=1, hashfunc=int)


def _new_index() -> "MinHashLSH":
    """Return an index of such sketches without any."""
    from datasketch import MinHashLSH

    return MinHashLSH(num_perm=_PERMUTATIONS, params=(_BANDS, _PERMUTATIONS // _BANDS))


class NearDuplicates:
    """Looks at the examples of all splits, one after the other.

    Args:
        splits: name → examples; split by split they are to be seen in the order of `order`.
    """

    def __init__(self, splits: Mapping[str, Split]) -> None:
        self._splits = splits
        self.order = sorted(splits, key=lambda name: len(splits[name]))
        self._indices = {name: _new_index() for name in self.order[:-1]}  # of the largest split nobody asks
        self._empty = _empty_sketch()
        pairs = [(one, other) for place, one in enumerate(splits) for other in list(splits)[place + 1 :]]
        self._num_pairs = dict.fromkeys(pairs, 0)
        self._affected = {pair: [bytearray(len(splits[name])) for name in pair] for pair in pairs}
        self._nearest: list[tuple[float, int, int, str, str]] = []

    def see(self, split: str, index: int, example: Example) -> None:
        """Look at an example: compare it with those of the splits before, and remember it for those that follow."""
        found = shingles(example)
        if not len(found):
            return
        sketch = self._empty.copy()
        sketch.update_batch((found & _LOW_BITS).tolist())
        for other in self.order[: self.order.index(split)]:
            for candidate in sorted(self._indices[other].query(sketch)):
                self._compare(split, index, found, other, candidate)
        if split in self._indices:
            self._indices[split].insert(index, sketch, check_duplication=False)

    def _compare(self, split: str, index: int, found: Shingles, other: str, candidate: int) -> None:
        similarity = jaccard(found, shingles(self._splits[other][candidate]))
        if similarity < SIMILARITY:
            return
        places = {split: index, other: candidate}
        pair = next(pair for pair in self._num_pairs if set(pair) == {split, other})
        self._num_pairs[pair] += 1
        for name, affected in zip(pair, self._affected[pair], strict=True):
            affected[places[name]] = 1
        one, another = pair  # of equal similarities the earlier ones are named, whatever order they were seen in
        heapq.heappush(self._nearest, (similarity, -places[another], -places[one], another, one))
        if len(self._nearest) > NEAREST:
            heapq.heappop(self._nearest)

    def overlaps(self) -> tuple[SplitOverlap, ...]:
        """Return what every two splits share."""
        return tuple(
            SplitOverlap(*pair, self._num_pairs[pair], *map(sum, affected), *(len(self._splits[name]) for name in pair))
            for pair, affected in self._affected.items()
        )

    def nearest(self) -> tuple[DuplicatePair, ...]:
        """Return the most similar pairs, the most similar first."""
        named = []
        for similarity, another_index, one_index, another, one in sorted(self._nearest, reverse=True):
            ids = self._splits[one][-one_index].id, self._splits[another][-another_index].id
            named.append(DuplicatePair(similarity, (one, ids[0]), (another, ids[1])))
        return tuple(named)
