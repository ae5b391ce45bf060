"""Examples that occur twice in a dataset: ids within a split, texts and ids in two splits.

Only 64-bit hashes are stored, so millions of examples need little memory. Two of ten
million examples have the same hash in one of 400,000 such datasets.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any


def hash_of(texts: Iterable[str]) -> int:
    """Return a 64-bit hash of texts in their order."""
    joined = "\n".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(joined, digest_size=8).digest(), "little")


def compare_splits(hashes: Mapping[str, Sequence[int]], earlier_hashes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Count the examples of a split that also occur in an earlier one.

    Args:
        hashes: the hashes "text" and "id" of each example of the split that is counted.
        earlier_hashes: those of the split to search.

    Returns:
        The number of "examples" found, by "same_text" and by "same_id", and the "place" of the first; {} for none.
    """
    import numpy as np

    same = {by: np.isin(np.array(hashes[by]), np.array(earlier_hashes[by])) for by in ("text", "id")}
    either = same["text"] | same["id"]
    if not either.any():
        return {}
    counts = {f"same_{by}": int(mask.sum()) for by, mask in same.items()}
    return {"examples": int(either.sum()), **counts, "place": int(either.argmax())}


def describe_overlaps(overlaps: Mapping[str, Mapping[str, Any]], counts: Mapping[str, int]) -> str:
    """Describe in one line which splits overlap.

    Args:
        overlaps: "test in train" → the result of `compare_splits`, with the first example's id as "first".
        counts: split → number of examples.
    """
    lines = []
    for pair, overlap in overlaps.items():
        split, _, earlier_split = pair.partition(" in ")
        kinds = f"{overlap['same_text']:,} by text, {overlap['same_id']:,} by id"
        examples, first = f"{overlap['examples']:,} of {counts[split]:,}", overlap["first"]
        lines.append(f"{examples} in {split} also in {earlier_split} ({kinds}; '{first}')")
    return ", ".join(lines)
