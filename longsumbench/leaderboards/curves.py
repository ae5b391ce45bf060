"""Curves of a sweep: the score of each system against one or two settings, with all other settings equal.

    records --build_sweep--> SweepCurves: Groups of comparable runs, each with a Curve for every system

Values with several seeds also use the per-example scores, if they exist. Values of settings are text as on the command
line ("128", "null", "[1,2]"), or "" if a system does not have the setting.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longsumbench.errors import UsageError, did_you_mean
from longsumbench.leaderboards import comparability
from longsumbench.leaderboards.learned import gate_rows
from longsumbench.leaderboards.seed_groups import (
    ResultRow,
    ScoresOfRuns,
    average_seeds,
    collect_runs,
    latest_per_seed,
)
from longsumbench.runs.record import RunRecord
from longsumbench.runs.run_names import collect_settings, name_runs

_MOST_KEYS = 2
NO_SETTING = ""  # value of a setting that a system does not have
_NULL = "null"

_SweptValues = tuple[str, ...]  # a value of each swept setting
_Settings = Mapping[str, str]  # full name → value


@dataclass(frozen=True)
class Curve:
    """A system: runs that differ only in the swept settings and their seed.

    Attributes:
        label: its model, and the settings that distinguish it from other curves of that model in its group.
        points: values of the swept settings → result; with a single point nothing was swept.
        settings: the settings that all its runs share and that affect their outcome.
    """

    label: str
    points: Mapping[_SweptValues, ResultRow]
    settings: _Settings

    @property
    def representative(self) -> RunRecord:
        """A run, for what all its runs have in common."""
        return next(iter(self.points.values())).representative

    @property
    def lacks(self) -> bool:
        """True if the system has none of the swept settings; it is then a reference line."""
        return not any(any(place) for place in self.points)

    def records(self) -> list[RunRecord]:
        """Return the runs of all points."""
        return collect_runs(self.points.values())


@dataclass(frozen=True)
class Group:
    """Comparable curves.

    Attributes:
        number: from 1; the first group is drawn. It is the largest, or the one with the wanted runs.
        curves: systems with a swept setting, the most points first.
        references: systems without one.
    """

    number: int
    curves: tuple[Curve, ...]
    references: tuple[Curve, ...]

    def all_curves(self) -> tuple[Curve, ...]:
        """Return the curves and the references."""
        return *self.curves, *self.references

    def rows(self) -> list[ResultRow]:
        """Return the points of all curves."""
        rows: list[ResultRow] = []
        for curve in self.all_curves():
            rows += curve.points.values()
        return rows

    def records(self) -> list[RunRecord]:
        """Return the runs of all curves."""
        return collect_runs(self.rows())


@dataclass(frozen=True)
class SweepCurves:
    """The curves of all runs on a dataset against one or two settings.

    Attributes:
        keys: full names of the settings ("model.page_size"); a curve of the first group varies each.
        groups: the drawn group comes first, groups without a swept curve last.
    """

    dataset: str
    keys: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def axis(self) -> int:
        """Index of the setting with the most values."""
        return max(range(len(self.keys)), key=lambda index: len(self.values(index)))

    def measures(self) -> list[str]:
        """Return the names of all measures: types of ROUGE, then others."""
        measures = dict.fromkeys(comparability.ROUGE_HEADINGS)
        for group in self.groups:
            for record in group.records():
                measures |= dict.fromkeys(record.evaluation.measures)
        return list(measures)

    def ranked_by(self) -> str:
        """Return the measure by which most runs of the first group are ranked."""
        names = [record.evaluation.ranked_by for record in self.groups[0].records()]
        return max(sorted(set(names)), key=names.count)

    def values(self, index: int) -> list[str]:
        """Return the values of a swept setting in the first group: numbers by size, then words."""
        values: set[str] = set()
        for curve in self.groups[0].curves:
            values.update(place[index] for place in curve.points)
        return sorted(values - {NO_SETTING}, key=_by_size)


_RunSettings = Sequence[tuple[RunRecord, _Settings]]  # of each run, those that affect its outcome


def build_sweep(
    dataset: str,
    records: Iterable[RunRecord],
    words: Sequence[str],
    scores: ScoresOfRuns | None = None,
    run_ids: Collection[str] = (),
) -> SweepCurves:
    """Return the curves of all finished runs on a dataset against one or two settings.

    `words` are the settings, as "model.page_size"; "model." may be left out. The group of the runs in `run_ids` comes
    first, even if others are larger.

    Raises:
        UsageError: there are more than two settings, no run has a setting, or no two runs differ in it alone.
    """
    if not 1 <= len(words) <= _MOST_KEYS:
        raise UsageError(
            f"--against takes one or two settings, and {len(words)} are given: {', '.join(words)}"
        )
    ordered = sorted(records, key=lambda record: record.run_id)
    runs = [(record, collect_settings(record)) for record in ordered]
    keys = tuple(_find_key(word, dataset, runs) for word in words)
    if len(set(keys)) < len(keys):
        raise UsageError(f"--against {keys[0]} is given twice: name another setting, or one alone")
    groups = _groups(runs, keys, run_ids)
    # Each setting must vary in the group that is drawn, or there is nothing to see
    for index, key in enumerate(keys):
        if not groups or not _any_varies(groups[0].curves, index):
            message = f"no two comparable runs on {dataset} differ only in {key}"
            raise UsageError(f"{message}; {_varied_settings(runs)}")
    return SweepCurves(dataset, keys, tuple(_measured(group, scores or {}) for group in groups))


def parse_number(value: str) -> float | None:
    """Return a setting's value as a number; None for a word."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _by_size(value: str) -> tuple[int, float, str]:
    """Return a sorting key of a setting's values: numbers by size, then words."""
    number = parse_number(value)
    return (1, 0.0, value) if number is None else (0, number, value)


def _all_keys(runs: _RunSettings) -> list[str]:
    return sorted(set().union(*(settings for _, settings in runs)))


def _find_key(word: str, dataset: str, runs: _RunSettings) -> str:
    """Return a setting's full name; raises UsageError if no run has it, or two sections have it."""
    keys = _all_keys(runs)
    for name in (word, f"model.{word}"):
        if name in keys:
            return name
    matches = [key for key in keys if key.partition(".")[2] == word]
    if len(matches) > 1:
        raise UsageError(f"--against {word} is ambiguous: write {' or '.join(matches)}")
    if matches:
        return matches[0]
    reason = "a curve is the mean over seeds"
    if word.rpartition(".")[2] != "seed":
        suggestion = did_you_mean(word, [*keys, *(key.partition(".")[2] for key in keys)])
        reason = f"no run on {dataset} has this setting, or it affects no outcome{suggestion}"
    raise UsageError(f"--against {word}: {reason}; {_varied_settings(runs)}")


def _varied_settings(runs: _RunSettings) -> str:
    varied = []
    for key in _all_keys(runs):
        if any(_any_varies(group.curves, 0) for group in _groups(runs, (key,))):
            varied.append(key)
    if not varied:
        return "comparable runs differ in no single setting"
    return f"comparable runs differ in: {', '.join(varied)}"


def _any_varies(curves: Iterable[Curve], index: int) -> bool:
    return any(len({place[index] for place in curve.points}) > 1 for curve in curves)


def _groups(
    runs: _RunSettings, keys: tuple[str, ...], run_ids: Collection[str] = ()
) -> list[Group]:
    """Return the groups of comparable runs that have one of the settings, without their numbers.

    Those with wanted runs, and large ones, come first.
    """
    conditions: dict[tuple[str, ...], list[tuple[RunRecord, _Settings]]] = {}
    for run in runs:
        conditions.setdefault(comparability.comparison_key(run[0]), []).append(run)
    groups = []
    for members in conditions.values():
        curves = _label_curves(_curves(members, keys), keys)
        swept = tuple(curve for curve in curves if not curve.lacks)
        if swept:
            groups.append(Group(0, swept, tuple(curve for curve in curves if curve.lacks)))
    # The order decides which group is drawn
    groups.sort(key=lambda group: _drawn_first(group, len(keys), run_ids))
    return [replace(group, number=number) for number, group in enumerate(groups, start=1)]


def _drawn_first(group: Group, num_keys: int, run_ids: Collection[str]) -> tuple[Any, ...]:
    """Return a sorting key of groups: the most varied settings, wanted runs, the most points, the most runs."""
    num_varied = sum(_any_varies(group.curves, index) for index in range(num_keys))
    own_ids: set[str] = set()
    for curve in group.curves:
        own_ids.update(record.run_id for record in curve.records())
    num_points = sum(len(curve.points) for curve in group.curves if len(curve.points) > 1)
    first_id = group.curves[0].representative.run_id
    return -num_varied, own_ids.isdisjoint(run_ids), -num_points, -len(group.records()), first_id


def _curves(members: _RunSettings, keys: tuple[str, ...]) -> list[Curve]:
    """Return the curves of comparable runs, labelled by their model."""
    # A curve is a model with all other settings equal
    systems: dict[tuple[str, str], list[tuple[RunRecord, _Settings]]] = {}
    for record, settings in members:
        shared = {key: value for key, value in settings.items() if key not in keys}
        name = (record.key.model, json.dumps(shared, sort_keys=True))
        systems.setdefault(name, []).append((record, settings))
    curves = []
    for (model, shared_settings), runs in systems.items():
        # A setting that is null in all runs is none that the system has
        known = [any(settings.get(key, _NULL) != _NULL for _, settings in runs) for key in keys]
        places: dict[_SweptValues, list[RunRecord]] = {}
        for record, settings in runs:
            values = []
            for key, is_known in zip(keys, known, strict=True):
                values.append(settings.get(key, NO_SETTING) if is_known else NO_SETTING)
            places.setdefault(tuple(values), []).append(record)
        ordered = sorted(places, key=lambda place: [_by_size(value) for value in place])
        points = {place: latest_per_seed(places[place]) for place in ordered}
        curves.append(Curve(model, points, json.loads(shared_settings)))
    return curves


def _label_curves(curves: Sequence[Curve], keys: tuple[str, ...]) -> tuple[Curve, ...]:
    """Name curves by what differs among those of their system, without the swept settings; longest curves first."""
    names = name_runs([curve.representative for curve in curves], keys)
    labelled = []
    for curve, name in zip(curves, names, strict=True):
        labelled.append(replace(curve, label=name.label))
    return tuple(sorted(labelled, key=lambda curve: (-len(curve.points), curve.label)))


def _measured(group: Group, scores: ScoresOfRuns) -> Group:
    """Add the numbers of all points, and whether their systems learned."""
    # Random's floor must be among the rows, so all points of a group are judged together
    rows = [average_seeds(point, scores) for point in group.rows()]
    learning = gate_rows(rows, scores)
    points = {row.key: replace(row, learned=learning[row.key]) for row in rows}

    def add_means(curve: Curve) -> Curve:
        rows_of_curve = {place: points[row.key] for place, row in curve.points.items()}
        return replace(curve, points=rows_of_curve)

    curves = tuple(map(add_means, group.curves))
    return replace(group, curves=curves, references=tuple(map(add_means, group.references)))
