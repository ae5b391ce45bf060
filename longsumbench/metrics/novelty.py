"""The share of a summary's n-grams that are not in the source."""

from typing import ClassVar

import numpy as np

from longsumbench.core import Example
from longsumbench.metrics.words import LONGEST_NGRAM, WordMetric, ngrams


class NovelNgrams(WordMetric):
    """The share of the summary's n-grams that the source does not have, n = 1 … 4.

    Every occurrence of an n-gram counts. A column does not apply to a summary of fewer than n words.
    """

    name: ClassVar[str] = "novel_ngrams"
    columns: ClassVar[tuple[str, ...]] = tuple(f"novel_ngrams_{n}" for n in range(1, LONGEST_NGRAM + 1))

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `novel_ngrams_1` … `novel_ngrams_4` → 0–1 or NaN."""
        source, summary = self.source_words(example), self.words(prediction)
        shares = {}
        for n, column in enumerate(self.columns, start=1):
            grams = list(ngrams(summary, n))
            shared = set(grams).intersection(ngrams(source, n))
            shares[column] = sum(ngram not in shared for ngram in grams) / len(grams) if grams else np.nan
        return shares
