"""Curves of a sweep: the score of each system against one or two settings, with all other settings equal.

    records --sweep_of--> SweepCurves: Groups of comparable runs, each with a Curve for every system

Values with several seeds also use the per-example scores, if they exist. Values of settings are text as on the command
line ("128", "null", "[1,2]"), or "" if a system does not have the setting.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from longsumbench.core import Recipe, names_deciding
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import format_count
from longsumbench.leaderboards import comparability
from longsumbench.leaderboards.learned import judge_learning
from longsumbench.leaderboards.notes import checkpoint_name, describe_budget
from longsumbench.leaderboards.seed_groups import (
    ScoresOfRuns,
    SeedGroup,
    average_seeds,
    latest_per_seed,
)
from longsumbench.runs.record import SHORT_ID, RunRecord

_MOST_KEYS = 2
NO_SETTING = ""  # value of a setting that a system does not have
_NULL = "null"
_MOST_LABEL_SETTINGS = 3  # in a label

_SweptValues = tuple[str, ...]  # a value of each swept setting
SweptSettings = Mapping[str, str]  # full name → value


@dataclass(frozen=True)
class Curve:
    """A system: runs that differ only in the swept settings and their seed.

    Attributes:
        label: its model, and the settings that distinguish it from other curves of that model in its group.
        points: values of the swept settings → result; with a single point nothing was swept.
        settings: the settings that all its runs share and that affect their outcome.
        follows: settings that are null at some points, with their value at the other points.
    """

    label: str
    points: Mapping[_SweptValues, SeedGroup]
    settings: SweptSettings
    follows: SweptSettings

    @property
    def first(self) -> RunRecord:
        """A run, for what all its runs have in common."""
        return next(iter(self.points.values())).first

    @property
    def lacks(self) -> bool:
        """True if the system has none of the swept settings; it is then a reference line."""
        return not any(any(place) for place in self.points)

    def varies(self, index: int) -> bool:
        """Return True if its points have several values of a swept setting."""
        return len({place[index] for place in self.points}) > 1

    def records(self) -> list[RunRecord]:
        """Return the runs of all points."""
        records: list[RunRecord] = []
        for point in self.points.values():
            records += point.runs
        return records


@dataclass(frozen=True)
class Group:
    """Comparable curves.

    Attributes:
        number: from 1; the first group is drawn. It is the largest, or the one with the wanted runs.
        curves: systems with a swept setting, the most points first.
        references: systems without one: baselines, oracles, and systems trained with the same budget.
        summary: what its runs have in common, and how they differ from the first group; sentences without full stop.
    """

    number: int
    curves: tuple[Curve, ...]
    references: tuple[Curve, ...]
    summary: tuple[str, ...]

    def all_curves(self) -> tuple[Curve, ...]:
        """Return the curves and the references."""
        return *self.curves, *self.references

    def rows(self) -> list[SeedGroup]:
        """Return the points of all curves."""
        rows: list[SeedGroup] = []
        for curve in self.all_curves():
            rows += curve.points.values()
        return rows

    def records(self) -> list[RunRecord]:
        """Return the runs of all curves."""
        records: list[RunRecord] = []
        for curve in self.all_curves():
            records += curve.records()
        return records


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

    @property
    def extra(self) -> int | None:
        """Index of the other setting; None if there is none."""
        return 1 - self.axis if len(self.keys) > 1 else None

    def kinds(self) -> list[str]:
        """Return the names of all numbers: types of ROUGE, then measures."""
        kinds = dict.fromkeys(comparability.ROUGE_HEADINGS)
        for group in self.groups:
            for record in group.records():
                kinds |= dict.fromkeys(record.evaluation.measures)
        return list(kinds)

    def ranked_by(self) -> str:
        """Return the number by which most runs of the first group are ranked."""
        names = [record.evaluation.ranked_by for record in self.groups[0].records()]
        return max(sorted(set(names)), key=names.count)

    def values(self, index: int) -> list[str]:
        """Return the values of a swept setting in the first group: numbers by size, then words."""
        values: set[str] = set()
        for curve in self.groups[0].curves:
            values.update(place[index] for place in curve.points)
        return sorted(values - {NO_SETTING}, key=_by_size)


@dataclass(frozen=True)
class _Settled:
    """A run and the settings that affect its outcome."""

    record: RunRecord
    settings: SweptSettings

    def place(self, keys: Sequence[str]) -> _SweptValues:
        return tuple(self.settings.get(key, NO_SETTING) for key in keys)

    def without(self, keys: Collection[str]) -> SweptSettings:
        return {key: value for key, value in self.settings.items() if key not in keys}


def sweep_of(
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
    settled = [_Settled(record, comparability.settings_of(record)) for record in ordered]
    keys = tuple(_find_key(word, dataset, settled) for word in words)
    if len(set(keys)) < len(keys):
        raise UsageError(f"--against {keys[0]} is given twice: name another setting, or one alone")
    groups = _groups(settled, keys, run_ids)
    # Each setting must vary in the group that is drawn
    for index, key in enumerate(keys):
        if not groups or not _any_varies(groups[0].curves, index):
            message = f"no two comparable runs on {dataset} differ only in {key}"
            raise UsageError(f"{message}; {_varied_settings(settled)}")
    return SweepCurves(dataset, keys, tuple(_measured(group, scores or {}) for group in groups))


def parse_number(value: str) -> float | None:
    """Return a setting's value as a number; None for a word."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _by_size(value: str) -> tuple[int, float, str]:
    """Return a sorting key of a setting's values: numbers by size, then words."""
    number = parse_number(value)
    return (1, 0.0, value) if number is None else (0, number, value)


def short_name(key: str) -> str:
    """Return a setting's name without "model."."""
    return key.removeprefix("model.")


def _all_keys(settled: Sequence[_Settled]) -> list[str]:
    return sorted(set().union(*(run.settings for run in settled)))


def _find_key(word: str, dataset: str, settled: Sequence[_Settled]) -> str:
    """Return a setting's full name; raises UsageError if no run has it, or two sections have it."""
    keys = _all_keys(settled)
    for name in (word, f"model.{word}"):
        if name in keys:
            return name
    short_names = [key.partition(".")[2] for key in keys]
    matches = [key for key, name in zip(keys, short_names, strict=True) if name == word]
    if len(matches) > 1:
        raise UsageError(f"--against {word} is ambiguous: write {' or '.join(matches)}")
    if matches:
        return matches[0]
    reason = "a curve is the mean over seeds"
    if word.rpartition(".")[2] != "seed":
        suggestion = did_you_mean(word, [*keys, *short_names])
        reason = f"no run on {dataset} has this setting, or it affects no outcome{suggestion}"
    raise UsageError(f"--against {word}: {reason}; {_varied_settings(settled)}")


def _varied_settings(settled: Sequence[_Settled]) -> str:
    varied = []
    for key in _all_keys(settled):
        groups = _groups(settled, (key,))
        if any(_any_varies(group.curves, 0) for group in groups):
            varied.append(key)
    if not varied:
        return "comparable runs differ in no single setting"
    return f"comparable runs differ in: {', '.join(varied)}"


def _any_varies(curves: Iterable[Curve], index: int) -> bool:
    return any(curve.varies(index) for curve in curves)


def _groups(
    settled: Sequence[_Settled], keys: tuple[str, ...], run_ids: Collection[str] = ()
) -> list[Group]:
    """Return the groups of runs that have one of the settings, without their numbers; wanted and large groups first.

    Runs are comparable by texts and scoring. Of these, trained systems form a group for each budget, with the systems
    that have no budget, or the same.
    """
    conditions: dict[tuple[str, ...], list[_Settled]] = {}
    for run in settled:
        conditions.setdefault(comparability.comparison_key(run.record), []).append(run)
    groups = []
    for members in conditions.values():
        curves = _curves(members, keys)
        budgets: dict[str, list[Curve]] = {}
        for curve in curves:
            if not curve.lacks:
                budgets.setdefault(_budget(curve), []).append(curve)
        lacking = [(_budget(curve), curve) for curve in curves if curve.lacks]
        for spent, main in budgets.items():
            references = [curve for used, curve in lacking if not (spent and used) or used == spent]
            groups.append(Group(0, tuple(main), tuple(references), ()))
    groups.sort(key=lambda group: _drawn_first(group, len(keys), run_ids))
    return [_labelled(group, place, groups[0]) for place, group in enumerate(groups, start=1)]


def _budget(curve: Curve) -> str:
    """Return the training budget as JSON, without swept settings; empty if the system was not trained."""
    names = [f"train.{name}" for name in sorted(names_deciding(Recipe, "budget"))]
    budget = {name: curve.settings.get(name) for name in names}
    return json.dumps(budget) if any(budget.values()) else ""


def _drawn_first(group: Group, num_keys: int, run_ids: Collection[str]) -> tuple[Any, ...]:
    """Return a sorting key of groups: the most varied settings, wanted runs, the most points, the most runs."""
    num_varied = sum(_any_varies(group.curves, index) for index in range(num_keys))
    own_ids: set[str] = set()
    for curve in group.curves:
        own_ids.update(record.run_id for record in curve.records())
    num_points = sum(len(curve.points) for curve in group.curves if len(curve.points) > 1)
    first = group.curves[0].first
    return (
        -num_varied,
        own_ids.isdisjoint(run_ids),
        -num_points,
        -len(group.records()),
        comparability.SPLIT_ORDER.index(first.key.split),
        -first.evaluation.n,
        first.run_id,
    )


def _labelled(group: Group, number: int, drawn: Group) -> Group:
    """Add the number, the labels and the summary of a group."""
    names = iter(_curve_labels(group.all_curves()))
    curves = [replace(curve, label=next(names)) for curve in group.curves]
    references = [replace(curve, label=next(names)) for curve in group.references]
    curves.sort(key=lambda curve: (-len(curve.points), curve.label))
    references.sort(key=lambda curve: curve.label)
    first = group.curves[0].first
    summary = (
        f"{first.key.split} split, {format_count(first.evaluation.n, 'example')}",
        comparability.describe_difference(first, drawn.curves[0].first),
        describe_budget(group.records()).rstrip("."),
    )
    return Group(number, tuple(curves), tuple(references), tuple(filter(None, summary)))


def _curves(members: Sequence[_Settled], keys: tuple[str, ...]) -> list[Curve]:
    """Return the curves of comparable runs, without their labels."""
    models: dict[str, list[_Settled]] = {}
    for run in sorted(members, key=lambda run: run.record.key.model):
        models.setdefault(run.record.key.model, []).append(run)
    curves = []
    for runs in models.values():
        follows = _following(runs, keys)
        systems: dict[str, list[_Settled]] = {}
        for run in runs:
            same = json.dumps(run.without({*keys, *follows}), sort_keys=True)
            systems.setdefault(same, []).append(run)
        curves += [_curve(same_runs, keys, follows) for same_runs in systems.values()]
    return curves


def _curve(runs: Sequence[_Settled], keys: tuple[str, ...], follows: SweptSettings) -> Curve:
    known: set[str] = set()
    for run in runs:
        known.update(key for key in keys if run.settings.get(key, _NULL) != _NULL)
    places: dict[_SweptValues, list[RunRecord]] = {}
    for run in runs:
        # A setting that is null in all runs is none that the system has
        values = [run.settings.get(key, NO_SETTING) if key in known else NO_SETTING for key in keys]
        places.setdefault(tuple(values), []).append(run.record)
    ordered = sorted(places, key=lambda place: [_by_size(value) for value in place])
    points = {place: latest_per_seed(places[place]) for place in ordered}
    dependent = follows if len(points) > 1 else {}
    return Curve(runs[0].record.key.model, points, runs[0].without({*keys, *dependent}), dependent)


def _following(runs: Sequence[_Settled], keys: tuple[str, ...]) -> dict[str, str]:
    """Return the model's settings that are null at some points and equal at all others; none for numeric sweeps."""
    places = [run.place(keys) for run in runs]
    if not any(parse_number(value) is None for value in chain.from_iterable(places)):
        return {}
    settings = {}
    for key in _all_keys(runs):
        values = [run.settings.get(key, NO_SETTING) for run in runs]
        others = set(values) - {_NULL}
        # The place decides the value
        is_decided = len(set(zip(places, values, strict=True))) == len(set(places))
        is_followed = _NULL in values and len(others) == 1 and NO_SETTING not in others
        if key.startswith("model.") and key not in keys and is_decided and is_followed:
            settings[key] = others.pop()
    return settings


def _curve_labels(curves: Sequence[Curve]) -> list[str]:
    """Return short names: the model, and the settings (or the run id) that distinguish the curve from others.

    Of many settings, those are named that at most half of the model's curves have.
    """
    names = []
    for curve in curves:
        same = [
            other.settings for other in curves if other.first.key.model == curve.first.key.model
        ]
        counts = {}  # of the curves with the same value
        for key, value in curve.settings.items():
            count = [settings.get(key, NO_SETTING) for settings in same].count(value)
            if count < len(same):
                counts[key] = count
        keys = list(counts)
        if len(keys) >= _MOST_LABEL_SETTINGS:
            keys = [key for key in keys if 2 * counts[key] <= len(same)]
        keys = [key for key in keys if curve.settings[key] != _NULL] or keys
        parts = [curve.first.key.model]
        for key in keys[:_MOST_LABEL_SETTINGS]:
            parts.append(f"{key.partition('.')[2]}={checkpoint_name(curve.settings[key])}")
        names.append(" ".join(parts))
    ids = [f" [{curve.first.run_id[:SHORT_ID]}]" for curve in curves]
    return [
        name if names.count(name) == 1 else name + run_id
        for name, run_id in zip(names, ids, strict=True)
    ]


def _measured(group: Group, scores: ScoresOfRuns) -> Group:
    """Add the numbers of all points, and whether their systems learned."""
    rows = [average_seeds(point, scores) for point in group.rows()]
    learning = judge_learning(rows, scores)
    points = {row.key: replace(row, learned=learning[row.key]) for row in rows}

    def measured(curve: Curve) -> Curve:
        rows_of_curve = {place: points[row.key] for place, row in curve.points.items()}
        return replace(curve, points=rows_of_curve)

    curves = tuple(map(measured, group.curves))
    return replace(group, curves=curves, references=tuple(map(measured, group.references)))
