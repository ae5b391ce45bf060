"""The picture and the CSV file of a sweep: a line with a band per system, and its name at the end.

    Results --update_curves--> <dataset>-<setting>[-<second>].csv, .png, .svg
    SweepCurves --layout_of--> Layout: an axis, a line per system, reference lines and notes --draw_layout--> PNG, SVG

With two settings, the one with more values is the axis. Each value of the other one has a plot. It has a line instead
if only one system is swept, or if there are too many values. The same records give the same bytes, with the same
release of matplotlib.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from math import isnan, log2
from pathlib import Path
from statistics import pstdev
from typing import Any

from longsumbench.errors import UnknownName, UsageError
from longsumbench.leaderboards.columns import how_to_compute
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.curves import (
    NO_SETTING,
    Curve,
    Group,
    SweepCurves,
    parse_number,
    short_name,
    sweep_of,
)
from longsumbench.leaderboards.notes import (
    PLANTED,
    caution,
    checkpoint_name,
    describe_intervals,
    describe_mark,
    join,
    shorten_list,
)
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import source_seen
from longsumbench.runs.results import Results
from longsumbench.views.figures import (
    GREY,
    Level,
    Panel,
    PanelLine,
    PanelRow,
    Series,
    draw_panels,
    system_styles,
)
from longsumbench.views.tables import csv_text, with_bounds

MOST_CURVES = 6  # lines with the most points, then the best ones, are drawn
_MOST_PLOTS = 4
_TICK_ROOM = 0.12  # share of the picture's width for a tick label of five characters
_LONG_NUMBER = 8  # characters; longer tick labels are rounded to four digits


@dataclass(frozen=True)
class CurveLine:
    """The line of a system, or of a system with one value of the second setting.

    Attributes:
        plots: for each plot, value on the axis → number.
        flat: for each plot, the number of the system without the axis's setting; drawn as a horizontal line.
        hollow: place of a plot → value at which the system is not shown to have learned → word that says why.
    """

    model: str
    label: str
    plots: list[dict[str, Estimate]]
    flat: list[Estimate | None]
    hollow: dict[int, dict[str, str]] = field(default_factory=dict)

    def numbers(self) -> list[Estimate]:
        """Return all numbers of the line."""
        return [number for plot in self.plots for number in plot.values()] + [
            number for number in self.flat if number
        ]

    def words(self) -> list[str]:
        """Return a word for each number of a system that is not shown to have learned."""
        return list(chain.from_iterable(values.values() for values in self.hollow.values()))


@dataclass(frozen=True)
class Axis:
    """The horizontal axis.

    Attributes:
        words: True if the values are evenly spaced words.
    """

    name: str
    values: Sequence[str]
    places: Mapping[str, float] = field(default_factory=dict)
    words: bool = False

    @classmethod
    def of(cls, name: str, values: Sequence[str]) -> "Axis":
        """Position the values: words and null evenly, numbers on the more even of a linear and a logarithmic scale."""
        numbers = [parse_number(value) for value in values]
        positions = [number for number in numbers if number is not None]
        if len(positions) < len(numbers):
            return cls(
                name,
                values,
                {value: float(place) for place, value in enumerate(values)},
                words=True,
            )
        if positions[0] > 0 and len(positions) > 1:
            logarithms = [log2(number) for number in positions]
            if len(positions) == 2 or _unevenness(logarithms) <= _unevenness(positions):
                positions = logarithms
        return cls(name, values, dict(zip(values, positions, strict=True)))

    @property
    def ends(self) -> tuple[float, float]:
        """The limits of the axis."""
        low, high = min(self.places.values()), max(self.places.values())
        room = 0.5 if self.words else 0.09 * (high - low) or 0.5
        return low - room, high + room

    def ticks(self, num_plots: int = 1) -> list[str]:
        """Return the values that have room for a label, with so many plots side by side."""
        low, high = self.ends
        labelled: list[str] = []
        for value in self.values:
            room = num_plots * _TICK_ROOM * (high - low) * max(1.0, len(tick_name(value)) / 5)
            if not labelled or self.places[value] - self.places[labelled[-1]] >= room or self.words:
                labelled.append(value)
        return labelled


def tick_name(value: str) -> str:
    """Return the tick label of a value; long fractions are rounded."""
    number = parse_number(value)
    if number is None or number.is_integer() or len(value) <= _LONG_NUMBER:
        return checkpoint_name(value)
    return f"{number:.4g}"


def _unevenness(places: Sequence[float]) -> float:
    """Return the coefficient of variation of the distances between neighbours."""
    steps = [high - low for low, high in pairwise(places)]
    return pstdev(steps) * len(steps) / sum(steps)


@dataclass(frozen=True)
class Layout:
    """The content of a picture.

    Attributes:
        summary: what all runs have in common, in sentences; shown below the title.
        measured: label of the vertical axis, with its unit.
        headings: a heading per plot; one empty heading for a single plot.
        lines: best first, at most `MOST_CURVES`.
        references: systems without the swept settings, in all plots; oracles are dashed.
    """

    title: str
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    measured: str
    axis: Axis
    headings: tuple[str, ...]
    lines: tuple[CurveLine, ...]
    references: tuple[Level, ...]


def layout_of(sweep: SweepCurves, kind: str | None = None) -> Layout:
    """Return the layout of the first group of a sweep.

    `kind` is a type of ROUGE, or a measure; default: the one by which runs are ranked.

    Raises:
        UsageError: the number is unknown, or no curve has it.
    """
    kind = kind or sweep.ranked_by()
    group = sweep.groups[0]
    _check_kind(kind, sweep, group)
    by_values = sorted(range(len(sweep.keys)), key=lambda index: -len(sweep.values(index)))
    axis, extra = by_values[0], by_values[1] if by_values[1:] else None
    values = sweep.values(extra) if extra is not None and _in_plots(sweep, extra) else [NO_SETTING]
    lines = _curve_lines(sweep, kind, axis, extra, values)
    return Layout(
        f"{sweep.dataset}: {_name_of(kind)} against {' and '.join(map(short_name, sweep.keys))}",
        group.summary,
        tuple(_layout_notes(sweep, kind, lines)),
        f"{_name_of(kind)} ({_unit_of(kind, sweep)})",
        Axis.of(short_name(sweep.keys[axis]), sweep.values(axis)),
        tuple(_with_value(sweep, extra, value) for value in values),
        tuple(lines[:MOST_CURVES]),
        tuple(_reference_lines(group, kind)),
    )


def _reference_lines(group: Group, kind: str) -> list[Level]:
    """Return the best line of each model, and of its oracle."""
    models: dict[tuple[str, bool], list[tuple[float, str]]] = {}
    for curve in group.references:
        for point in curve.points.values():
            if kind in point.numbers:
                lines = models.setdefault((curve.first.key.model, curve.first.oracle), [])
                lines.append((point.numbers[kind].mean, curve.label))
    levels = []
    for (model, oracle), lines in models.items():
        mean, label = max(lines, key=lambda line: line[0])
        levels.append(
            Level(
                f"{f'{model} (best of {len(lines)})' if lines[1:] else label} {mean:.1f}",
                mean,
                oracle,
            )
        )
    return levels


def _check_kind(kind: str, sweep: SweepCurves, group: Group) -> None:
    """Raise UsageError if a number is unknown, or no curve has it at two points."""
    if kind not in sweep.kinds():
        if advice := how_to_compute(kind):
            raise UsageError(f"--kind {kind} was not measured{advice}")
        raise UnknownName("measure", kind, sweep.kinds())
    drawable = [
        name
        for name in sweep.kinds()
        if any(
            sum(name in point.numbers for point in curve.points.values()) > 1
            for curve in group.curves
        )
    ]
    if kind not in drawable:
        message = (
            f"--kind {kind} was not measured by runs that differ in {' and '.join(sweep.keys)}"
        )
        raise UsageError(f"{message}; choose from: {', '.join(drawable)}")


def _in_plots(sweep: SweepCurves, extra: int) -> bool:
    """True if each value of the second setting has a plot: several systems vary it, and it has few values."""
    varying = sum(
        len({place[extra] for place in curve.points}) > 1 for curve in sweep.groups[0].curves
    )
    return varying > 1 and len(sweep.values(extra)) <= _MOST_PLOTS


def _curve_lines(
    sweep: SweepCurves, kind: str, axis: int, extra: int | None, plots: Sequence[str]
) -> list[CurveLine]:
    """Return the lines of the first group: those with the most points first, then the best.

    `plots` are the values of the other setting that have a plot; a single `NO_SETTING` if they have lines.
    """
    all_lines: list[CurveLine] = []
    for curve in sweep.groups[0].curves:
        lines: dict[str, CurveLine] = {}
        for place, point in curve.points.items():
            if kind not in point.numbers:
                continue
            value = NO_SETTING if extra is None else place[extra]
            label = f"{curve.label} {_with_value(sweep, extra, value if plots == [NO_SETTING] else NO_SETTING)}".strip()
            new = CurveLine(curve.first.key.model, label, [{} for _ in plots], [None] * len(plots))
            line = lines.setdefault(label, new)
            for index, plot in enumerate(plots):
                if NO_SETTING not in (plot, value) and plot != value:
                    continue
                if not point.learned.comparable:
                    line.hollow.setdefault(index, {})[place[axis]] = point.learned.word
                if place[axis] == NO_SETTING:
                    line.flat[index] = point.numbers[kind]
                else:
                    line.plots[index][place[axis]] = point.numbers[kind]
        all_lines += lines.values()
    return sorted(
        all_lines,
        key=lambda line: (-len(line.numbers()), -max(n.mean for n in line.numbers()), line.label),
    )


def _with_value(sweep: SweepCurves, extra: int | None, value: str) -> str:
    """Return "name=value" of the second setting; empty if there is none."""
    return (
        ""
        if extra is None or value == NO_SETTING
        else f"{short_name(sweep.keys[extra])}={checkpoint_name(value)}"
    )


def _layout_notes(sweep: SweepCurves, kind: str, lines: Sequence[CurveLine]) -> list[str]:
    """Return the notes: what bands are, what the picture leaves out, and warnings."""
    group, *other_groups = sweep.groups
    points = [
        point for curve in (*group.curves, *group.references) for point in curve.points.values()
    ]
    points = [point for point in points if kind in point.numbers]
    legend = f"Bands and whiskers: 95 % intervals over {describe_intervals([len(point.runs) > 1 for point in points])}"
    legend += (
        ", where scores.csv exists"
        if any(isnan(point.numbers[kind].low) for point in points)
        else ""
    )
    legend += (
        ". Dashed: oracles, which saw the references"
        if any(ref.first.oracle for ref in group.references)
        else ""
    )
    one_seed = dict.fromkeys(point.first.key.model for point in points if point.one_seed)
    legend += f". One seed, another may differ: {', '.join(one_seed)}" if one_seed else ""
    words = {*chain.from_iterable(line.words() for line in lines[:MOST_CURVES])}
    notes = [join(f"{legend}.", describe_mark("Hollow points", words))]
    follows = {key: value for curve in group.curves for key, value in curve.follows.items()}
    axes, verb = (
        " and ".join(map(short_name, sweep.keys)),
        "gives" if len(sweep.keys) == 1 else "give",
    )
    notes += [
        f"{short_name(key)} is {checkpoint_name(value)}, or null if {axes} {verb} it no meaning."
        for key, value in follows.items()
    ]
    if len(lines) > MOST_CURVES:
        notes.append(
            f"{MOST_CURVES} of {len(lines)} lines, those with the most points; the CSV has all."
        )
    if other_groups:
        descriptions = shorten_list([_describe_group(item, group) for item in other_groups], "; ")
        notes.append(f"Not comparable with these, only in the CSV: {descriptions}.")
    warning = caution(
        [row for curve in (*group.curves, *group.references) for row in curve.points.values()]
    )
    return [*notes, warning] if warning else notes


def _describe_group(group: Group, first: Group) -> str:
    unlike = [line for line in group.summary if line not in first.summary]
    return f"{', '.join(curve.label for curve in group.curves)} ({'; '.join(unlike)})"


def _name_of(kind: str) -> str:
    if kind in ROUGE_HEADINGS:
        return f"ROUGE-{kind.removeprefix('rouge')} F1"
    return "planted facts stated right" if kind == PLANTED else kind


def _unit_of(kind: str, sweep: SweepCurves) -> str:
    units = {
        name: unit
        for group in sweep.groups
        for run in group.records()
        for name, unit in run.evaluation.units.items()
    }
    return units.get(kind, "%" if kind == PLANTED else "0–100")


def draw_layout(layout: Layout) -> dict[str, bytes]:
    """Draw the plots side by side, with labels of the lines on the right; return "png" and "svg" → bytes."""
    axis = layout.axis
    ticks = {axis.places[value]: tick_name(value) for value in axis.ticks(len(layout.headings))}
    panels = [
        Panel(heading, axis.name, axis.ends, ticks, layout.references)
        for heading in layout.headings
    ]
    lines = []
    for line, style in zip(
        layout.lines, system_styles([line.model for line in layout.lines]), strict=True
    ):
        series = []
        for number, (numbers, flat) in enumerate(zip(line.plots, line.flat, strict=True)):
            points = {
                axis.places[value]: numbers[value] for value in axis.values if value in numbers
            }
            hollow = {
                axis.places[value] for value in line.hollow.get(number, {}) if value in numbers
            }
            series.append(Series(points, flat, hollow))
        label, words = line.label, line.words()
        if len(words) == len(line.numbers()):
            label, style = f"{label} ({', '.join(dict.fromkeys(words))})", {**style, "color": GREY}
        lines.append(PanelLine(label, style, series))
    notes = [". ".join(layout.summary) + ".", *layout.notes]
    return draw_panels(
        layout.title, notes, [PanelRow(layout.measured, panels, lines)], ("png", "svg")
    )


def update_curves(
    results: Results,
    dataset: str,
    words: Sequence[str],
    kind: str | None = None,
    required: bool = True,
    run_ids: Collection[str] = (),
) -> list[Path]:
    """Write the curves of all finished runs on a dataset against one or two settings; return the files.

    The files are `leaderboard/<dataset>-<setting>[-<second>].csv`, `.png` and `.svg`. If `kind` is not the number by
    which runs are ranked, the names of the pictures end with it. A lock serializes simultaneous jobs.

    `words` are as in `sweep_of`. The group of the runs in `run_ids` is drawn, or the largest. Unless a picture is
    required, try both settings, then each one, then give up.

    Raises:
        UsageError: there is nothing to draw, or a setting or number is unknown.
    """
    with results.leaderboard_lock(dataset):
        records = list(results.records(dataset))
        scores = read_all_scores(results, records)
        for keys in (
            [words] if required or len(words) == 1 else [words, *([word] for word in words)]
        ):
            try:
                sweep = sweep_of(dataset, records, keys, scores, run_ids)
                break
            except UsageError:
                if required:
                    raise
        else:
            return []
        number = kind or sweep.ranked_by()
        images = draw_layout(layout_of(sweep, number))
        name = file_name(sweep)
        pictured = name if number == sweep.ranked_by() else f"{name}-{number}"
        contents: dict[str, str | bytes | None] = {f"{name}.csv": sweep_csv(sweep)}
        contents |= {f"{pictured}.{suffix}": image for suffix, image in images.items()}
        return results.write_leaderboard(contents)


def file_name(sweep: SweepCurves) -> str:
    """Return the name of a sweep's files without ending; "model." is left out."""
    return "-".join([sweep.dataset, *map(short_name, sweep.keys)])


def sweep_csv(sweep: SweepCurves) -> str:
    """Return a row for each point: settings, numbers with intervals, costs and run ids.

    A reference line of several groups has all their numbers in `group`; the first group is drawn.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for group in sweep.groups:
        for curve in (*group.curves, *group.references):
            for place, point in curve.points.items():
                ids = tuple(run.run_id for run in point.runs)
                groups.setdefault(ids, []).append(group.number)
                rows.setdefault(ids, _point_row(sweep, group, curve, place))
    values = [{"group": " ".join(map(str, groups[ids])), **row} for ids, row in rows.items()]
    return csv_text(values)


def _point_row(
    sweep: SweepCurves, group: Group, curve: Curve, place: Sequence[str]
) -> dict[str, Any]:
    point = curve.points[tuple(place)]
    first = point.runs[0]
    row: dict[str, Any] = {"system": curve.label, "model": first.key.model}
    row |= {
        short_name(key): checkpoint_name(value)
        for key, value in zip(sweep.keys, place, strict=True)
    }
    row |= {"oracle": str(first.oracle).lower(), "split": first.key.split, "n": first.evaluation.n}
    row["seeds"] = " ".join(str(run.key.seed) for run in point.runs if run.key.seed is not None)
    for kind in sweep.kinds():
        row |= with_bounds(kind, point.numbers.get(kind))
    row["train_seconds"] = _mean_of_known(run.fit.seconds for run in point.runs if run.trained)
    row["tokens_per_second"] = _mean_of_known(
        run.costs.decode_tokens_per_second for run in point.runs
    )
    row["source_seen"] = _mean_of_known(source_seen(run) for run in point.runs)
    row["train_steps"] = " ".join(dict.fromkeys(str(run.fit.steps) for run in point.runs))
    row["run_ids"] = " ".join(run.run_id for run in point.runs)
    row["repeated"] = " ".join(run.run_id for run in point.repeated)
    row["compared"] = ". ".join(group.summary)
    return row


def _mean_of_known(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
