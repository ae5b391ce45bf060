"""`longsumbench stats`: lengths, structure, copied fragments, and the share that systems read.

    settings --describe_dataset--> DatasetStats: numbers per example and totals; no texts

The splits are read once from disk, one example after the other. Counts are of all examples. Slow measures are computed
on one sample, drawn by the seed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from longsumbench import core
from longsumbench.analysis.sampled import find_split
from longsumbench.cache.artifacts import ArtifactCache, user_cache
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import SuiteError
from longsumbench.metrics.rouge import Rouge
from longsumbench.metrics.word_metrics import Extractive, NovelNgrams
from longsumbench.progress import track
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import oracle_sentences
from longsumbench.runs.checkpoints import fit_context
from longsumbench.runs.record import split_variant
from longsumbench.runs.scoring import warn_of_other_scripts

_EMPTY_LEDGER = core.Truncation(0, 0)
NO_LEDGER = "keeps no ledger: it reads everything, or does not report what it cuts"


@dataclass
class SourceReading:
    """What a system would read."""

    model: str
    variant: str = ""  # its model settings that differ from the recipe
    note: str = ""  # difference from a run; empty if there is none
    has_tokens: bool = False  # whether the system has a tokenizer; if not, words count as tokens
    sources: int = 0  # number of examples whose source was read
    # number of sources without a cut; None if the system keeps no ledger
    num_whole: int | None = None
    source: core.Truncation = _EMPTY_LEDGER  # total ledger of the sources
    targets: int = 0  # number of training targets that were read
    targets_cut: int = 0  # number of targets that training would cut
    # total ledger of the targets; None if the system cuts none
    target: core.Truncation | None = None

    @property
    def label(self) -> str:
        """Model and variant."""
        return " ".join([self.model, *split_variant(self.variant)])

    def see_source(self, ledger: core.Truncation | None) -> None:
        """Add an example's source ledger; None if the system keeps none."""
        self.sources += 1
        if ledger is not None:
            self.num_whole = (self.num_whole or 0) + (not ledger.cuts)
            self.source = core.total_truncation([self.source, ledger])

    def see_target(self, ledger: core.Truncation | None) -> None:
        """Add the ledger of an example's first reference in training; None if the system keeps none."""
        if ledger is not None:
            self.targets += 1
            self.targets_cut += bool(ledger.cuts)
            self.target = core.total_truncation([self.target or _EMPTY_LEDGER, ledger])


@dataclass
class FittedReader:
    """A system that is ready to read; `count` counts the tokens of a tokenizer with the identity `tokenizer`."""

    system: core.System
    reading: SourceReading
    tokenizer: str = ""
    count: Callable[[list[str]], int] | None = None  # None: it has no tokenizer


class SharedTokenizer(NamedTuple):
    """A name for texts' units, and a function that counts those of consecutive sentences."""

    label: str
    count: Callable[[list[str]], int]

    def of_source(self, example: core.Example) -> int:
        """Count the source's tokens, without titles and section names."""
        return sum(self.count(list(document.sentences())) for document in example.documents)

    def of_target(self, example: core.Example) -> int:
        """Count the first reference's tokens, without special ones."""
        return self.count([" ".join(example.references[0])])


def fit_reader(
    config: core.RunConfig,
    variant: str,
    splits: Mapping[str, core.Split],
    stages: ArtifactCache,
) -> FittedReader:
    """Return a system with its tokenizer, which runs share; a ranker that learns is not trained.

    Raises:
        UsageError: the texts do not fit the settings.
        DataError: the system needs a training split, and there is none.
        EnvironmentProblem: a tokenizer is not available.
    """
    model, note = config.model, ""
    if core.learned_ranker(model.rank):
        note = (
            f"its ranker, {model.rank}, is not trained: texts are read in the order of the source"
        )
        model = replace(model, rank=core.UNRANKED)
    system = core.new_system(model)
    system.prepare(fit_context(splits, config, stages))
    # only tokenizers are made, no networks
    # of a NeuralSystem; importing that class would import torch
    units: Any = getattr(system, "reader", None)
    reader = FittedReader(system, SourceReading(model.name, variant, note, units is not None))
    if units is not None:
        from longsumbench.modeling.tokenizer import tokenizer_identity

        reader.tokenizer = tokenizer_identity(units.tokenizer)
        reader.count = lambda texts: sum(len(text.ids) for text in units.encode(texts))
    return reader


def tokenizers(readers: Sequence[FittedReader]) -> list[SharedTokenizer]:
    """Return the distinct tokenizers, in the order of the systems."""
    shared: dict[str, SharedTokenizer] = {}
    names: dict[str, dict[str, None]] = {}  # tokenizer → names of its systems
    for reader in readers:
        if reader.count is not None:
            names.setdefault(reader.tokenizer, {})[reader.reading.model] = None
            label = f"tokens of {', '.join(names[reader.tokenizer])}"
            first = shared.get(reader.tokenizer, SharedTokenizer(label, reader.count))
            shared[reader.tokenizer] = first._replace(label=label)
    return list(shared.values())


def token_columns(num_tokenizers: int) -> list[str]:
    """Return the columns of `SplitStats.sampled` with the tokens of each tokenizer."""
    columns = []
    for place in range(num_tokenizers):
        columns += [f"source_tokens_{place}", f"target_tokens_{place}"]
    return columns


_log = logging.getLogger(__name__)

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
    # references), scores of the best extract (`rouge1_p` … `rougeLsum_f`, 0–1), and each tokenizer's counts of source
    # and target tokens; NaN without a reference
    sampled: pd.DataFrame

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole split."""
        return len(self.sampled) == len(self.counts)


@dataclass(frozen=True)
class DatasetStats:
    """The statistics of a dataset; its name, fingerprint and facts are those of `Texts`.

    The tokenizer of `tokens` at a place has the columns `source_tokens_<place>` and `target_tokens_<place>` in
    `SplitStats.sampled`.
    """

    dataset: str
    fingerprint: str
    facts: Mapping[str, Any]
    seed: int  # seed of the samples
    splits: tuple[SplitStats, ...]  # in the order train, validation, test
    tokens: tuple[str, ...]  # labels of the systems' tokenizers
    read_split: str  # name of the split whose sources the systems read
    readings: tuple[SourceReading, ...]  # what each system would read of that split
    oracle_signature: str  # how the scores of the best extract were computed


# Begin to read here: the command calls it.
def describe_dataset(
    dataset: core.DatasetSettings,
    settings: StatsSettings,
    systems: Sequence[tuple[core.RunConfig, str]] = (),
) -> DatasetStats:
    """Read a dataset and compute its statistics.

    Raises:
        UsageError: a system cannot read these texts.
        DataError: the dataset has no split `dataset.split`, or a system's training split is missing.
    """
    stages = user_cache()
    texts = load_texts(dataset, stages)
    if systems:
        find_split(texts, dataset.split)
    for split in texts.splits.values():
        warn_of_other_scripts(settings.score, split)
    readers = []
    for config, variant in systems:
        try:
            readers.append(fit_reader(config, variant, texts.splits, stages))
        except SuiteError as error:
            if len(systems) == 1:
                raise
            # of several systems, the others are described
            _log.warning(f"left out: {SourceReading(config.model.name, variant).label}: {error}")
    splits = read_splits(texts.splits, settings, readers, dataset.split)
    return DatasetStats(
        dataset=texts.name,
        fingerprint=texts.fingerprint,
        facts=texts.facts,
        seed=settings.seed,
        splits=splits,
        tokens=tuple(tokens.label for tokens in tokenizers(readers)),
        read_split=dataset.split,
        readings=tuple(reader.reading for reader in readers),
        oracle_signature=Rouge(settings.score).signature(0).replace("|n:0", ""),
    )


def read_splits(
    splits: Mapping[str, core.Split],
    settings: StatsSettings,
    readers: Sequence[FittedReader] = (),
    read_split: str = "test",
) -> tuple[SplitStats, ...]:
    """Read every split once; return the statistics in the order of the splits.

    Systems read the sampled sources of `read_split`, and the sampled targets of "train".
    """
    split_stats = []
    measure = _SampleMeasures(settings.score, tokenizers(readers))
    for name, split in splits.items():
        counts = []
        # counts are of all examples, slow measures of a sample
        places, rows = frozenset(sample_places(name, len(split), settings)), {}
        for index, example in enumerate(track(split, f"reading {name}", len(split))):
            counts.append(count_example(example))
            if index not in places:
                continue
            rows[example.id] = measure(example)
            for reader in readers:
                source, target = reader.system.ledgers(example)
                if name == read_split:
                    reader.reading.see_source(source)
                if name == "train":
                    reader.reading.see_target(target)
        table = pd.DataFrame(counts, columns=list(COUNTED), dtype=np.int32)
        split_stats.append(SplitStats(name, table, measure.table(rows)))
    return tuple(split_stats)


def sample_places(split: str, size: int, settings: StatsSettings) -> list[int]:
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

    def __init__(self, scoring: core.Scoring, tokens: Sequence[SharedTokenizer] = ()) -> None:
        self._tokens = tokens
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
        for place, tokens in enumerate(self._tokens):
            measures[f"source_tokens_{place}"] = tokens.of_source(example)
            if any(example.references[:1]):
                measures[f"target_tokens_{place}"] = tokens.of_target(example)
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
        columns = [*Extractive.columns, *NovelNgrams.columns, *Rouge.columns]
        columns += token_columns(len(self._tokens))
        index = pd.Index(list(rows), name="id", dtype=object)
        return pd.DataFrame(list(rows.values()), index=index, columns=columns, dtype=float)
