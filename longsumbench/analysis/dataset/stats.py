"""What a dataset is like: sizes, lengths, what the references keep of the sources, near-duplicates, what systems see.

    settings --describe--> DatasetStats: numbers an example, and sums; no texts

The splits are read once, from disk, an example at a time. What is cheap is counted of all examples; what takes time is
computed of a sample, drawn by the seed, the same for everything.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from longsumbench.analysis.dataset.near_duplicates import DuplicatePair, NearDuplicates, SplitOverlap
from longsumbench.analysis.dataset.what_is_read import FittedReader, Reading, SharedTokenizer, fit_reader, tokenizers
from longsumbench.api import registry
from longsumbench.api.bounds import Count, Seed, Text, check_settings
from longsumbench.api.config import DatasetSettings, Decoding, RunConfig, Scoring
from longsumbench.api.documents import Example, count_words
from longsumbench.api.system import Split
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, UsageError
from longsumbench.metrics.extractive import Extractive
from longsumbench.metrics.novelty import NovelNgrams
from longsumbench.metrics.rouge import Rouge
from longsumbench.progress import track
from longsumbench.runs.record import Results, RunRecord, run_label

COUNTED = (
    "source_words",
    "target_words",
    "documents",
    "sections",
    "paragraphs",
    "sentences",
    "references",
    "queries",
)
_TOKEN_COUNTS = ("source_tokens", "target_tokens")  # of a tokenizer, behind them its place
_ALL_RUNS = "all"


@dataclass
class StatsSettings:
    """What `longsumbench stats` is asked of a dataset."""

    sample: Count | None = 1_000  # examples a split, of which what takes time is computed; null: all
    seed: Seed = 1  # of the drawing
    duplicates: bool = True  # whether near-duplicates in different splits are looked for
    train_ranker: bool = False  # whether systems' rankers that learn are trained; False: texts in their own order
    run: Text = ""  # finished runs, with commas between, or all: what they have read, as recorded
    results_dir: Text = "results"  # where they are

    def __post_init__(self) -> None:
        check_settings(self, "")


@dataclass(frozen=True)
class SplitStats:
    """The numbers of a split.

    Attributes:
        name: its.
        counts: a row an example, the columns `COUNTED`.
        sampled: a row a sampled example, by id: what its references keep of its source (0–1, or the metric's units,
            means over its references), the scores of the extract that scores best (`rouge1_p` … `rougeLsum_f`, 0–1),
            and the tokens of source and target of each tokenizer; NaN where it has no reference.
    """

    name: str
    counts: pd.DataFrame
    sampled: pd.DataFrame

    @property
    def is_whole(self) -> bool:
        """Whether the sample is all of the split."""
        return len(self.sampled) == len(self.counts)


@dataclass(frozen=True)
class DatasetStats:
    """All that is known of a dataset.

    Attributes:
        dataset, fingerprint, facts: of its texts.
        seed: of the samples.
        splits: in the order train, validation, test.
        tokens: the different tokenizers of the systems that were named; their columns in `SplitStats.sampled` are
            `source_tokens_<place>` and `target_tokens_<place>`.
        overlaps: what every two splits share; None: it was not looked for.
        nearest: the most similar examples of different splits.
        read_split: the split whose sources the systems looked at.
        readings: what each system would see of it.
        runs: finished runs on these texts.
        oracle_signature: how the scores of the best extract were computed.
    """

    dataset: str
    fingerprint: str
    facts: Mapping[str, Any]
    seed: int
    splits: tuple[SplitStats, ...]
    tokens: tuple[str, ...]
    overlaps: tuple[SplitOverlap, ...] | None
    nearest: tuple[DuplicatePair, ...]
    read_split: str
    readings: tuple[Reading, ...]
    runs: tuple[RunRecord, ...]
    oracle_signature: str


def describe_dataset(
    dataset: DatasetSettings, settings: StatsSettings, systems: Sequence[tuple[RunConfig, str]] = ()
) -> DatasetStats:
    """Read a dataset, and count.

    Args:
        dataset: which texts; systems look at `dataset.split`.
        settings: what is asked.
        systems: settings and variant of each that is to tell what it would see.

    Raises:
        UsageError: a run has read other texts, or a system cannot read these.
        DataError: the dataset has no such split for systems to look at, or a system lacks what it learns from.
    """
    results = Results(Path(settings.results_dir).expanduser())
    named = [results.find(name) for name in run_names(settings.run)]
    stages = user_cache()
    texts = load_texts(dataset, stages)
    runs = _find_runs(settings, results, named, texts)
    if systems and dataset.split not in texts.splits:
        found = ", ".join(texts.splits)
        raise DataError(f"dataset '{texts.name}' has no split '{dataset.split}'; dataset.split can be: {found}")
    readers = [fit_reader(config, variant, texts.splits, stages, settings.train_ranker) for config, variant in systems]
    duplicates = NearDuplicates(texts.splits) if settings.duplicates else None
    splits = read_splits(texts.splits, settings, readers, dataset.split, duplicates)
    return DatasetStats(
        dataset=texts.name,
        fingerprint=texts.fingerprint,
        facts=texts.facts,
        seed=settings.seed,
        splits=splits,
        tokens=tuple(tokens.label for tokens in tokenizers(readers)),
        overlaps=None if duplicates is None else duplicates.overlaps(),
        nearest=() if duplicates is None else duplicates.nearest(),
        read_split=dataset.split,
        readings=tuple(reader.reading for reader in readers),
        runs=runs,
        oracle_signature=_signature(),
    )


def _signature() -> str:
    """Return how the best extracts are scored, whatever the number of examples."""
    return "|".join(part for part in Rouge(Scoring()).signature(0).split("|") if not part.startswith("n:"))


def run_names(run: str) -> list[str]:
    """Return the runs that are named, each once; "all" names none."""
    named = dict.fromkeys(name.strip() for name in run.split(","))
    return [] if run.strip() == _ALL_RUNS else [name for name in named if name]


def _find_runs(settings: StatsSettings, results: Results, named: Sequence[Path], texts: Texts) -> tuple[RunRecord, ...]:
    """Return the records of the runs that are asked for, or of all finished ones on the same texts.

    Raises:
        UsageError: a run has read other texts.
    """
    if settings.run.strip() == _ALL_RUNS:
        return tuple(one for one in results.records(texts.name) if one.fingerprint == texts.fingerprint)
    records = tuple(map(RunRecord.read, named))
    for record in records:
        if record.fingerprint != texts.fingerprint:
            which = f"({record.dataset}, fingerprint {record.fingerprint[:12]}; these have {texts.fingerprint[:12]})"
            told = f"has read other texts {which}: set dataset=… dataset.* as that run did, which its config.yaml says"
            raise UsageError(f"{run_label(record)} {told}")
    return records


def read_splits(
    splits: Mapping[str, Split],
    settings: StatsSettings,
    readers: Sequence[FittedReader] = (),
    read_split: str = "test",
    duplicates: NearDuplicates | None = None,
) -> tuple[SplitStats, ...]:
    """Read every split once.

    Args:
        splits: name → examples.
        settings: how many examples are sampled, and by which seed.
        readers: systems; they look at the sampled sources of one split, and the sampled targets of "train".
        read_split: that one.
        duplicates: looks at all examples; None: nobody does.

    Returns:
        In the order of the splits.
    """
    found = {}
    measure = _SampleMeasures(tokenizers(list(readers)))
    for name in splits if duplicates is None else duplicates.order:
        split, counts = splits[name], _Counts()
        chosen, rows = frozenset(sample_places(name, len(split), settings)), {}
        for index, example in enumerate(track(split, f"reading {name}", len(split))):
            counts.add(example)
            if duplicates is not None:
                duplicates.see(name, index, example)
            if index in chosen:
                rows[example.id] = measure(example)
                _let_read(readers, example, name == read_split, name == "train")
        found[name] = SplitStats(name, counts.table(), measure.table(rows))
    return tuple(found[name] for name in splits)


def _let_read(readers: Iterable[FittedReader], example: Example, source: bool, target: bool) -> None:
    for reader in readers:
        if source:
            reader.reading.see_source(reader.system.source_ledger(example))
        if target:
            reader.reading.see_target(reader.system.reference_ledger(example))


def sample_places(split: str, size: int, settings: StatsSettings) -> list[int]:
    """Return the places of the sampled examples of a split, in its order; they depend on seed and name alone."""
    if settings.sample is None or size <= settings.sample:
        return list(range(size))
    draw = Random(f"{settings.seed} {split}")  # noqa: S311 - no secret is made here
    return sorted(draw.sample(range(size), settings.sample))


class _Counts:
    """What is counted of every example, four bytes a number."""

    def __init__(self) -> None:
        self._columns = {name: array("i") for name in COUNTED}

    def add(self, example: Example) -> None:
        """Count an example; sections, paragraphs and sentences without text do not count."""
        numbers = (
            example.source_words(),
            count_words(example.references[0]) if example.references else 0,
            len(example.documents),
            *(sum(1 for _ in example.texts(unit)) for unit in ("section", "paragraph", "sentence")),
            sum(any(map(str.strip, reference)) for reference in example.references),
            int(bool(example.query)),
        )
        for column, number in zip(self._columns.values(), numbers, strict=True):
            column.append(number)

    def table(self) -> pd.DataFrame:
        """Return a row an example."""
        return pd.DataFrame({name: np.array(column, np.int32) for name, column in self._columns.items()})


class _SampleMeasures:
    """Computes what takes time of an example.

    Args:
        tokens: by which lengths are counted beside words.
    """

    def __init__(self, tokens: Sequence[SharedTokenizer] = ()) -> None:
        self._tokens = tokens
        scoring, oracle = Scoring(), registry.systems.load("oracle")
        self._metrics = Extractive(scoring), NovelNgrams(scoring)
        self._rouge, self._oracle = Rouge(scoring), oracle(oracle.Config())

    @property
    def columns(self) -> list[str]:
        """What is computed."""
        of_tokens = [f"{kind}_{place}" for place, _ in enumerate(self._tokens) for kind in _TOKEN_COUNTS]
        return [*(name for metric in self._metrics for name in metric.columns), *self._rouge.columns, *of_tokens]

    def __call__(self, example: Example) -> dict[str, float]:
        """Return column → number; what does not apply is missing."""
        return {**self._kept(example), **self._best_extract(example), **self._lengths(example)}

    def _kept(self, example: Example) -> dict[str, float]:
        """Return what the references keep of the source: means over those to which a measure applies."""
        texts = [" ".join(reference) for reference in example.references if reference]
        rows = [{k: v for one in self._metrics for k, v in one.score(text, example).items()} for text in texts]
        return {str(name): float(mean) for name, mean in pd.DataFrame(rows).mean().items()} if rows else {}

    def _best_extract(self, example: Example) -> dict[str, float]:
        """Return the scores of the sentences that the system `oracle` selects."""
        if not self._rouge.can_score(example):
            return {}
        (summary,) = self._oracle.summarize([example], Decoding())
        return self._rouge.score(summary.text, example)

    def _lengths(self, example: Example) -> dict[str, float]:
        found: dict[str, float] = {}
        for place, tokens in enumerate(self._tokens):
            found[f"source_tokens_{place}"] = tokens.of_source(example)
            if any(example.references[:1]):
                found[f"target_tokens_{place}"] = tokens.of_target(example)
        return found

    def table(self, rows: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
        """Return a row an example, by id."""
        index = pd.Index(list(rows), name="id", dtype=object)
        return pd.DataFrame(list(rows.values()), index=index, columns=self.columns, dtype=float)
