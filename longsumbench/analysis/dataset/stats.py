"""`longsumbench stats`: lengths, structure, copied fragments, and the best extract.

    settings --describe_dataset--> DatasetStats: numbers per example and totals; no texts

The splits are read once from disk, one example after the other. Counts are of all examples. Slow measures are computed
on one sample, drawn by the seed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from longsumbench import core
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.loading.load import load_texts
from longsumbench.metrics.aggregate import GROUP
from longsumbench.metrics.rouge import Rouge
from longsumbench.metrics.word_metrics import Extractive, NovelNgrams
from longsumbench.progress import track
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import oracle_sentences
from longsumbench.runs.scoring import warn_about_dropped_letters

STRUCTURE = ("documents", "sections", "paragraphs", "sentences", "references", "queries")
COUNTED = ("source_words", "target_words", *STRUCTURE)


@dataclass
class StatsSettings:
    """Settings of `longsumbench stats`."""

    sample: core.Count | None = core.setting(
        1_000, "examples of each split for slow measures; null: all", "examples"
    )
    seed: core.Seed = core.setting(1, "seed of the sample")
    score: core.Scoring = field(default_factory=core.Scoring)


@dataclass(frozen=True)
class SplitStats:
    """The statistics of a split."""

    name: str
    counts: pd.DataFrame  # one row per example, with the columns `COUNTED`
    # one row per sampled example, by id: copied fragments and novel n-grams (0–1 or the metric's units, means over
    # references), and scores of the best extract (`rouge1_p` … `rougeLsum_f`, 0–1); NaN without a reference. `GROUP`
    # numbers their texts.
    sampled: pd.DataFrame

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole split."""
        return len(self.sampled) == len(self.counts)


@dataclass(frozen=True)
class DatasetStats:
    """The statistics of a dataset; its name, fingerprint and metadata are those of `Texts`."""

    dataset: str
    fingerprint: str
    metadata: Mapping[str, Any]
    seed: int  # seed of the samples
    splits: tuple[SplitStats, ...]  # in the order train, validation, test
    oracle_signature: str  # how the scores of the best extract were computed


# Begin to read here: the command calls it.
def describe_dataset(dataset: core.DatasetSettings, settings: StatsSettings) -> DatasetStats:
    """Read a dataset and compute its statistics.

    Raises:
        DataError: the texts cannot be used.
    """
    texts = load_texts(dataset, user_cache())
    for split in texts.splits.values():
        warn_about_dropped_letters(settings.score, split)
    return DatasetStats(
        dataset=texts.name,
        fingerprint=texts.fingerprint,
        metadata=texts.metadata,
        seed=settings.seed,
        splits=read_splits(texts.splits, settings),
        oracle_signature=Rouge(settings.score).signature(0).replace("|n:0", ""),
    )


def read_splits(
    splits: Mapping[str, core.Split], settings: StatsSettings
) -> tuple[SplitStats, ...]:
    """Read every split once; return the statistics in the order of the splits."""
    split_stats = []
    measure = _SampleMeasures(settings.score)
    for name, split in splits.items():
        counts = []
        # counts are of all examples, slow measures of a sample
        indices, rows = frozenset(sample_indices(name, len(split), settings)), {}
        groups: dict[str, int] = {}
        for index, example in enumerate(track(split, f"reading {name}", len(split))):
            counts.append(count_example(example))
            if index in indices:
                number = groups.setdefault(example.source_group(), len(groups))
                rows[example.id] = {**measure(example), GROUP: number}
        table = pd.DataFrame(counts, columns=list(COUNTED), dtype=np.int32)
        split_stats.append(SplitStats(name, table, measure.table(rows)))
    return tuple(split_stats)


def sample_indices(split: str, size: int, settings: StatsSettings) -> list[int]:
    """Return the sorted indices of a split's sampled examples; they depend only on the seed, the name and sizes."""
    if settings.sample is None or size <= settings.sample:
        return list(range(size))
    draw = Random(f"{settings.seed} {split}")  # noqa: S311 - not used for a secret
    return sorted(draw.sample(range(size), settings.sample))


def count_example(example: core.Example) -> tuple[int, ...]:
    """Return the numbers of `COUNTED`; sections, paragraphs, sentences and references without text do not count."""
    return (
        example.source_words(),
        core.count_words(example.references[0]) if example.references else 0,
        len(example.documents),
        *(sum(1 for _ in example.texts(unit)) for unit in ("section", "paragraph", "sentence")),
        sum(any(map(str.strip, reference)) for reference in example.references),
        int(bool(example.query)),
    )


class _SampleMeasures:
    """Computes the slow measures of an example."""

    def __init__(self, scoring: core.Scoring) -> None:
        self._metrics = Extractive(scoring), NovelNgrams(scoring)
        self._rouge, self._scorer = Rouge(scoring), SuiteScorer(scoring)

    def __call__(self, example: core.Example) -> dict[str, float]:
        """Return column → number, only for measures that apply."""
        measures = self._kept(example)
        if self._rouge.can_score(example):  # the sentences that the system `oracle` selects
            sentences = list(example.sentences())
            selected = oracle_sentences(example, self._scorer)
            extract = "\n".join(sentences[index] for index in selected)
            measures |= self._rouge.score(extract, example)
        return measures

    def _kept(self, example: core.Example) -> dict[str, float]:
        """Return copied fragments and novel n-grams: means over the references to which a measure applies."""
        rows = []
        for reference in filter(None, example.references):
            row: dict[str, float] = {}
            for metric in self._metrics:
                row |= metric.score(" ".join(reference), example)
            rows.append(row)
        return {str(name): float(mean) for name, mean in pd.DataFrame(rows).mean().items()}

    def table(self, rows: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
        columns = [*Extractive.columns, *NovelNgrams.columns, *Rouge.columns, GROUP]
        index = pd.Index(list(rows), name="id", dtype=object)
        return pd.DataFrame(list(rows.values()), index=index, columns=columns, dtype=float)
