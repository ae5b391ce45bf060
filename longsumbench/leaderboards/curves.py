"""Curves of a sweep: the score of each system against one or two settings, with all other settings equal.

    records --sweep_of--> SweepCurves: Groups of comparable runs, each with a Curve for every system

Values with several seeds also use the per-example scores, if they exist. Values of settings are text as on the command
line ("128", "null", "[1,2]"), or "" if a system does not have the setting.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
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
        return next(iter(self.points.values())).runs[0]

    @property
    def swept(self) -> bool:
        """True if it has several points."""
        return len(self.points) > 1

    @property
    def lacks(self) -> bool:
        """True if the system has none of the swept settings; it is then a reference line."""
        return all(value == NO_SETTING for place in self.points for value in place)

    def records(self) -> Iterator[RunRecord]:
        """Yield the runs of all points."""
        for point in self.points.values():
            yield from point.runs

    def best(self, kind: str) -> float:
        """Return the highest mean of a number; minus infinity if it was not measured."""
        return max(
            (p.numbers[kind].mean for p in self.points.values() if kind in p.numbers),
            default=-np.inf,
        )


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

    def records(self) -> list[RunRecord]:
        """Return the runs of all curves."""
        return [record for curve in (*self.curves, *self.references) for record in curve.records()]


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

    def kinds(self) -> list[str]:
        """Return the names of all numbers: types of ROUGE, then measures."""
        measured = {
            name: None
            for group in self.groups
            for record in group.records()
            for name in record.evaluation.measures
        }
        return [*comparability.ROUGE_HEADINGS, *measured]

    def ranked_by(self) -> str:
        """Return the number by which most runs of the first group are ranked."""
        names = [record.evaluation.ranked_by for record in self.groups[0].records()]
        return max(sorted(set(names)), key=names.count)

    def values(self, index: int, group: Group | None = None) -> list[str]:
        """Return the values of a swept setting in a group (default: the first): numbers by size, then words."""
        curves = (group or self.groups[0]).curves
        return sorted(
            {place[index] for curve in curves for place in curve.points} - {NO_SETTING}, key=by_size
        )


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
    settled = [
        _Settled(record, comparability.settings_of(record))
        for record in sorted(records, key=lambda record: record.run_id)
    ]
    keys = tuple(_key(word, dataset, settled) for word in words)
    if len(set(keys)) < len(keys):
        raise UsageError(f"--against {keys[0]} is given twice: name another setting, or one alone")
    groups = _groups(settled, keys, run_ids)
    constant = [
        key for index, key in enumerate(keys) if not (groups and _varied(groups[0].curves, index))
    ]
    if constant:
        message = f"no two comparable runs on {dataset} differ only in {constant[0]}"
        raise UsageError(f"{message}; {_varied_settings(settled)}")
    return SweepCurves(dataset, keys, tuple(_measured(group, scores or {}) for group in groups))


def by_size(value: str) -> tuple[int, float, str]:
    """Return a sorting key of a setting's values: numbers by size, then words."""
    number = parse_number(value)
    return (1, 0.0, value) if number is None else (0, number, value)


def parse_number(value: str) -> float | None:
    """Return a setting's value as a number; None for a word."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def short_name(key: str) -> str:
    """Return a setting's name without "model."."""
    return key.removeprefix("model.")


def _key(word: str, dataset: str, settled: Sequence[_Settled]) -> str:
    """Return a setting's full name; raises UsageError if no run has it, or two sections have it."""
    keys = sorted({key for run in settled for key in run.settings})
    if word in keys or f"model.{word}" in keys:
        return word if word in keys else f"model.{word}"
    matches = [key for key in keys if key.partition(".")[2] == word]
    if len(matches) > 1:
        raise UsageError(f"--against {word} is ambiguous: write {' or '.join(matches)}")
    if matches:
        return matches[0]
    if word.rpartition(".")[2] == "seed":
        raise UsageError(
            f"--against {word}: a curve is the mean over seeds; {_varied_settings(settled)}"
        )
    suggestion = did_you_mean(word, [*keys, *(key.partition(".")[2] for key in keys)])
    message = f"--against {word}: no run on {dataset} has this setting, or it affects no outcome{suggestion}"
    raise UsageError(f"{message}; {_varied_settings(settled)}")


def _varied_settings(settled: Sequence[_Settled]) -> str:
    keys = sorted({key for run in settled for key in run.settings})
    varied = [
        key for key in keys if any(_varied(group.curves, 0) for group in _groups(settled, (key,)))
    ]
    if not varied:
        return "comparable runs differ in no single setting"
    return f"comparable runs differ in: {', '.join(varied)}"


def _varied(curves: Iterable[Curve], index: int) -> bool:
    return any(len({place[index] for place in curve.points}) > 1 for curve in curves)


def _groups(
    settled: Sequence[_Settled], keys: tuple[str, ...], run_ids: Collection[str] = ()
) -> list[Group]:
    """Return the groups of runs that have one of the settings, without their numbers; wanted and large groups first."""

    def model_of(run: _Settled) -> str:
        return run.record.key.model

    conditions: dict[tuple[str, ...], list[_Settled]] = {}
    for run in settled:
        conditions.setdefault(comparability.comparison_key(run.record), []).append(run)
    pairs = []
    for members in conditions.values():
        curves = [
            curve
            for _, runs in groupby(sorted(members, key=model_of), model_of)
            for curve in _curves([*runs], keys)
        ]
        budgets: dict[str, list[Curve]] = {}
        for curve in curves:
            if not curve.lacks:
                budgets.setdefault(_budget(curve), []).append(curve)
        for spent, main in budgets.items():
            references = [
                curve
                for curve in curves
                if curve.lacks and (not spent or _budget(curve) in ("", spent))
            ]
            pairs.append((main, references))
    pairs.sort(key=lambda pair: _first(pair[0], pair[1], len(keys), run_ids))
    first = pairs[0][0][0].first if pairs else None
    return [
        _group(place, main, references, first)
        for place, (main, references) in enumerate(pairs, start=1)
    ]


def _budget(curve: Curve) -> str:
    """Return the training budget as JSON, without swept settings; empty if the system was not trained."""
    budget = {
        f"train.{name}": curve.settings.get(f"train.{name}")
        for name in sorted(names_deciding(Recipe, "budget"))
    }
    return json.dumps(budget) if any(budget.values()) else ""


def _first(
    main: Sequence[Curve], references: Sequence[Curve], num_keys: int, run_ids: Collection[str]
) -> tuple[Any, ...]:
    """Return a sorting key of groups: the most varied settings, wanted runs, the most points, the most runs."""
    swept = [curve for curve in main if curve.swept]
    varied = [_varied(main, index) for index in range(num_keys)]
    first = main[0].first
    return (
        -sum(varied),
        all(record.run_id not in run_ids for curve in main for record in curve.records()),
        -sum(len(curve.points) for curve in swept),
        -sum(1 for curve in (*main, *references) for _ in curve.records()),
        comparability.SPLIT_ORDER.index(first.key.split),
        -first.evaluation.n,
        first.run_id,
    )


def _group(
    place: int, main: list[Curve], references: list[Curve], first: RunRecord | None
) -> Group:
    names = _curve_labels([*main, *references])
    labelled = [
        replace(curve, label=name) for curve, name in zip([*main, *references], names, strict=True)
    ]
    curves = sorted(labelled[: len(main)], key=lambda curve: (-len(curve.points), curve.label))
    labelled_references = sorted(labelled[len(main) :], key=lambda curve: curve.label)
    run = main[0].first
    lines = [f"{run.key.split} split, {format_count(run.evaluation.n, 'example')}"]
    lines += (
        [unlike]
        if first is not None and (unlike := comparability.describe_difference(run, first))
        else []
    )
    lines += [
        describe_budget([record for curve in labelled for record in curve.records()]).rstrip(".")
    ]
    return Group(place, tuple(curves), tuple(labelled_references), tuple(lines))


def _curves(members: Sequence[_Settled], keys: tuple[str, ...]) -> list[Curve]:
    follows = _following(members, keys)
    systems: dict[str, list[_Settled]] = {}
    for run in members:
        systems.setdefault(json.dumps(run.without({*keys, *follows}), sort_keys=True), []).append(
            run
        )
    curves = []
    for runs in systems.values():
        places: dict[_SweptValues, list[RunRecord]] = {}
        never = [
            all(run.place(keys)[index] in (_NULL, NO_SETTING) for run in runs)
            for index in range(len(keys))
        ]
        for run in runs:
            place = tuple(
                NO_SETTING if no else value
                for no, value in zip(never, run.place(keys), strict=True)
            )
            places.setdefault(place, []).append(run.record)
        ordered = sorted(places, key=lambda place: [by_size(value) for value in place])
        points = {place: latest_per_seed(places[place]) for place in ordered}
        dependent = follows if len(points) > 1 else {}
        shared = {
            key: value for key, value in runs[0].without(keys).items() if key not in dependent
        }
        curves.append(Curve(runs[0].record.key.model, points, shared, dependent))
    return curves


def _following(members: Sequence[_Settled], keys: tuple[str, ...]) -> dict[str, str]:
    """Return the model's settings that are null at some points and equal at all others; none for numeric sweeps."""
    if all(parse_number(value) is not None for run in members for value in run.place(keys)):
        return {}
    settings = {}
    for key in sorted(
        {key for run in members for key in run.without(keys) if key.startswith("model.")}
    ):
        at: dict[_SweptValues, set[str]] = {}
        for run in members:
            at.setdefault(run.place(keys), set()).add(run.settings.get(key, NO_SETTING))
        values = set().union(*at.values()) - {_NULL}
        if (
            len(values) == 1
            and NO_SETTING not in values
            and {_NULL} in at.values()
            and all(len(v) == 1 for v in at.values())
        ):
            settings[key] = values.pop()
    return settings


def _curve_labels(curves: Sequence[Curve]) -> list[str]:
    """Return short names: the model, and the settings (or the run id) that distinguish the curve from others."""
    names = []
    for curve in curves:
        same = [item.settings for item in curves if item.first.key.model == curve.first.key.model]
        keys = [
            key for key in curve.settings if len({item.get(key, NO_SETTING) for item in same}) > 1
        ]
        if len(keys) >= _MOST_LABEL_SETTINGS:
            keys = [
                key
                for key in keys
                if 2 * [item.get(key, NO_SETTING) for item in same].count(curve.settings[key])
                <= len(same)
            ]
        keys = [key for key in keys if curve.settings[key] != _NULL] or keys
        values = [f"{key.partition('.')[2]}={checkpoint_name(curve.settings[key])}" for key in keys]
        names.append(" ".join([curve.first.key.model, *values[:_MOST_LABEL_SETTINGS]]))
    return [
        name if names.count(name) == 1 else f"{name} [{curve.first.run_id[:SHORT_ID]}]"
        for name, curve in zip(names, curves, strict=True)
    ]


def _measured(group: Group, scores: ScoresOfRuns) -> Group:
    """Add the numbers of all points, and whether their systems learned."""
    curves = (*group.curves, *group.references)
    groups = chain.from_iterable(curve.points.values() for curve in curves)
    rows = [average_seeds(point, scores) for point in groups]
    learning = judge_learning(rows, scores)
    points = {row.key: replace(row, learned=learning[row.key]) for row in rows}

    def measured(curve: Curve) -> Curve:
        return replace(
            curve, points={place: points[point.key] for place, point in curve.points.items()}
        )

    return replace(
        group,
        curves=tuple(map(measured, group.curves)),
        references=tuple(map(measured, group.references)),
    )
