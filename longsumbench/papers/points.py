"""The runs of a table or figure: planned from its description, and matched with finished runs.

Artifact + scale + typed words --plan_artifact--> Job: for each row and dataset its points and their records
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

from longsumbench.api import SECTIONS, DatasetSettings, RunConfig, names_deciding, registry
from longsumbench.api.settings import SAME_RUN
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.hub import check_copy_or_network
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError, did_you_mean
from longsumbench.files import digest
from longsumbench.papers.artifacts import PAPER, Artifact
from longsumbench.papers.page import Job, RowRuns
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import Planned, plan_lines
from longsumbench.runs.record import Results, RunRecord
from longsumbench.runs.run_id import config_identity

_PATH = "path."  # path.arxiv=FOLDER sets dataset.path where dataset=arxiv
_CHOOSES_MODEL = {"model", "model/recipe"}
_UNTRAINED = "model=lead"  # for a line that only chooses a dataset
_Place = tuple[str, str]  # label of a row, and dataset


class TypedWords(NamedTuple):
    """The typed words of `longsumbench paper NAME`, sorted by what they change.

    Attributes:
        scale: the scale.
        paths: our name of a dataset → its folder or file.
        options: settings of the kind of artifact.
        overrides: added to every point.
        launcher: words about Hydra's launcher.
    """

    scale: str
    paths: Mapping[str, str]
    options: Mapping[str, str | int | float | None]
    overrides: tuple[str, ...]
    launcher: tuple[str, ...]


def sort_words(artifact: Artifact, words: Sequence[str]) -> TypedWords:
    """Sort the typed words of an artifact.

    Raises:
        UsageError: a word is invalid, or the artifact lacks the scale.
    """
    scale = next((word.partition("=")[2] for word in reversed(words) if word.startswith("scale=")), artifact.default)
    options = artifact.options_at(scale)
    paths: dict[str, str] = {}
    overrides, launcher = [], []
    for word in words:
        key, sign, value = word.lstrip("+").partition("=")
        if not sign:
            raise UsageError(f"'{word}' is not an override: write key=value (see longsumbench paper --help)")
        if key == "results_dir":
            raise UsageError(f"'{word}': write --results-dir {value}")
        if key == "scale":
            continue
        if key.startswith(_PATH):
            paths[key.removeprefix(_PATH)] = value
        elif key in options:
            options[key] = _typed_option(key, value, options[key])
        elif key.startswith(("hydra/", "hydra.")):
            launcher.append(word)
        else:
            overrides.append(word)
    if scale not in artifact.scales:
        raise UsageError(f"{artifact.name} has no scale={scale}: choose one of {', '.join(artifact.scales)}")
    known = {_dataset_name(at[scale]) for at in artifact.datasets.values() if scale in at}
    if unknown := sorted(paths.keys() - known):
        near, has = did_you_mean(unknown[0], known), ", ".join(f"{_PATH}{name}=" for name in sorted(known))
        raise UsageError(f"{artifact.name} at scale={scale} does not read '{unknown[0]}'{near}; it has: {has}")
    if len(known) > 1 and (typed := next((word for word in overrides if word.startswith("dataset.path=")), None)):
        raise UsageError(f"'{typed}' is for several datasets: write {' or '.join(f'{_PATH}{name}=' for name in known)}")
    return TypedWords(scale, paths, options, tuple(overrides), tuple(launcher))


def plan_artifact(
    artifact: Artifact, scale: str, words: Sequence[str], results: Results, config_dir: str | None = None
) -> Job:
    """Plan the runs of a table or figure, and find those that are finished. No texts are read.

    Args:
        artifact: the table or figure.
        scale: one of its scales.
        words: typed words: overrides of all points, `path.DATASET=FOLDER`, settings of the kind.
        results: the results folder.
        config_dir: a folder with more YAML files.

    Raises:
        UsageError: a word is invalid, or the artifact lacks the scale.
    """
    typed = sort_words(artifact, [*words, f"scale={scale}"])
    lines = dict(_lines(artifact, typed, results))
    planned, problems = _plan_available(lines, config_dir)
    records = _Finished(results)
    rows: list[RowRuns] = []
    settings: dict[str, DatasetSettings] = {}
    for (label, dataset), points in planned.items():
        settings.setdefault(dataset, points[0].config.dataset)
        if label:
            named = tuple(_name_point(point, label, dataset) for point in points)
            rows.append(RowRuns(label, artifact.rows[label], dataset, named, tuple(map(records.find, named))))
    left_out = [f"{label} on {dataset} is left out: {problem}." for (label, dataset), problem in problems.items()]
    changes = (*_describe_changes(artifact, typed), *left_out)
    return Job(artifact, scale, settings, tuple(rows), typed.options, changes, results)


def _lines(artifact: Artifact, typed: TypedWords, results: Results) -> Iterator[tuple[_Place, list[str]]]:
    """Yield the overrides of each row on each dataset that it has; of a dataset without runs, with an empty label."""
    scale, own = typed.scale, shlex.split(artifact.scales[typed.scale])
    always = format_overrides({"results_dir": str(results.root), "baselines": False})
    for dataset, chosen in ((name, shlex.split(at[scale])) for name, at in artifact.datasets.items() if scale in at):
        path = typed.paths.get(_dataset_name(artifact.datasets[dataset][scale]))
        after = [*typed.overrides, *([] if path is None else format_overrides({"dataset.path": path})), *always]
        runs = []
        for label, row in artifact.rows.items():
            if (not row.datasets or dataset in row.datasets) and (not row.at or scale in row.at):
                words = [*own, *chosen, *shlex.split(row.run), *shlex.split(row.at.get(scale, "")), *after]
                runs.append((label, _last_of_each(words)))
        runs = [
            (label, line) for label, line in runs if _CHOOSES_MODEL & set(map(_key, line))
        ]  # others are only printed
        for label, line in runs:
            yield (label, dataset), line
        if not runs:
            words = [word for word in own if not _key(word).startswith("model")]
            yield ("", dataset), _last_of_each([_UNTRAINED, *words, *chosen, *after])


def _plan_available(
    lines: Mapping[_Place, list[str]], config_dir: str | None
) -> tuple[dict[_Place, list[Planned]], dict[_Place, EnvironmentProblem]]:
    """Plan lines; those that need a checkpoint that cannot be fetched are left out, with the reason."""
    try:
        return dict(zip(lines, plan_lines(list(lines.values()), config_dir=config_dir), strict=True)), {}
    except EnvironmentProblem:
        pass
    problems = {}
    for place, line in lines.items():
        try:
            plan_lines([line], config_dir=config_dir)
        except EnvironmentProblem as problem:
            problems[place] = problem
        except UsageError:  # a setting that other rows have
            continue
    rest = {place: line for place, line in lines.items() if place not in problems}
    return dict(zip(rest, plan_lines(list(rest.values()), config_dir=config_dir), strict=True)), problems


def find_finished(job: Job, ran: Iterable[RunRecord] = ()) -> Job:
    """Return a job with the records that are finished by now.

    Args:
        job: the planned runs.
        ran: of runs that were just made or found finished: for these, folders of texts do not matter.
    """
    records = _Finished(job.results, frozenset(record.run_id for record in ran))
    rows = tuple(row._replace(records=tuple(map(records.find, row.points))) for row in job.rows)
    return replace(job, rows=rows)


def texts_problem(settings: DatasetSettings) -> SuiteError | None:
    """Return why the texts of a dataset cannot be read, and which word to type; None if nothing is known against it."""
    corpus, name = registry.corpora.load(str(settings.reader)), settings.name
    advice = f"add {_PATH}{name}=FOLDER"
    if settings.path is not None:
        if not Path(settings.path).expanduser().exists():
            return UsageError(f"{_PATH}{name}={settings.path}: no such file or folder")
    elif corpus.built_in is None and corpus.hub is None:
        return UsageError(f"dataset '{name}' is read from files: {advice}")
    elif corpus.built_in is None:
        try:
            check_copy_or_network(corpus, user_cache())
        except EnvironmentProblem:
            reason = "is not on this machine, and the Hugging Face hub cannot be reached"
            return EnvironmentProblem(f"dataset '{name}' {reason}: {advice}")
    return None


class _Finished:
    """The finished runs of a results folder, by what decides their outcome."""

    def __init__(self, results: Results, ran: frozenset[str] = frozenset()) -> None:
        self._results, self._ran = results, ran
        self._records: dict[tuple[str, str], list[RunRecord]] = {}
        self._read: set[str] = set()
        self._identities: dict[tuple[str, str | None], str | None] = {}

    def find(self, point: Planned) -> RunRecord | None:
        """Return the record of a point, of several runs the one that finished last; None if there is none."""
        config = point.config
        wanted, metrics = _outcome_identity(config), set(config.score.metrics)
        found = [
            record
            for record in self._of(config.dataset.name, config.model.name)
            if metrics <= set(record.measured_by)
            and (record.run_id in self._ran or _may_be_texts_of(record, config.dataset))
            and self._identity(record, config) == wanted
        ]
        return max(found, key=lambda record: (record.finished, record.run_id), default=None)

    def _of(self, dataset: str, model: str) -> Sequence[RunRecord]:
        if dataset not in self._read:
            self._read.add(dataset)
            for record in self._results.records(dataset):
                if not record.imported:
                    self._records.setdefault((dataset, record.model), []).append(record)
        return self._records.get((dataset, model), ())

    def _identity(self, record: RunRecord, config: RunConfig) -> str | None:
        key = (record.run_id, config.dataset.path)
        if key not in self._identities:
            self._identities[key] = _identity_at(record, config)
        return self._identities[key]


def _may_be_texts_of(record: RunRecord, settings: DatasetSettings) -> bool:
    """Return True if a run read the texts of a point: from the same files, or from any if the point names none."""
    corpus, path = registry.corpora.load(str(settings.reader)), record.config["dataset"].get("path")
    needs_files = settings.filler is None and corpus.built_in is None and corpus.hub is None
    return path == settings.path or (settings.path is None and needs_files)


def _identity_at(record: RunRecord, config: RunConfig) -> str | None:
    """Return the identity of a finished run with the folders of a point; None if its settings are of another version.

    A run is the same wherever its results are.
    """
    rest = {**record.config, "results_dir": config.results_dir}
    rest["dataset"] = {**rest["dataset"], "path": config.dataset.path}
    schemas = {"model": type(config.model), **SECTIONS}
    try:  # values in a record were checked when it was written
        sections = {name: schema(**rest.pop(name)) for name, schema in schemas.items()}
        return _outcome_identity(RunConfig(**rest, **sections))
    except (TypeError, KeyError, UsageError):
        return None


def _outcome_identity(config: RunConfig) -> str:
    """Return a hash of the settings of a run, without its requested metrics."""
    config = replace(config, score=replace(config.score, metrics=[]))
    try:
        return config_identity(config, registry.systems.load(config.model.name)(config.model))
    except EnvironmentProblem:  # a checkpoint that is not on this machine
        return digest(asdict(config))


def _last_of_each(words: Iterable[str]) -> list[str]:
    """Return overrides with one word for each setting, the last one."""
    last: dict[str, str] = {}
    for word in words:
        last.pop(_key(word), None)
        last[_key(word)] = word
    return list(last.values())


def _key(word: str) -> str:
    """Return the setting of an override."""
    return word.lstrip("+").partition("=")[0]


def _name_point(point: Planned, label: str, dataset: str) -> Planned:
    return replace(point, name=" ".join(filter(None, [f"{label} on {dataset}", point.name])))


def _dataset_name(line: str) -> str:
    """Return NAME of `dataset=NAME` in a line of overrides; empty without one."""
    chosen = dict(word.partition("=")[::2] for word in shlex.split(line))
    return chosen.get("dataset.name", chosen.get("dataset", ""))


def _typed_option(key: str, value: str, default: str | int | float | None) -> str | int | float | None:
    """Return the value of an option, of the type of its default."""
    if value == "null":
        return None
    if default is None or isinstance(default, str):
        return value
    try:
        return type(default)(value)
    except ValueError as error:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise UsageError(f"'{key}={value}' is not {kind}") from error


def _describe_changes(artifact: Artifact, typed: TypedWords) -> tuple[str, ...]:
    """Return a sentence about the typed overrides that make the result another one than the artifact's."""
    scale = artifact.scales[typed.scale]
    own = {_key(word): word for word in shlex.split(scale)}
    nothing = set(names_deciding(RunConfig, *SAME_RUN))
    nothing |= {
        f"{section}.{name}" for section, schema in SECTIONS.items() for name in names_deciding(schema, *SAME_RUN)
    }
    words = [word.lstrip("+") for word in typed.overrides if _key(word) not in nothing]
    if not words:
        return ()
    named = ", ".join(f"{word} (instead of {own[_key(word)]})" if _key(word) in own else word for word in words)
    other = "the paper's numbers" if typed.scale == PAPER else "this artifact at its own settings"
    return (f"Typed: {named}. This page is not comparable with {other}.",)
