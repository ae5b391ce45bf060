"""Curves of a sweep: the score of each system against one or two settings, all else that decides it being equal.

    records --sweep_of--> a Sweep: Groups of runs that may be compared, in each a Curve for every system

From records alone; where a value was run with several seeds, also from the scores of each example, if they are at hand.
A setting stands here as it is typed ("128", "null", "[1,2]"), and as "" where a system does not have it.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from longsumbench.api.config import LATER_SETTINGS
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, comparison_key, describe_difference
from longsumbench.leaderboards.curve_points import CurvePoint, SeedScores, average_seeds, latest_per_seed
from longsumbench.leaderboards.notes import HUB_NAME, describe_budget
from longsumbench.runs.record import SHORT_ID, RunRecord, ranked_by

_MOST_KEYS = 2
NO_SETTING = ""  # the setting of a system that does not have it
_NULL = "null"
_SPLITS = ("test", "validation", "train")
# of train and decode: they decide no outcome, or the seed, over which curves are means, or which examples were scored
_APART = ("seed", "device", "workers", "evidence", "reference_evidence", "limit")
_BUDGET = ("max_steps", "max_tokens", "max_minutes", "batch_size", "batch_words", "batch_tokens", "accumulation")
_MOST_DIFFERENCES = 3  # that a label tells

_Place = tuple[str, ...]  # a value of each swept setting
Settings = Mapping[str, str]  # full name → value, as typed


@dataclass(frozen=True)
class Curve:
    """A system: runs that differ in the swept settings and their seed alone.

    Attributes:
        label: its model, and what tells it from others of that model in its group.
        points: a swept place → what was measured there; at a single one, nothing was swept.
        settings: that all its runs share and that decide their outcome.
        follows: the settings that are null at some places and not at others, with the value they have there.
    """

    label: str
    points: Mapping[_Place, CurvePoint]
    settings: Settings
    follows: Settings

    @property
    def first(self) -> RunRecord:
        """One of its runs, which tells what all have in common."""
        return next(iter(self.points.values())).runs[0]

    @property
    def swept(self) -> bool:
        """Whether it was run at several places."""
        return len(self.points) > 1

    @property
    def lacks(self) -> bool:
        """Whether it has none of the swept settings: it is shown beside those that do."""
        return all(value == NO_SETTING for place in self.points for value in place)

    def records(self) -> Iterator[RunRecord]:
        """Yield its runs that count."""
        for point in self.points.values():
            yield from point.runs

    def best(self, kind: str) -> float:
        """Return the highest mean of a number; minus infinity where it was not measured."""
        return max((p.numbers[kind].mean for p in self.points.values() if kind in p.numbers), default=-np.inf)


@dataclass(frozen=True)
class Group:
    """Curves whose runs may be compared, and what may stand beside them.

    Attributes:
        number: from 1; the first one is drawn: the largest, or that of the runs which were asked for.
        curves: those that have a swept setting, the most points first.
        beside: those that do not: baselines, oracles, and systems that were trained under the same budget.
        told: what its runs have in common, and in what they differ from the first group's, in sentences without a stop.
    """

    number: int
    curves: tuple[Curve, ...]
    beside: tuple[Curve, ...]
    told: tuple[str, ...]

    def records(self) -> list[RunRecord]:
        """Return the runs that count."""
        return [record for curve in (*self.curves, *self.beside) for record in curve.records()]


@dataclass(frozen=True)
class SweepCurves:
    """What is known of one or two settings on a dataset.

    Attributes:
        dataset: its name.
        keys: full names of the settings ("model.page_size"); each is varied by a curve of the first group.
        groups: the one to be drawn first; those without a curve of several points at the end.
    """

    dataset: str
    keys: tuple[str, ...]
    groups: tuple[Group, ...]

    def kinds(self) -> list[str]:
        """Return all that was measured: types of ROUGE, then measures."""
        measured = {name: None for group in self.groups for record in group.records() for name in record.measures}
        return [*ROUGE_HEADINGS, *measured]

    def ranked_by(self) -> str:
        """Return what the runs of the first group are ranked by; where they disagree, most of them."""
        names = [ranked_by(record) for record in self.groups[0].records()]
        return max(sorted(set(names)), key=names.count)

    def values(self, index: int, group: Group | None = None) -> list[str]:
        """Return the values of a swept setting in a group, the first unless told otherwise: numbers by size first."""
        curves = (group or self.groups[0]).curves
        return sorted({place[index] for curve in curves for place in curve.points} - {NO_SETTING}, key=by_size)


@dataclass(frozen=True)
class _Settled:
    """A run and the settings that decide its outcome."""

    record: RunRecord
    settings: Settings

    def place(self, keys: Sequence[str]) -> _Place:
        return tuple(self.settings.get(key, NO_SETTING) for key in keys)

    def others(self, keys: Collection[str]) -> Settings:
        return {key: value for key, value in self.settings.items() if key not in keys}


def sweep_of(
    dataset: str,
    records: Iterable[RunRecord],
    words: Sequence[str],
    scores: SeedScores | None = None,
    wanted: Collection[str] = (),
) -> SweepCurves:
    """Return the curves of all finished runs on a dataset against one or two settings.

    Args:
        dataset: its name.
        records: of its runs, in any order.
        words: the settings, as "model.page_size", "decode.num_beams"; "model." may be left out.
        scores: returns a run's scores of each example, 0–1, or None where they are not at hand.
        wanted: ids of runs whose group comes before others that are larger.

    Raises:
        UsageError: more than two settings, one that no run has, or one in which no two runs differ, all else being
            equal; the line names those in which some do.
    """
    if not 1 <= len(words) <= _MOST_KEYS:
        raise UsageError(f"--against takes one or two settings, and {len(words)} are given: {', '.join(words)}")
    settled = _settled(records)
    keys = tuple(_key(word, dataset, settled) for word in words)
    if len(set(keys)) < len(keys):
        raise UsageError(f"--against {keys[0]} is given twice: name another setting, or one alone")
    groups = _groups(settled, keys, wanted)
    constant = [key for index, key in enumerate(keys) if not (groups and _varied(groups[0].curves, index))]
    if constant:
        told = f"no two comparable runs on {dataset} differ in {constant[0]}, all else being equal"
        raise UsageError(f"{told}; {_those_that_vary(settled)}")
    return SweepCurves(dataset, keys, tuple(_measured(group, scores or (lambda _: None)) for group in groups))


def by_size(value: str) -> tuple[int, float, str]:
    """Return a sorting key of a setting's values: numbers by size, then words."""
    found = parse_number(value)
    return (1, 0.0, value) if found is None else (0, found, value)


def parse_number(value: str) -> float | None:
    """Return the number that a setting's value is; None for a word."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if np.isfinite(found) else None


def format_value(value: str) -> str:
    """Return a setting's value for people: of a folder only its own name."""
    if "/" not in value or HUB_NAME.fullmatch(value):
        return value
    return PurePath(value).name or value


def short_name(key: str) -> str:
    """Return a setting's name without "model."."""
    return key.removeprefix("model.")


def format_typed(value: Any) -> str:
    """Return a setting's value as it is typed on the command line."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(format_typed, value))}]"
    return {"None": _NULL, "True": "true", "False": "false", "": '""'}.get(str(value), str(value))


def _settled(records: Iterable[RunRecord]) -> list[_Settled]:
    """Return the runs, ordered by their ids, with the settings that decide their outcome."""
    ordered = sorted(records, key=lambda record: record.run_id)
    later = {
        f"{section}.{key}"
        for record in ordered
        for section in ("train", "decode")
        for key in record.config.get(section, {})
        if key in LATER_SETTINGS
    }
    return [_Settled(record, _settings(record, later)) for record in ordered]


def _settings(record: RunRecord, later: Collection[str]) -> dict[str, str]:
    """Return the settings that decide a run's outcome; of one that neither learned nor decodes, those of its model.

    Args:
        record: of the run.
        later: settings that came when some records were already written, which have the value of what was done before.
    """
    learned = record.fit.get("steps") or record.fit.get("parameters")
    found = {f"model.{key}": format_typed(value) for key, value in record.config["model"].items() if key != "name"}
    for section in ("train", "decode") if learned else ():
        values = record.config.get(section, {})
        found |= {f"{section}.{key}": format_typed(value) for key, value in values.items() if key not in _APART}
        for name in later:
            if name.startswith(f"{section}."):
                found.setdefault(name, format_typed(LATER_SETTINGS[name.partition(".")[2]]))
    return found


def _key(word: str, dataset: str, settled: Sequence[_Settled]) -> str:
    """Return a setting's full name.

    Raises:
        UsageError: no run has it, or two sections do.
    """
    known = sorted({key for one in settled for key in one.settings})
    if word in known or f"model.{word}" in known:
        return word if word in known else f"model.{word}"
    found = [key for key in known if key.partition(".")[2] == word]
    if len(found) > 1:
        raise UsageError(f"--against {word} may mean {' or '.join(found)}: write one of them in full")
    if found:
        return found[0]
    if word.rpartition(".")[2] == "seed":
        raise UsageError(f"--against {word}: a curve is the mean over seeds; {_those_that_vary(settled)}")
    near = did_you_mean(word, [*known, *(key.partition(".")[2] for key in known)])
    told = f"--against {word}: no run on {dataset} has such a setting, or it decides no outcome{near}"
    raise UsageError(f"{told}; {_those_that_vary(settled)}")


def _those_that_vary(settled: Sequence[_Settled]) -> str:
    """Name the settings in which comparable runs differ, all else being equal."""
    keys = sorted({key for one in settled for key in one.settings})
    varied = [key for key in keys if any(_varied(group.curves, 0) for group in _groups(settled, (key,)))]
    if not varied:
        return "there is no setting in which any do"
    return f"those in which some do: {', '.join(varied)}"


def _varied(curves: Iterable[Curve], index: int) -> bool:
    return any(len({place[index] for place in curve.points}) > 1 for curve in curves)


def _groups(settled: Sequence[_Settled], keys: tuple[str, ...], wanted: Collection[str] = ()) -> list[Group]:
    """Return the groups of runs that have one of the settings, numbers not yet measured.

    The largest sweep comes first, of those that some runs are wanted of, or else of all.
    """
    conditions: dict[tuple[str, ...], list[_Settled]] = {}
    for one in settled:
        conditions.setdefault(comparison_key(one.record), []).append(one)
    found = []
    for members in conditions.values():
        curves = [curve for model in _by_model(members) for curve in _curves(model, keys)]
        budgets: dict[str, list[Curve]] = {}
        for curve in curves:
            if not curve.lacks:
                budgets.setdefault(_budget(curve), []).append(curve)
        for spent, own in budgets.items():
            beside = [curve for curve in curves if curve.lacks and (not spent or _budget(curve) in ("", spent))]
            found.append((own, beside))
    found.sort(key=lambda pair: _first(pair[0], pair[1], len(keys), wanted))
    first = found[0][0][0].first if found else None
    return [_group(place, own, beside, first) for place, (own, beside) in enumerate(found, start=1)]


def _by_model(members: Iterable[_Settled]) -> list[list[_Settled]]:
    models: dict[str, list[_Settled]] = {}
    for one in members:
        models.setdefault(one.record.model, []).append(one)
    return [models[name] for name in sorted(models)]


def _budget(curve: Curve) -> str:
    """Return what a system's training was given; nothing for one that was not trained.

    What is swept does not tell groups apart: it is not among the settings of a curve.
    """
    given = {f"train.{name}": curve.settings.get(f"train.{name}") for name in _BUDGET}
    return json.dumps(given) if any(given.values()) else ""


def _first(own: Sequence[Curve], beside: Sequence[Curve], num_keys: int, wanted: Collection[str]) -> tuple[Any, ...]:
    """Return a sorting key: who varies all that is swept, is wanted, in how many points, beside how many runs."""
    swept = [curve for curve in own if curve.swept]
    varied = [_varied(own, index) for index in range(num_keys)]
    first = own[0].first
    return (
        -sum(varied),
        all(record.run_id not in wanted for curve in own for record in curve.records()),
        -sum(len(curve.points) for curve in swept),
        -sum(1 for curve in (*own, *beside) for _ in curve.records()),
        _SPLITS.index(first.split) if first.split in _SPLITS else len(_SPLITS),
        -first.n,
        first.run_id,
    )


def _group(place: int, own: list[Curve], beside: list[Curve], first: RunRecord | None) -> Group:
    """Name the curves of a group, and say what it has in common; from the first group, in what it is another."""
    names = _labels([*own, *beside])
    named = [replace(curve, label=name) for curve, name in zip([*own, *beside], names, strict=True)]
    curves = sorted(named[: len(own)], key=lambda curve: (-len(curve.points), curve.label))
    others = sorted(named[len(own) :], key=lambda curve: curve.label)
    one = own[0].first
    told = [f"{one.split} split, {format_count(one.n, 'example')}"]
    told += [unlike] if first is not None and (unlike := describe_difference(one, first)) else []
    told += [describe_budget([record for curve in named for record in curve.records()]).rstrip(".")]
    return Group(place, tuple(curves), tuple(others), tuple(told))


def _curves(members: Sequence[_Settled], keys: tuple[str, ...]) -> list[Curve]:
    """Return the curves of a model's runs under one condition, numbers not yet measured."""
    follows = _following(members, keys)
    systems: dict[str, list[_Settled]] = {}
    for one in members:
        systems.setdefault(json.dumps(one.others({*keys, *follows}), sort_keys=True), []).append(one)
    found = []
    for runs in systems.values():
        places: dict[_Place, list[RunRecord]] = {}
        never = [all(one.place(keys)[index] in (_NULL, NO_SETTING) for one in runs) for index in range(len(keys))]
        for one in runs:
            place = tuple(NO_SETTING if no else value for no, value in zip(never, one.place(keys), strict=True))
            places.setdefault(place, []).append(one.record)
        ordered = sorted(places, key=lambda place: [by_size(value) for value in place])
        points = {place: latest_per_seed(places[place]) for place in ordered}
        apart = follows if len(points) > 1 else {}
        shared = {key: value for key, value in runs[0].others(keys).items() if key not in apart}
        found.append(Curve(runs[0].record.model, points, shared, apart))
    return found


def _following(members: Sequence[_Settled], keys: tuple[str, ...]) -> dict[str, str]:
    """Return the settings of a model that only some values of the swept ones leave a meaning (num_pages: of locality).

    They are null with these values and have one value with all others; what is swept are words: of numbers, none takes
    the meaning from another setting.
    """
    if all(parse_number(value) is not None for one in members for value in one.place(keys)):
        return {}
    found = {}
    for key in sorted({key for one in members for key in one.others(keys) if key.startswith("model.")}):
        at: dict[_Place, set[str]] = {}
        for one in members:
            at.setdefault(one.place(keys), set()).add(one.settings.get(key, NO_SETTING))
        values = set().union(*at.values()) - {_NULL}
        if (
            len(values) == 1
            and NO_SETTING not in values
            and {_NULL} in at.values()
            and all(len(v) == 1 for v in at.values())
        ):
            found[key] = values.pop()
    return found


def _labels(curves: Sequence[Curve]) -> list[str]:
    """Return short names: the model, and in what the curve differs from others of it, or the id of a run of it.

    Where they differ in many settings, those are told in which it is not as most of them.
    """
    names = []
    for curve in curves:
        same = [other.settings for other in curves if other.first.model == curve.first.model]
        keys = [key for key in curve.settings if len({other.get(key, NO_SETTING) for other in same}) > 1]
        if len(keys) >= _MOST_DIFFERENCES:
            keys = [
                key for key in keys if not _usual(curve.settings[key], [other.get(key, NO_SETTING) for other in same])
            ]
        keys = [key for key in keys if curve.settings[key] != _NULL] or keys  # which mostly follows from another
        told = [f"{key.partition('.')[2]}={format_value(curve.settings[key])}" for key in keys]
        names.append(" ".join([curve.first.model, *told[:_MOST_DIFFERENCES]]))
    return [
        name if names.count(name) == 1 else f"{name} [{curve.first.run_id[:SHORT_ID]}]"
        for name, curve in zip(names, curves, strict=True)
    ]


def _usual(value: str, values: Sequence[str]) -> bool:
    return 2 * values.count(value) > len(values)


def _measured(group: Group, scores: SeedScores) -> Group:
    """Put in what the runs measured."""

    def of(curve: Curve) -> Curve:
        return replace(curve, points={place: average_seeds(point, scores) for place, point in curve.points.items()})

    return replace(group, curves=tuple(map(of, group.curves)), beside=tuple(map(of, group.beside)))
