"""How long a summary is, beside those that people wrote."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from longsumbench.api.documents import Example
from longsumbench.metrics.words import WordMetric


class LengthRatio(WordMetric):
    """The words of the summary for one of the reference, and both lengths; of several references, their mean length.

    A reference without words does not count; where none has any, only the summary's own length applies.
    """

    name: ClassVar[str] = "length_ratio"
    columns: ClassVar[tuple[str, ...]] = ("length_ratio", "length_summary", "length_references")
    units: ClassVar[Mapping[str, str]] = MappingProxyType(dict(zip(columns, ("ratio", "words", "words"), strict=True)))

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `length_ratio` → a ratio or NaN, the others → words or NaN."""
        written = float(len(self.words(prediction)))
        lengths = [len(self.words(*reference)) for reference in example.references]
        usual = float(np.mean([length for length in lengths if length])) if any(lengths) else np.nan
        return dict(zip(self.columns, (written / usual, written, usual), strict=True))
