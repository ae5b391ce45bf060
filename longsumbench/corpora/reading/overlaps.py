"""Which examples of a dataset stand in it twice: ids within a split, texts and ids in two splits.

What was met is kept as 64-bit hashes, in some 30 bytes an example, so that a corpus of millions costs little memory.
Two of ten million examples are taken for one another once in 400,000 such corpora.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import Any

_FEWEST_SLOTS = 1_024  # a power of two, as every later number of them


def hash_of(texts: Iterable[str]) -> int:
    """Return a hash of 64 bits, never 0, of texts in their order."""
    joined = "\n".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(joined, digest_size=8).digest(), "little") or 1


class Seen:
    """A set of hashes: open addressing, with one to two free slots for each that is taken."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * _FEWEST_SLOTS))
        self._taken = 0

    def __len__(self) -> int:
        return self._taken

    def __contains__(self, number: int) -> bool:
        return self._slots[self._place(number)] == number

    def add(self, number: int) -> None:
        """Take a hash in; it is not there yet."""
        self._slots[self._place(number)] = number
        self._taken += 1
        if 2 * self._taken > len(self._slots):
            before, self._slots = self._slots, array("Q", bytes(16 * len(self._slots)))
            for one in before:
                if one:
                    self._slots[self._place(one)] = one

    def _place(self, number: int) -> int:
        """Return the slot that a hash is in, or the free one that it goes to."""
        last = len(self._slots) - 1
        place = number & last
        while self._slots[place] not in (0, number):
            place = (place + 1) & last
        return place


def compare_splits(later: Mapping[str, Sequence[int]], earlier: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Compare the examples of two splits.

    Args:
        later: the split whose examples are counted: "text" and "id", a hash of each example.
        earlier: the one they may stand in, too.

    Returns:
        How many of its "examples" do, by "same_text" and by "same_id"; the "place" of the first. Nothing for none.
    """
    import numpy as np

    same = {by: np.isin(np.array(later[by]), np.array(earlier[by])) for by in ("text", "id")}
    either = same["text"] | same["id"]
    if not either.any():
        return {}
    counts = {f"same_{by}": int(found.sum()) for by, found in same.items()}
    return {"examples": int(either.sum()), **counts, "place": int(either.argmax())}


def split_pairs(splits: Iterable[str]) -> list[tuple[str, str]]:
    """Return every (later split, earlier split), in the order given."""
    return [(later, earlier) for earlier, later in combinations(splits, 2)]


def describe_overlaps(found: Mapping[str, Mapping[str, Any]], counts: Mapping[str, int]) -> str:
    """Say in one line which splits overlap.

    Args:
        found: "test in train" → what `compare_splits` found, the first one's id as "first".
        counts: split → its examples.
    """
    lines = []
    for where, one in found.items():
        later, _, earlier = where.partition(" in ")
        how = f"{one['same_text']:,} by text, {one['same_id']:,} by id"
        lines.append(f"{one['examples']:,} of {counts[later]:,} in {later} also in {earlier} ({how}; '{one['first']}')")
    return ", ".join(lines)
