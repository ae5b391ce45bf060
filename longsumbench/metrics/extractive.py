"""How much of a summary is copied: extractive fragments (Grusky et al. 2018, §4)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from longsumbench.core import Example
from longsumbench.metrics.words import WordMetric


class Extractive(WordMetric):
    """Coverage, density and compression of a summary (Grusky et al. 2018, §4).

    With the words A of the source, the words S of the summary and their shared fragments F(A, S):

    * `extractive_coverage`: Σ|f| / |S|, the share of the summary's words that are in a fragment;
    * `extractive_density`: Σ|f|² / |S|, in words: the mean length of the fragment of a summary word;
    * `extractive_compression`: |A| / |S|, source words per summary word.

    The metric does not apply to a summary without words.
    """

    name: ClassVar[str] = "extractive"
    columns: ClassVar[tuple[str, ...]] = ("extractive_coverage", "extractive_density", "extractive_compression")
    units: ClassVar[Mapping[str, str]] = MappingProxyType({columns[1]: "words", columns[2]: "source words a word"})

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; coverage → 0–1, density → words, compression → a ratio; all may be NaN."""
        source, summary = self.source_words(example), self.words(prediction)
        if not summary:
            return dict.fromkeys(self.columns, np.nan)
        lengths = fragment_lengths(source, summary)
        sums = (sum(lengths), sum(length * length for length in lengths), len(source))
        return {column: total / len(summary) for column, total in zip(self.columns, sums, strict=True)}


def fragment_lengths(source: Sequence[str], summary: Sequence[str]) -> list[int]:
    """Return the lengths of the fragments that source and summary share, in the summary's order.

    The procedure is that of Figure 3 in the paper. For a word of the summary, it searches the source from the beginning
    for the longest match with the following words. After a match, the search continues after its end. The
    next word is the one after the longest match. A word that is not in the source is in no fragment.

    Only places of word pairs are visited, because a match of one word never hides a longer one.
    """
    common, places = set(summary).intersection(source), _places_of_pairs(source, summary)
    lengths, start = [], 0
    while start < len(summary):
        length = int(summary[start] in common)
        match_end = 0
        for place in places.get(tuple(summary[start : start + 2]), ()):
            if place >= match_end:
                match_length = _num_shared(source, place, summary, start)
                match_end = place + match_length
                length = max(length, match_length)
        if length:
            lengths.append(length)
        start += max(length, 1)
    return lengths


def _places_of_pairs(source: Sequence[str], summary: Sequence[str]) -> Mapping[tuple[str, ...], Sequence[int]]:
    """Return pair of neighbouring summary words → its positions in the source."""
    pairs: set[tuple[str, ...]] = set(pairwise(summary))
    places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, pair in enumerate(pairwise(source)):
        if pair in pairs:
            places[pair].append(place)
    return places


def _num_shared(source: Sequence[str], place: int, summary: Sequence[str], start: int) -> int:
    limit = min(len(source) - place, len(summary) - start)
    return next((count for count in range(limit) if source[place + count] != summary[start + count]), limit)
