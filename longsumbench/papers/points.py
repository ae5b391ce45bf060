"""The runs of a table or figure: planned from its description, and matched with finished runs.

Artifact + scale + typed words --plan_artifact--> Job: for each row and dataset its points and their records
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from longsumbench.api import DatasetSettings
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.papers.artifacts import Artifact
from longsumbench.papers.finished_runs import FinishedRuns
from longsumbench.papers.page import Job, RowRuns
from longsumbench.papers.typed_words import TypedWords, dataset_name, describe_changes, last_of_each, sort_words
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import Planned, plan_lines
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.typed_overrides import override_key

_CHOOSES_MODEL = {"model", "model/recipe"}
_UNTRAINED = "model=lead"  # for a line that only chooses a dataset
_Place = tuple[str, str]  # label of a row, and dataset


def plan_artifact(artifact: Artifact, scale: str, words: Sequence[str], results: Results) -> Job:
    """Plan the runs of a table or figure, and find those that are finished. No texts are read.

    Args:
        artifact: the table or figure.
        scale: one of its scales.
        words: typed words: overrides of all points, `path.DATASET=FOLDER`, settings of the kind.
        results: the results folder.

    Raises:
        UsageError: a word is invalid, or sweeps over more than seeds; or the artifact lacks the scale.
    """
    typed = sort_words(artifact, [*words, f"scale={scale}"])
    lines = dict(_lines(artifact, typed, results))
    planned, unreachable = _plan_available(lines)
    records = FinishedRuns(results)
    rows: list[RowRuns] = []
    settings: dict[str, DatasetSettings] = {}
    for (label, dataset), points in planned.items():
        settings.setdefault(dataset, points[0].config.dataset)
        if label:
            named = tuple(_name_point(point, label, dataset) for point in points)
            _check_one_per_seed(named)
            rows.append(_find_runs(RowRuns(label, artifact.rows[label], dataset, named, ()), records))
    changes = describe_changes(artifact, typed)
    return Job(artifact, scale, settings, tuple(rows), typed.options, changes, results, unreachable)


def find_finished(job: Job, ran: Iterable[RunRecord] = ()) -> Job:
    """Return a job with the records that are finished by now.

    Args:
        job: the planned runs.
        ran: of runs that were just made or found finished: for these, folders of texts do not matter.
    """
    records = FinishedRuns(job.results, frozenset(record.run_id for record in ran))
    return replace(job, rows=tuple(_find_runs(row, records) for row in job.rows))


def _find_runs(row: RowRuns, runs: FinishedRuns) -> RowRuns:
    """Return a row with the records of its points, and the outdated runs of points without one."""
    records = tuple(map(runs.find, row.points))
    missing = [point for point, record in zip(row.points, records, strict=True) if record is None]
    return row._replace(records=records, outdated=tuple(run for point in missing for run in runs.find_outdated(point)))


def _lines(artifact: Artifact, typed: TypedWords, results: Results) -> Iterator[tuple[_Place, list[str]]]:
    """Yield the overrides of each row on each dataset that it has; of a dataset without runs, with an empty label."""
    scale, own = typed.scale, shlex.split(artifact.scales[typed.scale])
    always = format_overrides({"results_dir": str(results.root), "baselines": False})
    for dataset, chosen in ((name, shlex.split(at[scale])) for name, at in artifact.datasets.items() if scale in at):
        path = typed.paths.get(dataset_name(artifact.datasets[dataset][scale]))
        after = [*typed.overrides, *([] if path is None else format_overrides({"dataset.path": path})), *always]
        runs = []
        for label, row in artifact.rows.items():
            if (not row.datasets or dataset in row.datasets) and (not row.at or scale in row.at):
                words = [*own, *chosen, *shlex.split(row.run), *shlex.split(row.at.get(scale, "")), *after]
                runs.append((label, last_of_each(words)))
        runs = [(label, line) for label, line in runs if _chooses_model(line)]  # the others are only printed
        for label, line in runs:
            yield (label, dataset), line
        if not runs:
            words = [word for word in own if not override_key(word).startswith("model")]
            yield ("", dataset), last_of_each([_UNTRAINED, *words, *chosen, *after])


def _chooses_model(line: Iterable[str]) -> bool:
    return not _CHOOSES_MODEL.isdisjoint(map(override_key, line))


def _check_one_per_seed(points: Sequence[Planned]) -> None:
    """Check that the points of a row are one run for each seed: a row shows their mean."""
    runs = {point.identity: point for point in points}
    if len({point.config.seed for point in runs.values()}) < len(runs):
        both = f"'{points[0].name}' and '{points[-1].name}'"
        raise UsageError(f"{both} would be one row of the table: type one value, or several seeds")


def _plan_available(
    lines: Mapping[_Place, list[str]],
) -> tuple[dict[_Place, list[Planned]], dict[_Place, EnvironmentProblem]]:
    """Plan lines; those that need a checkpoint that cannot be fetched are left out, with the reason."""
    try:
        return dict(zip(lines, plan_lines(list(lines.values())), strict=True)), {}
    except EnvironmentProblem:
        pass
    problems = {}
    for place, line in lines.items():
        try:
            plan_lines([line])
        except EnvironmentProblem as problem:
            problems[place] = problem
        except UsageError:  # a setting that other rows have
            continue
    rest = {place: line for place, line in lines.items() if place not in problems}
    return dict(zip(rest, plan_lines(list(rest.values())), strict=True)), problems


def _name_point(point: Planned, label: str, dataset: str) -> Planned:
    return replace(point, name=" ".join(filter(None, [f"{label} on {dataset}", point.name])))
