"""The length of a summary compared with its references."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from longsumbench.core import Example
from longsumbench.metrics.words import WordMetric


class LengthRatio(WordMetric):
    """The summary's words per reference word, and both lengths in words.

    The references' length is the mean over those with words; if there are none, only the summary's length applies.
    """

    name: ClassVar[str] = "length_ratio"
    columns: ClassVar[tuple[str, ...]] = ("length_ratio", "length_summary", "length_references")
    units: ClassVar[Mapping[str, str]] = MappingProxyType(dict(zip(columns, ("ratio", "words", "words"), strict=True)))

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `length_ratio` → a ratio or NaN, the others → words or NaN."""
        length = float(len(self.words(prediction)))
        lengths = [len(self.words(*reference)) for reference in example.references]
        expected = float(np.mean([num for num in lengths if num])) if any(lengths) else np.nan
        return dict(zip(self.columns, (length / expected, length, expected), strict=True))
