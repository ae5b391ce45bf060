"""How much a summary repeats itself."""

from typing import ClassVar

import numpy as np

from longsumbench.core import Example
from longsumbench.metrics.words import LONGEST_NGRAM, WordMetric, ngrams


class Repetition(WordMetric):
    """The share of the summary's n-grams that occurred earlier in it, n = 1 … 4.

    A column does not apply to a summary of fewer than n words.
    """

    name: ClassVar[str] = "repetition"
    columns: ClassVar[tuple[str, ...]] = tuple(f"repetition_{n}" for n in range(1, LONGEST_NGRAM + 1))

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `repetition_1` … `repetition_4` → 0–1 or NaN."""
        summary, shares = self.words(prediction), {}
        for n, column in enumerate(self.columns, start=1):
            grams = list(ngrams(summary, n))
            shares[column] = 1 - len(set(grams)) / len(grams) if grams else np.nan
        return shares
