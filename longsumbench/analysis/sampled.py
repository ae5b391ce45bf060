"""The examples that an analysis looks at: drawn from a split by a seed, with what finished runs wrote for them.

settings of the dataset and of the sample, names of runs --draw--> Sampled
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longsumbench.api.bounds import Count, Seed, check_settings
from longsumbench.api.config import DatasetSettings
from longsumbench.api.documents import Example
from longsumbench.api.system import Split
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count
from longsumbench.progress import track
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import Results, RunRecord, check_written, run_label


@dataclass
class SampleSettings:
    """Which examples are looked at."""

    sample: Count | None = 200  # examples drawn from dataset.split; null: all of them
    seed: Seed = 1  # of the drawing, and of whatever else is drawn

    def __post_init__(self) -> None:
        check_settings(self, "")


@dataclass(frozen=True)
class Outputs:
    """What a finished run wrote.

    Attributes:
        record: what the run was.
        summaries: id → summary.
    """

    record: RunRecord
    summaries: Mapping[str, str]

    @property
    def label(self) -> str:
        """Its model, variant, seed and id, short enough for a heading."""
        return run_label(self.record)


@dataclass(frozen=True)
class Sampled:
    """Examples of a split, read as they are asked for.

    Attributes:
        dataset: its name.
        fingerprint: of its texts.
        split: all examples of the split.
        places: of those that are looked at, in the order of the split.
        seed: they were drawn by.
        runs: what finished runs wrote for every one of them.
    """

    dataset: str
    fingerprint: str
    split: Split
    places: Sequence[int]
    seed: int
    runs: tuple[Outputs, ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    def examples(self, doing: str) -> Iterator[Example]:
        """Yield the examples, showing the progress through them.

        Args:
            doing: what is done with them, as a user would call it ("comparing sentences").
        """
        return track((self.split[place] for place in self.places), doing, len(self))

    def about(self) -> str:
        """Say which examples these are."""
        if len(self) == len(self.split):
            return f"{self.split.name} split, all {format_count(len(self), 'example')}"
        among = ", of those that all runs summarized," if self.runs else ""
        return (
            f"{self.split.name} split, {len(self):,} of {len(self.split):,} examples{among} drawn by seed {self.seed}"
        )

    def signature(self, analysis: str, version: int, **parts: object) -> str:
        """Describe in one string how an analysis of these examples came about.

        Args:
            analysis: its name.
            version: changes when the same texts would give other numbers.
            parts: what decides it beside the examples.
        """
        drawn = {"texts": self.fingerprint, "sample": len(self), "seed": self.seed}
        return "|".join([f"{analysis}:{version}", *(f"{name}:{value}" for name, value in {**parts, **drawn}.items())])


def sample_dataset(
    dataset: DatasetSettings, settings: SampleSettings, run: str = "", results: Results | None = None
) -> Sampled:
    """Read a dataset and draw examples from one of its splits.

    Args:
        dataset: which texts; the examples are those of `dataset.split`.
        settings: how many, and by which seed.
        run: finished runs with commas between: folders, ids, or unique prefixes of ids.
        results: where ids are looked for.

    Raises:
        UsageError: a run is meant that is not there, or that has read other texts or summarized another split.
        DataError: the dataset has no such split, or a file cannot be used.
    """
    found = _find_runs(run, results or Results(Path("results")), dataset)
    texts = load_texts(dataset, user_cache())
    if dataset.split not in texts.splits:
        known = ", ".join(texts.splits)
        raise DataError(f"dataset '{texts.name}' has no split '{dataset.split}'; dataset.split can be: {known}")
    split, runs = texts.splits[dataset.split], tuple(_open(folder, record, texts) for folder, record in found)
    known_to_all = [place for place, name in enumerate(split.ids) if all(name in one.summaries for one in runs)]
    if not known_to_all:
        raise UsageError(f"no example of the {split.name} split was summarized by all of the {len(runs)} runs")
    size = min(settings.sample or len(known_to_all), len(known_to_all))
    chosen = np.random.default_rng(settings.seed).choice(known_to_all, size, replace=False)
    return Sampled(texts.name, texts.fingerprint, split, sorted(chosen.tolist()), settings.seed, runs)


def _find_runs(named: str, results: Results, dataset: DatasetSettings) -> list[tuple[Path, RunRecord]]:
    """Return folder and record of each run; what can be known to be wrong before the texts are read is told here."""
    found: list[tuple[Path, RunRecord]] = []
    for name in filter(None, map(str.strip, named.split(","))):
        folder = results.find(name)
        record = RunRecord.read(folder)
        if record.run_id in [other.run_id for _, other in found]:
            raise UsageError(f"{run_label(record)} is named twice; name each run once")
        if record.dataset != dataset.name:
            told = f"is a run on {record.dataset}, and not on {dataset.name}: name another run, or its dataset"
            raise UsageError(f"{run_label(record)} {told} (dataset={record.dataset})")
        if record.split != dataset.split:
            told = f"summarized the {record.split} split: set dataset.split={record.split}, or name another run"
            raise UsageError(f"{run_label(record)} {told}")
        check_written(folder, record, ["predictions.jsonl"])
        found.append((folder, record))
    return found


def _open(folder: Path, record: RunRecord, texts: Texts) -> Outputs:
    if record.fingerprint != texts.fingerprint:
        told = f"has read other texts (fingerprint {record.fingerprint[:12]}, these have {texts.fingerprint[:12]})"
        raise UsageError(f"{run_label(record)} {told}: set dataset.* as that run did, which its config.yaml says")
    return Outputs(record, {one.id: one.text for one in read_summaries(folder / "predictions.jsonl")})
