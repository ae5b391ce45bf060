"""What all analyses have in common: examples drawn from a split by a seed, and a result with its files.

settings of the dataset and of the sample, names of runs --sample_dataset--> Sampled: examples, summaries of the runs
Sampled --an analysis--> AnalysisResult: numbers, tables, a picture --write--> CSV, PNG, SVG
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import Count, DatasetSettings, Example, Seed, Split, setting
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.errors import DataError, UsageError
from longsumbench.files import format_csv
from longsumbench.formatting import format_count
from longsumbench.metrics.aggregate import MEAN_RESAMPLES, Estimate
from longsumbench.metrics.statistics import Numbers, bootstrap_interval
from longsumbench.progress import track
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_run
from longsumbench.views.figures import write_pictures
from longsumbench.views.tables import Block, terminal


def estimate_mean(values: Numbers) -> Estimate | None:
    """Return the mean of some values with its bootstrap interval, in their unit; None without values."""
    if not len(values):
        return None
    bounds = bootstrap_interval(values, MEAN_RESAMPLES)
    return Estimate(float(values.mean()), *bounds)


@dataclass
class SampleSettings:
    """Settings of the sample."""

    sample: Count | None = setting(200, "drawn from dataset.split; null: all of them", "examples")
    seed: Seed = setting(1, "seed of the sample, and of other random numbers of an analysis")


@dataclass(frozen=True)
class AnalysisResult(ABC):
    """The result of an analysis."""

    analysis: ClassVar[str]  # name of the analysis and of its files
    dataset: str
    sample: str  # description of the examples
    signature: str  # how the numbers were computed

    @property
    @abstractmethod
    def title(self) -> str:
        """Heading of the tables."""

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Return the numbers, as in the CSV file."""

    @abstractmethod
    def blocks(self) -> list[Block]:
        """Return the tables to read."""

    def pictures(self) -> dict[str, bytes]:
        """Draw the picture, if there is one; return "png" and "svg" → bytes."""
        return {}

    def render(self) -> str:
        """Return the tables for the terminal."""
        return f"{terminal(self.title, self.blocks())}\n\n{self.signature}"

    def csv(self, table: pd.DataFrame | None = None) -> str:
        """Return the table, or another one, as CSV, with the dataset and the signature."""
        table = self.table() if table is None else table
        table = table.assign(dataset=self.dataset, signature=self.signature)
        return format_csv(table, float_format="%.6f")

    def more_files(self) -> dict[str, str]:
        """Return the content of further files by name."""
        return {}

    def write(self, folder: Path) -> list[Path]:
        """Write the CSV file, the picture as PNG and SVG, and further files; return their paths."""
        files: dict[str, Any] = {f"{self.analysis}.csv": self.csv()}
        for kind, image in self.pictures().items():
            files[f"{self.analysis}.{kind}"] = image
        return write_pictures(folder, files | self.more_files())


@dataclass(frozen=True)
class Outputs:
    """The summaries of a finished run."""

    record: RunRecord
    summaries: Mapping[str, str]  # id → summary


@dataclass(frozen=True)
class Sampled:
    """Sampled examples of a split, read one by one."""

    dataset: str
    fingerprint: str  # fingerprint of the texts
    split: Split  # all examples of the split
    places: Sequence[int]  # indices of the sampled examples, in the order of the split
    seed: int  # seed of the sample
    runs: tuple[Outputs, ...] = ()  # finished runs with a summary of each sampled example

    def __len__(self) -> int:
        return len(self.places)

    def examples(self, doing: str) -> Iterator[Example]:
        """Yield the examples and show progress, labelled by `doing` ("comparing sentences")."""
        return track((self.split[place] for place in self.places), doing, len(self))

    def describe(self) -> str:
        """Describe the split and the sample."""
        if len(self) == len(self.split):
            return f"{self.split.name} split, all {format_count(len(self), 'example')}"
        counts = f"{len(self):,} of {len(self.split):,} examples"
        among = ", of those that all runs summarized," if self.runs else ""
        return f"{self.split.name} split, {counts}{among} drawn by seed {self.seed}"

    def signature(self, analysis: str, version: int, **parts: object) -> str:
        """Describe how an analysis of these examples was computed.

        `version` increases if the same texts give other numbers; `parts` are the settings that change the result.
        """
        parts |= {"texts": self.fingerprint, "sample": len(self), "seed": self.seed}
        return "|".join(f"{name}:{value}" for name, value in {analysis: version, **parts}.items())


# Begin to read here: every analysis draws its examples with it.
def sample_dataset(
    dataset: DatasetSettings,
    settings: SampleSettings,
    run: str = "",
    results: Results | None = None,
) -> Sampled:
    """Read a dataset and draw examples from `dataset.split`.

    `run` names finished runs, separated by commas: folders, ids, or unique prefixes of ids.

    Raises:
        UsageError: a run is unknown, has read other texts or has summarized another split.
        DataError: the dataset has no such split, or a file is damaged.
    """
    records = _find_runs_on_split(run, results or Results(Path("results")), dataset)
    texts = load_texts(dataset, user_cache())
    split = find_split(texts, dataset.split)
    runs = [_open_run(folder, record, texts) for folder, record in records]
    # a summary of every run is needed, so that all numbers are of the same examples
    common = []
    for index, name in enumerate(split.ids):
        if all(name in outputs.summaries for outputs in runs):
            common.append(index)
    if not common:
        raise UsageError(
            f"no example of the {split.name} split was summarized by all of the {len(runs)} runs"
        )
    size = min(settings.sample or len(common), len(common))
    places = np.random.default_rng(settings.seed).choice(common, size, replace=False)
    return Sampled(
        dataset=texts.name,
        fingerprint=texts.fingerprint,
        split=split,
        places=sorted(places.tolist()),
        seed=settings.seed,
        runs=tuple(runs),
    )


def find_split(texts: Texts, name: str) -> Split:
    """Return a split of a dataset.

    Raises:
        DataError: it has no such split.
    """
    if name not in texts.splits:
        has = ", ".join(texts.splits)
        raise DataError(f"dataset '{texts.name}' has no split '{name}'; the split can be: {has}")
    return texts.splits[name]


def _find_runs_on_split(
    names: str, results: Results, dataset: DatasetSettings
) -> list[tuple[Path, RunRecord]]:
    """Return folder and record of each run, after the checks that need no texts."""
    # what needs no texts is checked first: to read them may take minutes
    records: dict[str, tuple[Path, RunRecord]] = {}
    for name in filter(None, map(str.strip, names.split(","))):
        folder = results.find(name)
        record = RunRecord.read(folder)
        label = describe_run(record)
        if record.run_id in records:
            raise UsageError(f"{label} is named twice; name each run once")
        for key, run_value, expected in (
            ("dataset", record.key.dataset, dataset.name),
            ("dataset.split", record.key.split, dataset.split),
        ):
            if run_value != expected:
                advice = f"name another run, or set {key}={run_value}"
                raise UsageError(f"{label} is a run on {key}={run_value}, not {expected}: {advice}")
        record.check_written(folder, ["predictions.jsonl"])
        records[record.run_id] = folder, record
    return list(records.values())


def _open_run(folder: Path, record: RunRecord, texts: Texts) -> Outputs:
    if record.key.fingerprint != texts.fingerprint:
        problem = f"has read other texts (fingerprint {record.key.fingerprint[:12]}, these have {texts.fingerprint[:12]})"
        raise UsageError(
            f"{describe_run(record)} {problem}: set dataset.* as in that run's config.yaml"
        )
    summaries = read_summaries(folder / "predictions.jsonl")
    return Outputs(record, {summary.id: summary.text for summary in summaries})
