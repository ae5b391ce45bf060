"""`longsumbench stats`: lengths, structure, copied fragments, and the share that systems read.

    settings --describe_dataset--> DatasetStats: numbers per example and totals; no texts

The splits are read once from disk, one example after the other. Counts are of all examples. Slow measures are computed
on one sample, drawn by the seed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from longsumbench import core
from longsumbench.analysis.sampled import find_split
from longsumbench.cache.artifacts import ArtifactCache, user_cache
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import SuiteError, UsageError
from longsumbench.metrics.rouge import Rouge
from longsumbench.metrics.word_metrics import Extractive, NovelNgrams
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.progress import track
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import oracle_sentences
from longsumbench.runs.record import RunRecord, run_label, split_variant
from longsumbench.runs.results import Results
from longsumbench.runs.scoring import warn_of_other_scripts

_EMPTY_LEDGER = core.Truncation(0, 0)
NO_LEDGER = "keeps no ledger: it reads everything, or does not report what it cuts"


@dataclass
class Reading:
    """What a system would read."""

    model: str
    variant: str = ""  # its model settings that differ from the recipe
    note: str = ""  # difference from a run; empty if there is none
    has_tokens: bool = False  # whether the system has a tokenizer; if not, words count as tokens
    sources: int = 0  # number of examples whose source was read
    num_whole: int | None = (
        None  # number of sources without a cut; None if the system keeps no ledger
    )
    source: core.Truncation = _EMPTY_LEDGER  # total ledger of the sources
    targets: int = 0  # number of training targets that were read
    targets_cut: int = 0  # number of targets that training would cut
    target: core.Truncation | None = (
        None  # total ledger of the targets; None if the system cuts none
    )

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
    """A system that is ready to read; `tokenizer` is the identity of its tokenizer, and `count` counts its tokens."""

    system: core.System
    reading: Reading
    tokenizer: str | None = None
    count: Callable[[list[str]], int] | None = None


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
    train_ranker: bool,
) -> FittedReader:
    """Return a system with its tokenizer and, if `train_ranker`, its trained ranker; tokenizers are shared with runs.

    Raises:
        UsageError: the texts do not fit the settings.
        DataError: the system needs a training split, and there is none.
        EnvironmentProblem: a tokenizer is not available.
    """
    model, note = config.model, ""
    ranker = model.rank
    if not train_ranker and core.learned_ranker(ranker):
        model = replace(model, rank=core.UNRANKED)
        note = f"its ranker, {ranker}, is not trained: texts are read in the order of the source"
        note = f"{note}; train_ranker=true ranks them as a run does"
    system = core.new_system(model)
    system.prepare(core.FitContext.of(splits, config, stages))
    reader = FittedReader(system, Reading(model.name, variant, note))
    # Only a neural system has tokens. Its class imports torch, its settings do not.
    if isinstance(model, NeuralConfig):
        from longsumbench.modeling.neural_system import NeuralSystem
        from longsumbench.modeling.tokenizer import tokenizer_identity

        assert isinstance(system, NeuralSystem)
        units = system.reader
        reader.reading.has_tokens = True
        reader.tokenizer = tokenizer_identity(units.tokenizer)
        reader.count = lambda sentences: sum(
            len(sentence.ids) for sentence in units.encode(sentences)
        )
    return reader


def tokenizers(readers: Sequence[FittedReader]) -> list[SharedTokenizer]:
    """Return the distinct tokenizers, in the order of the systems."""
    models: dict[str, dict[str, None]] = {}  # tokenizer → names of its systems
    for reader in readers:
        if reader.tokenizer is not None:
            models.setdefault(reader.tokenizer, {})[reader.reading.model] = None
    counts = {
        reader.tokenizer: reader.count for reader in reversed(readers) if reader.count
    }  # the first system's
    return [
        SharedTokenizer(f"tokens of {', '.join(names)}", counts[tokenizer])
        for tokenizer, names in models.items()
    ]


_log = logging.getLogger(__name__)

STRUCTURE = ("documents", "sections", "paragraphs", "sentences", "references", "queries")
COUNTED = ("source_words", "target_words", *STRUCTURE)
_TOKEN_COUNTS = ("source_tokens", "target_tokens")  # a column's name adds the tokenizer's index
_ALL_RUNS = "all"


@dataclass
class StatsSettings:
    """Settings of `longsumbench stats`."""

    sample: core.Count | None = core.setting(
        1_000, "examples of each split for slow measures; null: all", "examples"
    )
    seed: core.Seed = core.setting(1, "seed of the sample")
    train_ranker: bool = core.setting(
        False, "train systems' learned rankers; false: texts in the order of the source"
    )
    run: core.Text = core.setting(
        "", "finished runs, separated by commas, or all: adds what they read of the sources"
    )
    results_dir: core.Text = core.setting("results", "folder of the runs")
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
    readings: tuple[Reading, ...]  # what each system would read of that split
    runs: tuple[RunRecord, ...]  # finished runs on these texts
    oracle_signature: str  # how the scores of the best extract were computed


def describe_dataset(
    dataset: core.DatasetSettings,
    settings: StatsSettings,
    systems: Sequence[tuple[core.RunConfig, str]] = (),
) -> DatasetStats:
    """Read a dataset and compute its statistics.

    Raises:
        UsageError: a run has read other texts, or a system cannot read these.
        DataError: the dataset has no split `dataset.split`, or a system's training split is missing.
    """
    results = Results(Path(settings.results_dir).expanduser())
    names = [name.strip() for name in settings.run.split(",")]
    folders = [results.find(name) for name in dict.fromkeys(names) if name not in ("", _ALL_RUNS)]
    stages = user_cache()
    texts = load_texts(dataset, stages)
    runs = _read_runs(settings, results, folders, texts)
    if systems:
        find_split(texts, dataset.split)
    for split in texts.splits.values():
        warn_of_other_scripts(settings.score, split)
    readers = []
    for config, variant in systems:
        try:
            readers.append(fit_reader(config, variant, texts.splits, stages, settings.train_ranker))
        except SuiteError as error:
            if len(systems) == 1:
                raise
            _log.warning(
                f"left out: {' '.join([config.model.name, *split_variant(variant)])}: {error}"
            )
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
        runs=runs,
        oracle_signature=Rouge(settings.score).signature(0).replace("|n:0", ""),
    )


def _read_runs(
    settings: StatsSettings, results: Results, paths: Sequence[Path], texts: Texts
) -> tuple[RunRecord, ...]:
    """Return the records of the runs in `paths`, or of all finished runs on the same texts."""
    if settings.run.strip() == _ALL_RUNS:
        return tuple(
            record
            for record in results.records(texts.name)
            if record.key.fingerprint == texts.fingerprint
        )
    records = tuple(map(RunRecord.read, paths))
    for record in records:
        if record.key.fingerprint != texts.fingerprint:
            fingerprint = record.key.fingerprint[:12]
            details = f"({record.key.dataset}, fingerprint {fingerprint}; these have {texts.fingerprint[:12]})"
            advice = "set dataset=… dataset.* as in that run's config.yaml"
            raise UsageError(f"{run_label(record)} has read other texts {details}: {advice}")
    return records


def read_splits(
    splits: Mapping[str, core.Split],
    settings: StatsSettings,
    readers: Sequence[FittedReader] = (),
    read_split: str = "test",
) -> tuple[SplitStats, ...]:
    """Read every split once; return the statistics in the order of the splits.

    Systems read the sampled sources of `read_split`, and the sampled targets of "train".
    """
    split_stats = {}
    measure = _SampleMeasures(settings.score, tokenizers(readers))
    for name, split in splits.items():
        counts = np.zeros((len(split), len(COUNTED)), np.int32)
        sampled_places, rows = frozenset(sample_places(name, len(split), settings)), {}
        for index, example in enumerate(track(split, f"reading {name}", len(split))):
            counts[index] = count_example(example)
            if index in sampled_places:
                rows[example.id] = measure(example)
                for reader in readers:
                    source, target = reader.system.ledgers(example)
                    if name == read_split:
                        reader.reading.see_source(source)
                    if name == "train":
                        reader.reading.see_target(target)
        split_stats[name] = SplitStats(
            name, pd.DataFrame(counts, columns=list(COUNTED)), measure.table(rows)
        )
    return tuple(split_stats[name] for name in splits)


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

    @property
    def columns(self) -> list[str]:
        token_counts = [
            f"{kind}_{place}" for place, _ in enumerate(self._tokens) for kind in _TOKEN_COUNTS
        ]
        return [
            *(name for metric in self._metrics for name in metric.columns),
            *self._rouge.columns,
            *token_counts,
        ]

    def __call__(self, example: core.Example) -> dict[str, float]:
        """Return column → number, only for measures that apply."""
        measures = {**self._kept(example), **self._best_extract(example)}
        for place, tokens in enumerate(self._tokens):
            measures[f"source_tokens_{place}"] = tokens.of_source(example)
            if any(example.references[:1]):
                measures[f"target_tokens_{place}"] = tokens.of_target(example)
        return measures

    def _kept(self, example: core.Example) -> dict[str, float]:
        """Return copied fragments and novel n-grams: means over the references to which a measure applies."""
        texts = [" ".join(reference) for reference in example.references if reference]
        rows = [
            {k: v for metric in self._metrics for k, v in metric.score(text, example).items()}
            for text in texts
        ]
        return (
            {str(name): float(mean) for name, mean in pd.DataFrame(rows).mean().items()}
            if rows
            else {}
        )

    def _best_extract(self, example: core.Example) -> dict[str, float]:
        """Return the scores of the sentences that the system `oracle` selects."""
        if not self._rouge.can_score(example):
            return {}
        sentences, selected = list(example.sentences()), oracle_sentences(example, self._scorer)
        return self._rouge.score("\n".join(sentences[index] for index in selected), example)

    def table(self, rows: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
        index = pd.Index(list(rows), name="id", dtype=object)
        return pd.DataFrame(list(rows.values()), index=index, columns=self.columns, dtype=float)
