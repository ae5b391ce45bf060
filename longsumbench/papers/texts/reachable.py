"""The datasets of a paper table: which can be read on this machine, and which of them are not the paper's."""

from collections.abc import Mapping
from typing import NamedTuple

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.papers.numbers.conditions import compare_texts, describe_unread
from longsumbench.papers.page import Job, picture_name
from longsumbench.papers.points import texts_problem


class ReadableDataset(NamedTuple):
    """A dataset of a paper table.

    Attributes:
        name: the paper's name.
        settings: of the dataset that is read for it at this scale.
        texts: what was read.
    """

    name: str
    settings: DatasetSettings
    texts: Texts

    @property
    def label(self) -> str:
        """The paper's name, and the name of the dataset that replaces it."""
        of_paper = PUBLISHED_AS.get(self.name) == self.settings.name
        return self.name if of_paper else f"{self.name} → {self.settings.name}"

    def picture_name(self, job: Job) -> str:
        """Return the file name of its picture: "pagesum-figure1-arxiv.png"."""
        return picture_name(job.paper_table, self.name)


class ReachableDatasets(NamedTuple):
    """The datasets that can be read, and sentences about data that differ from the paper's or are missing."""

    datasets: tuple[ReadableDataset, ...]
    conditions: tuple[str, ...]


def read_datasets(job: Job) -> ReachableDatasets:
    """Read the datasets of a paper table; those that cannot be read are left out, unless their files are typed.

    Raises:
        UsageError: typed files cannot be used, or no dataset can be read.
        EnvironmentProblem: no dataset can be read.
        DataError: a file is damaged.
    """
    datasets, problems = [], dict[str, SuiteError]()
    for name, settings in job.datasets.items():
        try:
            datasets.append(ReadableDataset(name, settings, load_texts(settings, user_cache())))
        except (EnvironmentProblem, UsageError) as error:
            if settings.path is not None:
                raise
            problems[name] = texts_problem(settings) or error
    if problems and not datasets:
        raise next(iter(problems.values()))
    unread = [f"{name} was not read: {problem}." for name, problem in problems.items()]
    sentences = [describe_unread(job), *unread, *(compare_texts(job, dataset.name) for dataset in datasets)]
    return ReachableDatasets(tuple(datasets), tuple(filter(None, sentences)))


def typed_option(job: Job, name: str) -> bool:
    """Return whether an option has another value than the paper table's default."""
    return job.options.get(name) != job.paper_table.options_at(job.scale).get(name)


def options_named(job: Job, *names: str) -> Mapping[str, str | int | float | None]:
    """Return those of the options that the paper table has."""
    return {name: job.options[name] for name in names if name in job.options}
