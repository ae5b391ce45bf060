"""The runs of a table or figure: planned from its description, and matched with finished runs.

A finished run matches if settings and versions are equal, in any folder of results or texts.

PaperTable + typed words --plan_paper_table--> Job: for each row and dataset its points
                         --find_finished-----> the same, with the record of each finished point
"""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import SECTIONS, DatasetSettings, RunConfig, names_deciding, registry
from longsumbench.core.settings import SAME_RUN
from longsumbench.corpora.loading.hub import check_copy_or_network
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError, did_you_mean
from longsumbench.runs.overrides import GROUPS, TOP_LEVEL_SETTINGS, format_overrides, override_key
from longsumbench.runs.plan import PlannedRun, plan_lines
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_model import Job, RowRuns
from longsumbench_reproduction.papers.paper_tables import PAPER, PaperTable, dataset_name


def _find_run(
    point: PlannedRun, records: Iterable[RunRecord], new_runs: Collection[str]
) -> RunRecord | None:
    """Return the record of a point, of several runs the one that finished last; None if there is none."""
    config = point.config
    metrics = set(config.score.metrics)
    runs = [
        run
        for run in records
        if run.key.model == config.model.name
        and metrics <= set(run.evaluation.measured_by)
        and (run.run_id in new_runs or _matches_texts(run, config.dataset))
        and replace(run.key, fingerprint="", layout="") == point.key
    ]
    return max(runs, key=lambda run: (run.finished, run.run_id), default=None)


def _matches_texts(record: RunRecord, settings: DatasetSettings) -> bool:
    """Return True if a run read the texts of a point: from the same files, or from any if the point names none."""
    corpus, path = registry.corpora.load(str(settings.reader)), record.config.dataset.path
    needs_files = settings.filler is None and corpus.built_in is None and corpus.hub is None
    return path == settings.path or (settings.path is None and needs_files)


_CHOSEN = ("model", "model/recipe", "dataset", "experiment")  # groups that a paper table chooses
_PATH = "path."  # path.arxiv=FOLDER sets dataset.path where dataset=arxiv


class TypedWords(NamedTuple):
    """The typed words of `longsumbench paper NAME`, sorted by what they change.

    Attributes:
        scale: the scale.
        paths: our name of a dataset → its folder or file.
        options: settings of the kind of paper table.
        overrides: added to every point.
        launcher: words about Hydra's launcher.
        page: the words that change the page: all but the scale and the launcher.
    """

    scale: str
    paths: Mapping[str, str]
    options: Mapping[str, str | int | float | None]
    overrides: tuple[str, ...]
    launcher: tuple[str, ...]
    page: tuple[str, ...]


def sort_words(paper_table: PaperTable, words: Sequence[str]) -> TypedWords:
    """Sort the typed words of a paper table.

    Raises:
        UsageError: a word is invalid, or the paper table lacks the scale.
    """
    scales = [word.partition("=")[2] for word in words if override_key(word) == "scale"]
    scale = scales[-1] if scales else paper_table.default
    options = paper_table.options_at(scale)
    paths: dict[str, str] = {}
    overrides, launcher, page = [], [], []
    for word in words:
        _check_word(paper_table, word)
        key, _, value = word.lstrip("+").replace("='", "=").rstrip("'").partition("=")
        if key.startswith(("hydra/", "hydra.")):
            launcher.append(word)
        elif key != "scale":
            page.append(word)
            if key.startswith(_PATH):
                paths[key.removeprefix(_PATH)] = value
            elif key in options:
                options[key] = _typed_option(key, value, options[key])
            else:
                overrides.append(word)
    if scale not in paper_table.scales:
        raise UsageError(
            f"{paper_table.name} has no scale={scale}: choose one of {', '.join(paper_table.scales)}"
        )
    _check_paths(paper_table, scale, paths, overrides)
    return TypedWords(scale, paths, options, tuple(overrides), tuple(launcher), tuple(page))


def _check_word(paper_table: PaperTable, word: str) -> None:
    key, sign, value = word.lstrip("+").partition("=")
    names = [*paper_table.options, "scale", f"{_PATH}DATASET"]
    settings = [*GROUPS, *TOP_LEVEL_SETTINGS]
    if key in _CHOSEN:
        raise UsageError(
            f"'{word}': {paper_table.name} has its own systems and datasets; type other settings"
        )
    if not sign:
        raise UsageError(
            f"'{word}' is not an override: write key=value (see longsumbench paper --help)"
        )
    if key == "results_dir":
        raise UsageError(f"'{word}': write --results-dir {value}")
    if "." not in key and not key.startswith("hydra/") and key not in (*names, *settings):
        has = f"{paper_table.name} has {', '.join(names)}, and the settings of longsumbench run"
        raise UsageError(f"unknown setting '{key}'{did_you_mean(key, [*names, *settings])}: {has}")


def _check_paths(
    paper_table: PaperTable, scale: str, paths: Mapping[str, str], overrides: Sequence[str]
) -> None:
    names = {dataset_name(at[scale]) for at in paper_table.datasets.values() if scale in at}
    has = ", ".join(f"{_PATH}{name}=" for name in sorted(names))
    if unknown := sorted(paths.keys() - names):
        suggestion = did_you_mean(unknown[0], names)
        raise UsageError(
            f"{paper_table.name} at scale={scale} does not read '{unknown[0]}'{suggestion}; it has: {has}"
        )
    for word in overrides:
        if word.startswith("dataset.path=") and len(names) > 1:
            raise UsageError(f"'{word}' is for several datasets: write one of {has}")


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


def _typed_option(
    key: str, value: str, default: str | int | float | None
) -> str | int | float | None:
    if value == "null":
        return None
    if default is None or isinstance(default, str):
        return value
    try:
        return type(default)(value)
    except ValueError as error:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise UsageError(f"'{key}={value}' is not {kind}") from error


def describe_changes(paper_table: PaperTable, typed: TypedWords) -> tuple[str, ...]:
    """Return a sentence about the typed overrides that make the result another one than the paper table's."""
    usual_words = {}
    for word in shlex.split(paper_table.scales[typed.scale]):
        usual_words[override_key(word)] = word
    # Settings such as `device` decide nothing of the outcome
    same_run = set(names_deciding(RunConfig, *SAME_RUN))
    for section, schema in SECTIONS.items():
        same_run |= {f"{section}.{name}" for name in names_deciding(schema, *SAME_RUN)}
    changes = []
    for word in typed.overrides:
        key = override_key(word)
        if key not in same_run:
            usual = f" (instead of {usual_words[key]})" if key in usual_words else ""
            changes.append(word.lstrip("+") + usual)
    if not changes:
        return ()
    reference = "this paper table at its own settings"
    if typed.scale == PAPER:
        reference = "the paper's numbers"
    return (f"Typed: {', '.join(changes)}. This page is not comparable with {reference}.",)


def deduplicate_overrides(words: Iterable[str]) -> list[str]:
    """Return overrides with one word for each setting, the last one."""
    last: dict[str, str] = {}
    for word in words:
        last.pop(override_key(word), None)
        last[override_key(word)] = word
    return list(last.values())


# Planning: a line of overrides for each row and dataset becomes points, one for each seed
_CHOOSES_MODEL = {"model", "model/recipe"}
_UNTRAINED_MODEL = "model=lead"  # for a line that only chooses a dataset
_RowKey = tuple[str, str]  # label of a row, and dataset


def plan_paper_table(paper_table: PaperTable, words: Sequence[str], results: Results) -> Job:
    """Plan the runs of a table or figure; none is looked for, and no texts are read.

    `words` are the typed ones: the scale, overrides of all points, `path.DATASET=FOLDER`, settings of the kind.

    Raises:
        UsageError: a word is invalid, or sweeps over more than seeds; or the paper table lacks the scale.
    """
    typed = sort_words(paper_table, words)
    # All lines are planned at once: composing them one by one takes seconds
    planned, unreachable = _plan_available(dict(_row_lines(paper_table, typed, results)))
    rows: list[RowRuns] = []
    datasets: dict[str, DatasetSettings] = {}
    for (label, dataset), planned_points in planned.items():
        datasets.setdefault(dataset, planned_points[0].config.dataset)
        if label:
            points = []
            for point in planned_points:
                name = f"{label} on {dataset} {point.name}".rstrip()
                points.append(replace(point, name=name))
            _check_one_per_seed(points)
            row = paper_table.rows[label]
            rows.append(RowRuns(label, row, dataset, tuple(points), (None,) * len(points)))
    return Job(
        paper_table,
        typed.scale,
        datasets,
        tuple(rows),
        typed.options,
        describe_changes(paper_table, typed),
        results,
        unreachable,
        typed.page,
    )


def find_finished(job: Job, ran: Iterable[RunRecord] = ()) -> Job:
    """Return a job with the records of the points that are finished.

    `ran` are those of runs that were just made or found finished: for these, folders of texts do not matter.
    """
    new_runs, stored, rows = {record.run_id for record in ran}, {}, []
    for dataset, settings in job.datasets.items():
        records = job.results.records(settings.name)
        stored[dataset] = [run for run in records if not run.imported]
    for row in job.rows:
        matches = [_find_run(point, stored[row.dataset], new_runs) for point in row.points]
        rows.append(row._replace(records=tuple(matches)))
    return replace(job, rows=tuple(rows))


def _row_lines(
    paper_table: PaperTable, typed: TypedWords, results: Results
) -> Iterator[tuple[_RowKey, list[str]]]:
    """Yield the overrides of each row on each dataset that it has; of a dataset without runs, with an empty label."""
    scale = typed.scale
    shared = shlex.split(paper_table.scales[scale])
    always = format_overrides({"results_dir": str(results.root), "baselines": False})
    for dataset, lines in paper_table.datasets.items():
        if scale not in lines:
            continue
        texts = shlex.split(lines[scale])
        # What comes last wins: typed words, then the folders of texts and of results
        last = [*typed.overrides]
        if path := typed.paths.get(dataset_name(lines[scale])):
            last += format_overrides({"dataset.path": path})
        last += always
        has_runs = False
        for label, row in paper_table.rows.items():
            if dataset in (row.datasets or [dataset]) and scale in (row.at or [scale]):
                of_row = shlex.split(f"{row.run} {row.at.get(scale, '')}")
                line = deduplicate_overrides([*shared, *texts, *of_row, *last])
                # The other rows are only printed
                if not _CHOOSES_MODEL.isdisjoint(map(override_key, line)):
                    has_runs = True
                    yield (label, dataset), line
        if not has_runs:
            words = [word for word in shared if not override_key(word).startswith("model")]
            yield ("", dataset), deduplicate_overrides([_UNTRAINED_MODEL, *words, *texts, *last])


def _check_one_per_seed(points: Sequence[PlannedRun]) -> None:
    """Check that the points of a row are one run for each seed: a row shows their mean."""
    runs = {point.settings_hash: point for point in points}
    if len({point.config.seed for point in runs.values()}) < len(runs):
        names = f"'{points[0].name}' and '{points[-1].name}'"
        raise UsageError(f"{names} would be one row of the table: type one value, or several seeds")


def _plan_available(
    lines: Mapping[_RowKey, list[str]],
) -> tuple[dict[_RowKey, list[PlannedRun]], dict[_RowKey, EnvironmentProblem]]:
    """Plan lines; those that need a checkpoint that cannot be fetched are left out, with the reason."""
    problems = {}
    try:
        points = plan_lines(list(lines.values()))
    except EnvironmentProblem:
        for place, line in lines.items():
            try:
                plan_lines([line])
            except EnvironmentProblem as problem:
                problems[place] = problem
            except UsageError:  # a setting that other rows have
                continue
        lines = {place: line for place, line in lines.items() if place not in problems}
        points = plan_lines(list(lines.values()))
    return dict(zip(lines, points, strict=True)), problems
