"""Counts of the n-grams that two texts have in common."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from longsumbench.rouge.vocabulary import END

Gram = TypeVar("Gram", bound=Hashable)


def counted_words(text: Sequence[int]) -> tuple[Counter[int], Counter[tuple[int, int]]]:
    """Count a text's words and its bigrams, which cross the ends of sentences."""
    words = [word for word in text if word != END]
    return Counter(words), Counter(pairwise(words))


def common(one: Mapping[Gram, int], other: Mapping[Gram, int]) -> int:
    """Count the n-grams in both, each with the smaller of its two counts."""
    if len(one) > len(other):
        one, other = other, one
    return sum(min(count, other[gram]) for gram, count in one.items() if gram in other)
