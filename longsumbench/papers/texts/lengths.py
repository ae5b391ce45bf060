"""Lengths of the sources and targets of a split, in words and in tokens.

texts of a dataset --measure_lengths--> DatasetLengths
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from longsumbench.analysis.dataset.readings import SharedTokenizer
from longsumbench.analysis.dataset.stats import StatsSettings, sample_places
from longsumbench.api import Split, build_settings, count_words
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import DataError, EnvironmentProblem
from longsumbench.modeling.tokenizer import encode_sentences, load_tokenizer, trained_tokenizer
from longsumbench.progress import track

_VOCABULARY = 32_000  # entries of the trained tokenizer
WORDS = "words"


class DatasetLengths(NamedTuple):
    """Lengths of a dataset.

    Attributes:
        examples: split → number of examples.
        split: name of the split whose lengths were measured.
        size: number of measured examples.
        tables: unit ("words", "tokens of NAME" or "tokens (trained BPE, …)") → one row per example. The columns are
            "source" and "target", which is the first reference, NaN without one.
    """

    examples: Mapping[str, int]
    split: str
    size: int
    tables: Mapping[str, pd.DataFrame]


def measure_lengths(
    texts: Texts, split: str, sample: str | int | float | None, tokenizer: str | None, required: bool
) -> DatasetLengths:
    """Measure the lengths of a split.

    Titles and section names are not counted.

    Args:
        texts: the dataset.
        split: name of the split.
        sample: number of examples, drawn by a fixed seed; None: all.
        tokenizer: folder or hub name of the tokenizer; None: one is trained on the training split.
        required: False: if the tokenizer cannot be downloaded, one is trained instead.

    Raises:
        DataError: the dataset lacks the split.
        UsageError: there is no such tokenizer, or the size is invalid.
        EnvironmentProblem: the tokenizer is required, and cannot be downloaded.
    """
    if split not in texts.splits:
        known = ", ".join(texts.splits)
        raise DataError(f"dataset '{texts.name}' has no split '{split}': set split= to one of {known}")
    chosen = texts.splits[split]
    settings: StatsSettings = build_settings(StatsSettings, {"sample": sample}, "")
    places = sample_places(split, len(chosen), settings)
    counters = [SharedTokenizer(WORDS, count_words), *_tokenizers(texts, tokenizer, required)]
    return DatasetLengths(
        examples={name: len(examples) for name, examples in texts.splits.items()},
        split=split,
        size=len(places),
        tables=_count(chosen, places, counters),
    )


def _tokenizers(texts: Texts, name: str | None, required: bool) -> list[SharedTokenizer]:
    """Return the tokenizer of this name, or a trained one; none without a training split."""
    found, label = None, f"tokens of {name}"
    if name is not None:
        try:
            found = load_tokenizer(name, of_system=False)
        except EnvironmentProblem:
            if required:
                raise
    if found is None and "train" in texts.splits:
        found = trained_tokenizer(texts.splits["train"], _VOCABULARY, user_cache())
        label = f"tokens (trained BPE, {len(found):,} entries)"
    if found is None:
        return []
    tokenizer = found
    return [SharedTokenizer(label, lambda texts: sum(len(text.ids) for text in encode_sentences(tokenizer, texts)))]


def _count(split: Split, places: Sequence[int], counters: Sequence[SharedTokenizer]) -> dict[str, pd.DataFrame]:
    lengths = np.full((len(counters), len(places), 2), np.nan)
    for row, place in enumerate(track(places, f"counting {split.name}", len(places))):
        example = split[place]
        for number, counter in enumerate(counters):
            lengths[number, row, 0] = counter.of_source(example)
            if any(example.references[:1]):
                lengths[number, row, 1] = counter.of_target(example)
    named = zip(counters, lengths, strict=True)
    return {counter.label: pd.DataFrame(table, columns=["source", "target"]) for counter, table in named}
