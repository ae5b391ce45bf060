"""What the picture of a sweep shows: an axis, a line for each system, what stands beside them, and what is said of it.

    Sweep --layout_of--> Layout --`sweep_picture.draw_layout`--> PNG, SVG

Of two settings, the one with more values is the axis; of the other, each value has a plot of its own, or a line where a
single system is swept, or where there are too many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import log2
from statistics import pstdev

from longsumbench.errors import UnknownName, UsageError
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.curve_points import RANGE, RESAMPLED, Estimate
from longsumbench.leaderboards.curves import NO_SETTING, Group, SweepCurves, format_value, parse_number, short_name
from longsumbench.leaderboards.notes import PLANTED, caution
from longsumbench.runs.record import SHORT_ID

MOST_CURVES = 12  # those with the most points, then the best ones, are drawn
_MOST_PLOTS = 4
_MOST_GROUPS = 3  # that a note names, of those that are not drawn
_TICK_ROOM = 0.075  # of a plot's width, for the name of a tick of five characters
_LONG_NUMBER = 8  # characters, above which a tick is named by four digits


@dataclass(frozen=True)
class CurveLine:
    """What is drawn of a system, or of one of its values of the second setting.

    Attributes:
        label: its name.
        plots: for each plot, value on the axis → what was measured.
        flat: for each plot, what was measured where the system does not have the axis's setting.
    """

    label: str
    plots: list[dict[str, Estimate]]
    flat: list[Estimate | None]

    def numbers(self) -> list[Estimate]:
        """Return all that was measured."""
        return [one for plot in self.plots for one in plot.values()] + [one for one in self.flat if one]


@dataclass(frozen=True)
class ReferenceLine:
    """A horizontal line across all plots: a system that does not have the settings."""

    label: str
    number: Estimate
    oracle: bool


@dataclass(frozen=True)
class Axis:
    """The horizontal axis.

    Attributes:
        name: of the setting.
        values: on it, as typed, in their order.
        places: value → where it stands.
        words: whether they are evenly spaced words.
    """

    name: str
    values: Sequence[str]
    places: Mapping[str, float] = field(default_factory=dict)
    words: bool = False

    @classmethod
    def of(cls, name: str, values: Sequence[str]) -> "Axis":
        """Place values: words and null evenly, numbers by size or, where these are spaced more evenly, logarithms."""
        numbers = [parse_number(value) for value in values]
        known = [one for one in numbers if one is not None]
        if len(known) < len(numbers):
            return cls(name, values, {value: float(place) for place, value in enumerate(values)}, words=True)
        if known[0] > 0 and len(known) > 1:
            logarithms = [log2(one) for one in known]
            if len(known) == 2 or _unevenness(logarithms) <= _unevenness(known):
                known = logarithms
        return cls(name, values, dict(zip(values, known, strict=True)))

    @property
    def ends(self) -> tuple[float, float]:
        """Where it begins and ends."""
        low, high = min(self.places.values()), max(self.places.values())
        room = 0.5 if self.words else 0.09 * (high - low) or 0.5
        return low - room, high + room

    def ticks(self) -> list[str]:
        """Return the values that are named: all for which there is room."""
        left, right = self.ends
        named: list[str] = []
        for value in self.values:
            room = _TICK_ROOM * (right - left) * max(1.0, len(tick_name(value)) / 5)
            if not named or self.places[value] - self.places[named[-1]] >= room or self.words:
                named.append(value)
        return named


def tick_name(value: str) -> str:
    """Return a value as it stands at the axis: a fraction of many digits, as a search tries them, is rounded."""
    found = parse_number(value)
    if found is None or found.is_integer() or len(value) <= _LONG_NUMBER:
        return format_value(value)
    return f"{found:.4g}"


def _unevenness(places: Sequence[float]) -> float:
    """Return how much the distances of neighbours differ: their standard deviation over their mean."""
    steps = [high - low for low, high in pairwise(places)]
    return pstdev(steps) * len(steps) / sum(steps)


@dataclass(frozen=True)
class Layout:
    """All that is drawn.

    Attributes:
        title: what is plotted.
        told: what all runs have in common, in sentences.
        notes: what is to be said below.
        measured: the vertical axis, with its unit.
        axis: the horizontal one.
        headings: over each of the plots; a single empty one of a plot alone.
        lines: the best first, at most `MOST_CURVES`.
        beside: what stands beside them.
    """

    title: str
    told: tuple[str, ...]
    notes: tuple[str, ...]
    measured: str
    axis: Axis
    headings: tuple[str, ...]
    lines: tuple[CurveLine, ...]
    beside: tuple[ReferenceLine, ...]


def layout_of(sweep: SweepCurves, kind: str | None = None) -> Layout:
    """Return what is drawn of the first group of a sweep.

    Args:
        sweep: what is known.
        kind: a type of ROUGE, or a measure; None: the one by which runs are ranked.

    Raises:
        UsageError: the number is unknown, or no curve has it.
    """
    kind = kind or sweep.ranked_by()
    group = sweep.groups[0]
    _check_kind(kind, sweep, group)
    axis, other = _roles(sweep)
    values = sweep.values(other) if other is not None and _in_plots(sweep, other) else [NO_SETTING]
    lines = _lines(sweep, kind, axis, other, values)
    return Layout(
        f"{sweep.dataset}: {_name_of(kind)} against {' and '.join(map(short_name, sweep.keys))}",
        group.told,
        tuple(_notes(sweep, kind, len(lines))),
        f"{_name_of(kind)} ({_unit_of(kind, sweep)})",
        Axis.of(short_name(sweep.keys[axis]), sweep.values(axis)),
        tuple(
            "" if value == NO_SETTING or other is None else f"{short_name(sweep.keys[other])}={format_value(value)}"
            for value in values
        ),
        tuple(lines[:MOST_CURVES]),
        tuple(_beside(group, kind)),
    )


def _beside(group: Group, kind: str) -> list[ReferenceLine]:
    """Return what stands beside the curves: of a model with several runs there, the best."""
    models: dict[tuple[str, bool], list[tuple[str, Estimate]]] = {}
    for curve in group.beside:
        for point in curve.points.values():
            if kind in point.numbers:
                same = models.setdefault((curve.first.model, curve.first.oracle), [])
                same.append((curve.label, point.numbers[kind]))
    shown_of_each = []
    for (model, oracle), same in models.items():
        label, best = max(same, key=lambda one: one[1].mean)
        shown_of_each.append(ReferenceLine(label if len(same) == 1 else f"{model} (best of {len(same)})", best, oracle))
    return shown_of_each


def _check_kind(kind: str, sweep: SweepCurves, group: Group) -> None:
    """Look whether a number can be drawn.

    Raises:
        UsageError: it is unknown, or no curve has it at two places.
    """
    if kind not in sweep.kinds():
        raise UnknownName("measure", kind, sweep.kinds())
    drawable = [
        name
        for name in sweep.kinds()
        if any(sum(name in point.numbers for point in curve.points.values()) > 1 for curve in group.curves)
    ]
    if kind not in drawable:
        told = f"--kind {kind} was not measured by runs that differ in {' and '.join(sweep.keys)}"
        raise UsageError(f"{told}; these were: {', '.join(drawable)}")


def _roles(sweep: SweepCurves) -> tuple[int, int | None]:
    """Return which setting is the axis, the one with more values, and which the other one is, if there are two."""
    if len(sweep.keys) == 1:
        return 0, None
    axis = 0 if len(sweep.values(0)) >= len(sweep.values(1)) else 1
    return axis, 1 - axis


def _in_plots(sweep: SweepCurves, other: int) -> bool:
    """Tell whether the values of the second setting have a plot each: several systems vary it, and not in many."""
    varying = sum(len({place[other] for place in curve.points}) > 1 for curve in sweep.groups[0].curves)
    return varying > 1 and len(sweep.values(other)) <= _MOST_PLOTS


def _lines(sweep: SweepCurves, kind: str, axis: int, other: int | None, plots: Sequence[str]) -> list[CurveLine]:
    """Return what is drawn of the first group's curves, the most points first, then the best.

    Args:
        sweep: what is known.
        kind: the number that is drawn.
        axis: which of the settings is the axis.
        other: which is the other one, if there is one.
        plots: the values of the other one that have a plot each; a single `LACKS` where they have lines.
    """
    found: list[CurveLine] = []
    for curve in sweep.groups[0].curves:
        lines: dict[str, CurveLine] = {}
        for place, point in curve.points.items():
            if kind not in point.numbers:
                continue
            value = NO_SETTING if other is None else place[other]
            named = f"{curve.label} {_with_value(sweep, other, value if plots == [NO_SETTING] else NO_SETTING)}".strip()
            line = lines.setdefault(named, CurveLine(named, [{} for _ in plots], [None for _ in plots]))
            for index, plot in enumerate(plots):
                if NO_SETTING not in (plot, value) and plot != value:
                    continue
                if place[axis] == NO_SETTING:
                    line.flat[index] = point.numbers[kind]
                else:
                    line.plots[index][place[axis]] = point.numbers[kind]
        found += lines.values()
    return sorted(found, key=lambda one: (-len(one.numbers()), -max(n.mean for n in one.numbers()), one.label))


def _with_value(sweep: SweepCurves, other: int | None, value: str) -> str:
    """Return a value of the second setting with its name; nothing where there is none."""
    return "" if other is None or value == NO_SETTING else f"{short_name(sweep.keys[other])}={format_value(value)}"


def _notes(sweep: SweepCurves, kind: str, num_lines: int) -> list[str]:
    """Say what whiskers are, what was left out of the picture, and what the picture is good for."""
    group, *rest = sweep.groups
    points = [point for curve in (*group.curves, *group.beside) for point in curve.points.values()]
    ways = {point.interval for point in points}
    told = "Whiskers, ±: 95 % intervals over examples"
    told += "; of several seeds over examples and seeds" if RESAMPLED in ways else ""
    told += "; of several seeds from the lowest end to the highest" if RANGE in ways else ""
    told += ". Dashed: oracles, which saw the references" if any(one.first.oracle for one in group.beside) else ""
    notes = [f"{told}."]
    follows = {key: value for curve in group.curves for key, value in curve.follows.items()}
    axes, verb = " and ".join(map(short_name, sweep.keys)), "gives" if len(sweep.keys) == 1 else "give"
    notes += [
        f"{short_name(key)} is {format_value(value)} or, where {axes} {verb} it no meaning, null."
        for key, value in follows.items()
    ]
    if num_lines > MOST_CURVES:
        notes.append(f"{MOST_CURVES} of {num_lines} lines, those with the most points; the others stand in the CSV.")
    if missing := [run.run_id[:SHORT_ID] for point in points if kind not in point.numbers for run in point.runs]:
        notes.append(f"{kind} was not measured for {', '.join(missing)}.")
    if repeated := [run.run_id[:SHORT_ID] for point in points for run in point.repeated]:
        notes.append(f"Left out for later runs with the same settings and seed: {', '.join(repeated)}.")
    if rest:
        named = [_told_apart(one, group) for one in rest[:_MOST_GROUPS]]
        more = f"; and {len(rest) - _MOST_GROUPS} more" if len(rest) > _MOST_GROUPS else ""
        notes.append(f"Not comparable with these, in the CSV alone: {'; '.join(named)}{more}.")
    return notes + [told for told in [caution(group.records())] if told]


def _told_apart(group: Group, first: Group) -> str:
    """Say whose the curves of a group are, and in what its runs differ from the first one's."""
    unlike = [line for line in group.told if line not in first.told]
    return f"{', '.join(curve.label for curve in group.curves)} ({'; '.join(unlike)})"


def _name_of(kind: str) -> str:
    if kind in ROUGE_HEADINGS:
        return f"ROUGE-{kind.removeprefix('rouge')} F1"
    return "planted facts stated right" if kind == PLANTED else kind


def _unit_of(kind: str, sweep: SweepCurves) -> str:
    units = {name: unit for group in sweep.groups for run in group.records() for name, unit in run.units.items()}
    return units.get(kind, "%" if kind == PLANTED else "0–100")
