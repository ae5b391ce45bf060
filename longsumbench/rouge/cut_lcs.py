"""The longest common subsequences (LCS) of many texts with both parts of a target, for every cut of the target.

Hyyrö's bit-parallel recurrence, with one bit for each word of the target and arrays over the texts. Letters: N texts,
L words of the target, D distinct ones, W machine words of 64 bits for L bits.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from longsumbench.rouge.all_pairs import Ids, Ints

_WORD_BITS = 64

_Bits = NDArray[np.uint64]
Lengths = NDArray[np.int32]


class TextsToMatch:
    """Texts, as word ids from 0 on, that are compared with one target after another."""

    def __init__(self, texts: Sequence[Ids]) -> None:
        lengths = [len(ids) for ids in texts]
        self._num_texts = len(texts)
        self._words = np.fromiter(chain.from_iterable(texts), np.int64, sum(lengths))
        self._owners = np.repeat(np.arange(len(texts)), lengths)

    def lcs_of_cuts(self, target: Ids) -> tuple[Lengths, Lengths]:
        """Return the LCS of every text with the target's first 0, 1, … L words, and with the others: [N, L + 1]."""
        distinct = list(dict.fromkeys(target))
        ranks = np.full(1 + max([int(self._words.max(initial=0)), *distinct]), -1)
        ranks[distinct] = np.arange(len(distinct))
        codes = ranks[self._words]
        kept = codes >= 0  # the other words match nothing
        codes, owners, wanted = codes[kept], self._owners[kept], ranks[list(target)]
        prefixes = _lcs_of_prefixes(codes, owners, wanted, self._num_texts)
        suffixes = _lcs_of_prefixes(codes[::-1], owners[::-1], wanted[::-1], self._num_texts)
        return prefixes, suffixes[:, ::-1]


def _lcs_of_prefixes(codes: Ints, owners: Ints, target: Ints, num_texts: int) -> Lengths:
    """Return the LCS of every text with every prefix of the target: [N, L + 1].

    Args:
        codes: the words of all texts that the target has, 0 to D − 1, in their order.
        owners: the text of each word; the words of a text are adjacent.
        target: codes of its words.
        num_texts: N.
    """
    distinct = int(target.max(initial=-1)) + 1
    matches = np.zeros((distinct + 1, -(-len(target) // _WORD_BITS) * _WORD_BITS), np.bool_)
    matches[target, np.arange(len(target))] = True  # the last row stays False, for texts that have ended
    masks = _as_bits(matches)
    counts = np.bincount(owners, minlength=num_texts)
    by_owner = np.argsort(owners, kind="stable")
    places = np.arange(len(owners)) - np.repeat(counts.cumsum() - counts, counts)
    steps = np.full((int(counts.max(initial=0)), num_texts), distinct)
    steps[places, owners[by_owner]] = codes[by_owner]
    rest = np.full((len(masks), num_texts), np.iinfo(np.uint64).max, np.uint64)
    for step in steps:
        _advance(rest, masks[:, step])
    lengths = np.zeros((num_texts, len(target) + 1), np.int32)
    (~_as_flags(rest)[:, : len(target)]).cumsum(axis=1, out=lengths[:, 1:])
    return lengths


def _advance(rest: _Bits, masks: _Bits) -> None:
    """Process one more word of every text in place: V ← (V + (V & M)) | (V & ~M), each [W, N] machine words."""
    carry = np.zeros(rest.shape[1], np.uint64)
    for bits, mask in zip(rest, masks, strict=True):
        hits = bits & mask
        total = bits + hits
        over = total < hits
        total += carry
        over |= total < carry
        np.bitwise_or(total, bits & ~mask, out=bits)
        carry = over.astype(np.uint64)


def _as_bits(flags: NDArray[np.bool_]) -> _Bits:
    """Pack rows of flags into machine words, lowest bit first: [R, 64 W] → [W, R]."""
    return np.packbits(flags, axis=1, bitorder="little").view("<u8").T.astype(np.uint64)


def _as_flags(bits: _Bits) -> NDArray[np.bool_]:
    """Unpack the flags: [W, R] → [R, 64 W]."""
    packed = np.ascontiguousarray(bits.T).astype("<u8").view(np.uint8)
    return np.unpackbits(packed, axis=1, bitorder="little").astype(np.bool_)
