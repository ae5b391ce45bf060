"""The datasets of an artifact that can be read on this machine, and sentences about the others."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from longsumbench.api import DatasetSettings
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.papers.page import Job

_NOT_IN_A_FILE_NAME = re.compile(r"[^a-z0-9]+")


class ReadableDataset(NamedTuple):
    """A dataset of an artifact.

    Attributes:
        name: the paper's name.
        settings: of the dataset that is read for it at this scale.
        texts: what was read.
    """

    name: str
    settings: DatasetSettings
    texts: Texts

    @property
    def of_paper(self) -> bool:
        """Whether these are the paper's texts, and not a replacement."""
        return PUBLISHED_AS.get(self.name) == self.settings.name

    @property
    def label(self) -> str:
        """The paper's name, and the name of the dataset that replaces it."""
        return self.name if self.of_paper or self.name == self.settings.name else f"{self.name} → {self.settings.name}"

    def picture_name(self, job: Job) -> str:
        """Return the file name of its picture: "pagesum-figure1-arxiv.png"."""
        return f"{job.artifact.name}-{_NOT_IN_A_FILE_NAME.sub('-', self.name.lower()).strip('-')}.png"


class ReachableDatasets(NamedTuple):
    """The datasets that can be read, and sentences about data that differ from the paper's or are missing."""

    datasets: tuple[ReadableDataset, ...]
    conditions: tuple[str, ...]


def read_datasets(job: Job) -> ReachableDatasets:
    """Read the datasets of an artifact.

    Raises:
        UsageError: none can be read; the message names the options that give their files.
        DataError: a file is damaged.
    """
    found, conditions, problems = [], [], dict[str, Exception]()
    for name in {**job.artifact.datasets, **job.datasets}:
        if name not in job.datasets:
            conditions.append(f"{name} is not read at scale={job.scale}.")
            continue
        settings = job.datasets[name]
        try:
            dataset = ReadableDataset(name, settings, load_texts(settings, user_cache()))
        except (EnvironmentProblem, UsageError) as error:
            if settings.path is not None:
                raise
            problems[f"path.{settings.name}=FOLDER"] = error
            conditions.append(f"{name} was not read: give its files by path.{settings.name}=FOLDER.")
            continue
        found.append(dataset)
        conditions += _describe_texts(dataset)
    if not found:
        reason = f" ({next(iter(problems.values()))})" if problems else ""
        advice = f"add {' or '.join(problems)}" if problems else "choose another scale"
        where = f"no dataset of {job.artifact.name} can be read at scale={job.scale}"
        raise UsageError(f"{where}{reason}: {advice}")
    return ReachableDatasets(tuple(found), tuple(conditions))


def _describe_texts(dataset: ReadableDataset) -> list[str]:
    settings = dataset.settings
    if not dataset.of_paper:
        return [f"Data: {settings.name} instead of {dataset.name}."] if settings.name != dataset.name else []
    if settings.path is not None:
        return [f"Data: {dataset.name} from local files; nothing shows that they are the official ones."]
    return []


def typed_option(job: Job, name: str) -> bool:
    """Return whether an option has another value than the artifact's default."""
    return job.options.get(name) != job.artifact.options_at(job.scale).get(name)


def options_named(job: Job, *names: str) -> Mapping[str, str | int | float | None]:
    """Return those of the options that the artifact has."""
    return {name: job.options[name] for name in names if name in job.options}
