"""What differs from the paper, in sentences: texts, sizes, steps of training, ROUGE; and which texts can be read.

Settings that the paper does not give are in the paper table's `not_given`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from msgspec import structs

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import DatasetSettings, RunConfig, build_settings
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError
from longsumbench.formatting import format_count
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.views.footnotes import describe_step_size
from longsumbench.views.tables import Block
from longsumbench_reproduction.papers.claims import TableNumber, long_table
from longsumbench_reproduction.papers.page_model import ClaimOutcome, Job, Page, RowRuns
from longsumbench_reproduction.papers.paper_tables import PAPER
from longsumbench_reproduction.papers.published_rows import RowMeans
from longsumbench_reproduction.papers.run_planning import plan_paper_table, texts_problem

_Settings = TypeVar("_Settings")

# How each paper computes ROUGE: our mode (None: not named), and what the paper says
_PAPER_ROUGE = {
    "liu2022pagesum": ("perl", "the Perl script (fn. 11)"),
    "you2019etads": ("perl", "the official script (Table 2), called from Python (§4.1)"),
    "liu2019hiersumm": (None, ""),
    "zhao2020seal": (None, ""),
}


def compare_texts(job: Job, dataset: str) -> str:
    """Say that our texts are not those of one of the paper's datasets; empty if they are."""
    settings = job.datasets[dataset]
    if settings.name != PUBLISHED_AS.get(dataset):
        return f"Ours are on {settings.name}, the paper's on {dataset}: compare the order of the rows, not the numbers."
    if settings.path:
        return f"Our texts of {dataset} came from local files; nothing shows that they are the official ones."
    return ""


def describe_unread(job: Job) -> str:
    """Name the paper's datasets for which nothing is read at this scale; empty if there are none."""
    unread = [dataset for dataset in job.paper_table.datasets if dataset not in job.datasets]
    if not unread:
        return ""
    return f"Not read at scale={job.scale}, and so not tested: {', '.join(unread)}."


def describe_conditions(job: Job, means: RowMeans) -> tuple[str, ...]:
    """Return a sentence for each condition in which our finished runs differ from the paper's."""
    if not means.groups:
        return ()
    texts = [_describe_texts(job, means, dataset) for dataset in job.datasets]
    sentences = [describe_unread(job), *texts, *_describe_training(job)]
    return tuple(filter(None, [*sentences, _describe_rouge(job, means), _describe_seeds(means)]))


def _describe_texts(job: Job, means: RowMeans, dataset: str) -> str:
    runs = [group.representative for (_, name), group in means.groups.items() if name == dataset]
    if not runs:
        return ""
    settings, first = job.datasets[dataset], runs[0]
    texts = f"{settings.name} (local files)" if settings.path else settings.name
    sentence = f"{dataset}: ours are {first.evaluation.describe_examples()} of the {first.key.split} split of {texts}"
    lengths = []
    sources = [run.ledger.source for run in runs if run.ledger.source and run.ledger.source.words]
    if sources:
        lengths.append(f"{sources[0].words / first.num_outputs:,.0f} words on average")
    outputs = first.evaluation.outputs
    if outputs and outputs.reference_words:
        lengths.append(f"references of {outputs.reference_words:,.0f} words")
    if lengths:
        sentence += f", with {' and '.join(lengths)}"
    if any(run.trained for run in runs):
        sentence += f"; {format_count(first.train_examples, 'example')} to train on"
    return f"{sentence}."


def _describe_training(job: Job) -> list[str]:
    rows = [row for row in job.rows if any(run.trained for run in row.finished)]
    configs = [row.points[0].config for row in rows]
    at_paper_scale = _plan_at_paper_scale(job, rows)
    weights: set[int] = set()
    for row in rows:
        weights.update(run.parameters for run in row.finished if run.parameters)
    paper_weights = _count_weights(at_paper_scale) if weights else set()
    # What is said of ours, and of the settings at the paper's scale if these differ
    described = {
        "Our systems have {} weights": (_range(weights), _range(paper_weights)),
        "They train for {}": (_describe_steps(configs), _describe_steps(at_paper_scale)),
    }
    sentences = []
    for sentence, (our_text, paper_text) in described.items():
        differs = paper_text not in ("", our_text)
        paper = f" (scale=paper: {paper_text})" if differs else ""
        if our_text:
            sentences.append(f"{sentence.format(our_text)}{paper}.")
    return sentences


def _plan_at_paper_scale(job: Job, rows: Sequence[RowRuns]) -> list[RunConfig]:
    if PAPER not in job.paper_table.scales or not rows:
        return []
    paper_table = structs.replace(job.paper_table, rows={row.label: row.row for row in rows})
    planned = plan_paper_table(paper_table, [f"scale={PAPER}"], job.results)
    return [row.points[0].config for row in planned.rows]


def _count_weights(configs: Sequence[RunConfig]) -> set[int]:
    from longsumbench.modeling.sizes import count_parameters  # it needs torch

    counts = set()
    for settings in (config.model for config in configs):
        starts_at_random = isinstance(settings, NeuralConfig) and settings.init == "random"
        # The sizes of a checkpoint are not in the settings.
        if starts_at_random and settings.checkpoint is None:
            counts.add(sum(count_parameters(settings).values()))
    return counts


def _describe_steps(configs: Sequence[RunConfig]) -> str:
    if not configs:
        return ""
    sizes = {describe_step_size(config.train) for config in configs}
    steps = f"{_range({config.train.max_steps for config in configs})} steps"
    return steps if len(sizes) > 1 else f"{steps} of {sizes.pop()}"


def _range(numbers: Collection[int]) -> str:
    """Return "3" or "3 to 5"; empty without numbers."""
    ends = sorted({min(numbers), max(numbers)}) if numbers else []
    return " to ".join(f"{number:,}" for number in ends)


def _describe_rouge(job: Job, means: RowMeans) -> str:
    # All runs of a table are scored in the same mode
    paper_mode, program = _PAPER_ROUGE.get(job.paper_table.source, (None, ""))
    mode = next(iter(means.groups.values())).representative.config.score.mode
    if mode == paper_mode:
        return ""
    our_program = {"google": "as rouge_score 0.1.2", "perl": "as ROUGE-1.5.5"}[mode]
    papers = (
        f", the paper's by {program}" if paper_mode else "; the paper does not name its program"
    )
    return f"ROUGE: ours is computed {our_program}{papers}."


def _describe_seeds(means: RowMeans) -> str:
    groups = [group for group in means.groups.values() if group.representative.key.seed is not None]
    seeds = _range({len(group.runs) for group in groups})
    if not seeds:
        return ""
    over = "of one seed" if seeds == "1" else f"means over {seeds} seeds"
    return f"Our numbers are {over}."


@dataclass(frozen=True, eq=False)
class ReadableDataset:
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


def read_datasets(job: Job) -> tuple[list[ReadableDataset], list[str]]:
    """Read the datasets of a paper table; those that cannot be read are left out, unless their files are typed.

    Return the datasets, and sentences about data that differ from the paper's or are missing.

    Raises:
        UsageError: typed files cannot be used, or no dataset can be read.
        EnvironmentProblem: no dataset can be read.
        DataError: a file is damaged.
    """
    datasets, problems = [], dict[str, SuiteError]()
    for name, settings in job.datasets.items():
        try:
            datasets.append(ReadableDataset(name, settings, load_texts(settings, user_cache())))
        # A dataset out of reach is left out; a typed folder that is wrong is the user's error
        except (EnvironmentProblem, UsageError) as error:
            if settings.path is not None:
                raise
            problems[name] = texts_problem(settings) or error
    if problems and not datasets:
        raise next(iter(problems.values()))
    sentences = [describe_unread(job)]
    sentences += [f"{name} was not read: {problem}." for name, problem in problems.items()]
    sentences += [compare_texts(job, dataset.name) for dataset in datasets]
    return datasets, list(filter(None, sentences))


def build_row_page(
    job: Job,
    means: RowMeans,
    blocks: Iterable[Block],
    numbers: Iterable[TableNumber],
    verdicts: tuple[ClaimOutcome, ...] = (),
) -> Page:
    """Return the page of a job with rows: its numbers and verdicts as a table, and the conditions of its runs."""
    table, conditions = long_table(numbers, verdicts), describe_conditions(job, means)
    return Page(tuple(blocks), table, verdicts, conditions)


def build_options(job: Job, schema: type[_Settings], **more: object) -> _Settings:
    """Return the settings of an analysis from the options with their names, and `more`.

    Raises:
        UsageError: a value is invalid.
    """
    names = {field.name for field in fields(schema)}  # type: ignore[arg-type] # a dataclass
    values = {name: value for name, value in job.options.items() if name in names}
    settings: _Settings = build_settings(schema, {**values, **more}, "")
    return settings
