"""How much of a summary is copied: extractive fragments (Grusky et al. 2018, §4)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from longsumbench.api.documents import Example
from longsumbench.metrics.words import WordMetric


class Extractive(WordMetric):
    """Coverage, density and compression: how much of a summary is copied, in how long stretches, and how much is left.

    With A the words of the source, S those of the summary and F(A, S) the fragments that both share:

    * `extractive_coverage`: Σ|f| / |S|, the share of the summary's words that stand in a fragment;
    * `extractive_density`: Σ|f|² / |S|, in words: the length of the fragment in which a word of the summary stands;
    * `extractive_compression`: |A| / |S|, source words for one of the summary.

    None applies to a summary without words.
    """

    name: ClassVar[str] = "extractive"
    columns: ClassVar[tuple[str, ...]] = ("extractive_coverage", "extractive_density", "extractive_compression")
    units: ClassVar[Mapping[str, str]] = MappingProxyType({columns[1]: "words", columns[2]: "source words a word"})

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; coverage → 0–1, density → words, compression → a ratio, or NaN."""
        source, summary = self.source_words(example), self.words(prediction)
        if not summary:
            return dict.fromkeys(self.columns, np.nan)
        lengths = fragment_lengths(source, summary)
        sums = (sum(lengths), sum(length * length for length in lengths), len(source))
        return {column: total / len(summary) for column, total in zip(self.columns, sums, strict=True)}


def fragment_lengths(source: Sequence[bytes], summary: Sequence[bytes]) -> list[int]:
    """Return the lengths of the fragments that two sequences of words share, as the summary is read.

    The procedure of the paper's Figure 3: at a word of the summary, the source is searched from its beginning for the
    longest stretch that the summary goes on with; the search goes on behind a stretch that was found, not within it.
    The summary is read on behind the longest one. A word that the source does not have is in no fragment.

    Only places of pairs of words are visited: a stretch of one word never hides a longer one.
    """
    known, places = set(summary).intersection(source), _places_of_pairs(source, summary)
    lengths, start = [], 0
    while start < len(summary):
        length = int(summary[start] in known)
        behind = 0  # the last stretch that was found
        for place in places.get(tuple(summary[start : start + 2]), ()):
            if place >= behind:
                found = _shared(source, place, summary, start)
                behind = place + found
                length = max(length, found)
        if length:
            lengths.append(length)
        start += max(length, 1)
    return lengths


def _places_of_pairs(source: Sequence[bytes], summary: Sequence[bytes]) -> Mapping[tuple[bytes, ...], Sequence[int]]:
    """Return where in the source the neighbouring words of the summary stand, in reading order."""
    wanted: set[tuple[bytes, ...]] = set(pairwise(summary))
    places: defaultdict[tuple[bytes, ...], list[int]] = defaultdict(list)
    for place, pair in enumerate(pairwise(source)):
        if pair in wanted:
            places[pair].append(place)
    return places


def _shared(source: Sequence[bytes], place: int, summary: Sequence[bytes], start: int) -> int:
    """Count the words that two sequences share from two places on."""
    most = min(len(source) - place, len(summary) - start)
    return next((count for count in range(most) if source[place + count] != summary[start + count]), most)
