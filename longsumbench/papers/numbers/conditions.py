"""The conditions in which our runs differ from the paper's, in sentences: texts, sizes, training, decoding, ROUGE.

The paper's settings are those of the artifact at scale=paper.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, NamedTuple

from msgspec import structs

from longsumbench.api import SAME_SYSTEM, RunConfig, names_deciding
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import format_typed
from longsumbench.leaderboards.notes import checkpoint_name, describe_step_size, shorten_list
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.papers.artifacts import PAPER
from longsumbench.papers.numbers.ours import Ours
from longsumbench.papers.page import Job
from longsumbench.papers.points import plan_artifact
from longsumbench.runs.record import RunRecord

_THEIRS = "the paper's in parentheses"
_MOST_VALUES = 3  # of a setting; with more, it is only named
_MOST_OTHERS = 3  # rows after "all but"
_SECTIONS = {"model": "Systems", "train": "Training", "decode": "Decoding"}
_SHOWN_ELSEWHERE = ("budget", "seed", "speed", *SAME_SYSTEM)
# How each paper computes ROUGE: our mode (None: not named), and what the paper says
_ROUGE = {
    "liu2022pagesum": ("perl", "the Perl script (fn. 11)"),
    "you2019etads": ("perl", "the official script (Table 2), called from Python (§4.1)"),
    "liu2019hiersumm": (None, ""),
    "zhao2020seal": (None, ""),
}


class _Pair(NamedTuple):
    """A row with a finished run, and its point at the paper's scale.

    Attributes:
        name: label of the row; if there are several datasets, also the dataset.
    """

    name: str
    record: RunRecord
    ours: RunConfig
    paper: RunConfig


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
    unread = [dataset for dataset in job.artifact.datasets if dataset not in job.datasets]
    return f"Not read at scale={job.scale}, and so not tested: {', '.join(unread)}." if unread else ""


def describe_conditions(job: Job, ours: Ours) -> tuple[str, ...]:
    """Return a sentence for each condition in which our finished runs differ from the paper's."""
    if not ours.groups:
        return ()
    pairs = _pairs(job)
    sentences = [describe_unread(job), *(_texts(job, ours, dataset) for dataset in job.datasets)]
    sentences += [_compare_models(pairs), *(_compare_settings(pairs, section) for section in _SECTIONS)]
    return tuple(filter(None, [*sentences, _weights(ours), _rouge(job, ours), _seeds(job, ours)]))


def _pairs(job: Job) -> list[_Pair]:
    """Return the rows with a finished run that exist at the paper's scale."""
    if PAPER not in job.artifact.scales:
        return []
    finished = [row for row in job.rows if row.finished]
    rows = {row.label: row.row for row in finished}  # others may need checkpoints that are not on this machine
    planned = plan_artifact(structs.replace(job.artifact, rows=rows), PAPER, (), job.results)
    paper = {(row.label, row.dataset): row for row in planned.rows}
    found = [row for row in finished if (row.label, row.dataset) in paper]
    several = len({row.dataset for row in found}) > 1
    return [
        _Pair(
            f"{row.label} on {row.dataset}" if several else row.label,
            row.finished[0],
            row.points[0].config,
            paper[row.label, row.dataset].points[0].config,
        )
        for row in found
    ]


def _texts(job: Job, ours: Ours, dataset: str) -> str:
    """Describe our texts in the place of one of the paper's datasets."""
    runs = [group.first for (_, name), group in ours.groups.items() if name == dataset]
    if not runs:
        return ""
    settings, first = job.datasets[dataset], runs[0]
    texts = f"{settings.name} (local files)" if settings.path else settings.name
    sentence = f"{dataset}: ours are {format_count(first.n, 'example')} of the {first.split} split of {texts}"
    lengths = []
    if ledger := next((run.source for run in runs if run.source and run.source.words), None):
        lengths.append(f"{ledger.words / first.num_outputs:,.0f} words on average")
    if first.outputs and first.outputs.reference_words:
        lengths.append(f"references of {first.outputs.reference_words:,.0f} words")
    sentence += f", with {' and '.join(lengths)}" if lengths else ""
    trained = any(run.trained for run in runs)
    return sentence + (f"; {format_count(first.train_examples, 'example')} to train on." if trained else ".")


def _compare_models(pairs: Sequence[_Pair]) -> str:
    """Name the rows whose system is another one than the paper's."""
    unlike = [
        f"{pair.name} is model={pair.ours.model.name} (model={pair.paper.model.name})"
        for pair in pairs
        if pair.ours.model.name != pair.paper.model.name
    ]
    return f"Other systems, {_THEIRS}: {'; '.join(unlike)}." if unlike else ""


def _compare_settings(pairs: Sequence[_Pair], section: str) -> str:
    """Describe the settings of a section in which rows differ from the paper's."""
    compared = [pair for pair in pairs if pair.ours.model.name == pair.paper.model.name and _uses(pair, section)]
    rows: dict[tuple[str, str, str], list[str]] = {}  # (setting, ours, the paper's) → rows
    for pair in compared:
        ours, paper = _settings(pair.ours, section), _settings(pair.paper, section)
        if section == "train":
            ours, paper = {"": _budget(pair.ours), **ours}, {"": _budget(pair.paper), **paper}
        for key, value in ours.items():
            if value != paper.get(key, value):
                rows.setdefault((key, value, paper[key]), []).append(pair.name)
    keys = [key for key, *_ in rows]
    grouped: dict[tuple[str, ...], list[str]] = {}
    for (key, value, theirs), names in rows.items():
        if keys.count(key) <= _MOST_VALUES:
            grouped.setdefault(tuple(names), []).append(f"{key} {value} ({theirs})".lstrip())
    everyone = tuple(pair.name for pair in compared)
    parts = [", ".join(grouped.pop(everyone))] if everyone in grouped else []
    parts += [f"{_name_rows(names, everyone)}: {', '.join(texts)}" for names, texts in grouped.items()]
    parts += [f"{key or 'budget'} by row" for key in dict.fromkeys(keys) if keys.count(key) > _MOST_VALUES]
    return f"{_SECTIONS[section]}, {_THEIRS}: {'; '.join(parts)}." if parts else ""


def _name_rows(names: Sequence[str], everyone: Sequence[str]) -> str:
    """Return the names of rows, or of the rows that are not meant if these are few."""
    others = [name for name in everyone if name not in names]
    return f"all but {', '.join(others)}" if len(others) <= _MOST_OTHERS < len(names) else shorten_list(names)


def _uses(pair: _Pair, section: str) -> bool:
    """Return True if a section of the settings decides the outcome of a run."""
    return pair.record.trained if section == "train" else section == "model" or pair.record.parameters > 0


def _settings(config: RunConfig, section: str) -> dict[str, str]:
    """Return setting → value of a section, as typed, without what other sentences show."""
    settings = getattr(config, section)
    left_out = names_deciding(settings, *_SHOWN_ELSEWHERE) | {"name"}
    return {key: _typed(settings, key) for key in asdict(settings) if key not in left_out}


def _typed(settings: Any, key: str) -> str:
    """Return the value of a setting as typed; a width or depth that is null has the value of the named size."""
    value = getattr(settings, key)
    if value is None and hasattr(settings, "dimension"):
        with suppress(KeyError):  # not a width or depth
            value = settings.dimension(key)
    return checkpoint_name(value) if isinstance(value, str) and value else format_typed(value)


def _budget(config: RunConfig) -> str:
    return f"{format_count(config.train.max_steps, 'step')} × {describe_step_size(config.train)}"


def _weights(ours: Ours) -> str:
    """Describe the number of weights of our systems."""
    sizes = sorted({run.parameters for group in ours.groups.values() for run in group.runs if run.parameters})
    if not sizes:
        return ""
    return f"Our systems have {' to '.join(f'{size:,}' for size in dict.fromkeys((sizes[0], sizes[-1])))} weights."


def _rouge(job: Job, ours: Ours) -> str:
    """Describe how ROUGE is computed, if the paper does it in another way or does not say how."""
    wanted, named = _ROUGE.get(job.artifact.source, (None, ""))
    runs = [run for group in ours.groups.values() for run in group.runs]
    mode = runs[0].config["score"].get("mode", "google")
    if mode == wanted:
        return ""
    own = {"google": "as rouge_score 0.1.2", "perl": "as ROUGE-1.5.5"}[mode]
    return (
        f"ROUGE: ours is computed {own}, the paper's by {named}."
        if wanted
        else (f"ROUGE: ours is computed {own}; the paper does not name its program.")
    )


def _seeds(job: Job, ours: Ours) -> str:
    """Describe how many runs the numbers are means of; if verdicts rest on one seed, what that means."""
    numbers = sorted({len(group.runs) for group in ours.groups.values() if group.first.seed is not None})
    if not numbers:
        return ""
    over = " to ".join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))
    means = "are of one seed" if numbers == [1] else f"are means over {over} seeds"
    limit = " One seed does not show how much trainings differ, so its verdicts are about these runs only."
    return f"Our numbers {means}." + (limit if numbers[0] == 1 and job.artifact.orderings else "")
