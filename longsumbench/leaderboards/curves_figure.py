"""The figure and the CSV file of a sweep.

    Results --update_curves--> <dataset>-<setting>[-<second>].csv, .png, .svg
    SweepCurves --curves_figure--> SeriesFigure   --sweep_csv--> CSV

With two settings, the one with more values is the axis. Each value of the other one has a panel. It has a line instead
if only one system is swept, or if there are too many values.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

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
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import source_seen
from longsumbench.runs.results import Results
from longsumbench.views.series import (
    Panel,
    PanelRow,
    Series,
    SeriesFigure,
    draw_series,
    place_numbers,
)
from longsumbench.views.tables import csv_text, with_bounds

MOST_CURVES = 6  # lines with the most points, then the best ones, are drawn
_MOST_PANELS = 4
_MOST_TICKS = 10  # in all panels


class _Point(NamedTuple):
    """A point of a line in one panel; its value is `NO_SETTING` for a system without the axis's setting."""

    value: str
    group: SeedGroup


_Lines = dict[str, list[_Point]]  # label → points


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
        attempts = [words]
        if not required and len(words) > 1:
            attempts += [[word] for word in words]
        for keys in attempts:
            try:
                sweep = sweep_of(dataset, records, keys, scores, run_ids)
                break
            except UsageError:
                if required:
                    raise
        else:
            return []
        images = draw_series(curves_figure(sweep, kind), ("png", "svg"))
        name = "-".join([dataset, *map(short_name, sweep.keys)])
        pictured = name if kind in (None, sweep.ranked_by()) else f"{name}-{kind}"
        contents: dict[str, str | bytes | None] = {f"{name}.csv": sweep_csv(sweep)}
        contents |= {f"{pictured}.{suffix}": image for suffix, image in images.items()}
        return results.write_leaderboard(contents)


def curves_figure(sweep: SweepCurves, kind: str | None = None) -> SeriesFigure:
    """Return the figure of the first group of a sweep.

    `kind` is a type of ROUGE, or a measure; default: the one by which runs are ranked.

    Raises:
        UsageError: the number is unknown, or no curve has it.
    """
    kind = kind or sweep.ranked_by()
    _check_kind(kind, sweep)
    # The lines of all panels decide which ones are drawn, and in which order
    values = sweep.values(sweep.axis)
    positions = _place_values(values)
    panel_values = _panel_values(sweep)
    panels_lines = [_lines_of_panel(sweep, kind, value) for value in panel_values]
    lines = _rank_lines(panels_lines, kind)
    drawn = list(lines)[:MOST_CURVES]

    # All panels together have room for so many tick labels
    interval = -(-len(values) * len(panel_values) // _MOST_TICKS)
    ticks = {positions[value]: _tick_name(value) for value in values[::interval]}
    references = _reference_series(sweep.groups[0], kind)
    panels = []
    for value, panel_lines in zip(panel_values, panels_lines, strict=True):
        series = []
        for label in drawn:
            series.append(_series(label, lines[label], panel_lines.get(label, []), kind, positions))
        heading = _with_value(sweep, value)
        axis = short_name(sweep.keys[sweep.axis])
        panels.append(Panel(heading, axis, ticks, [*series, *references]))
    settings = " and ".join(map(short_name, sweep.keys))
    return SeriesFigure(
        f"{sweep.dataset}: {_name_of(kind)} against {settings}",
        [PanelRow(f"{_name_of(kind)} ({_unit_of(kind, sweep)})", panels)],
        [". ".join(sweep.groups[0].summary) + ".", *_notes(sweep, kind, lines)],
    )


def _check_kind(kind: str, sweep: SweepCurves) -> None:
    """Raise UsageError if a number is unknown, or no curve has it at two points."""
    if kind not in sweep.kinds():
        if advice := how_to_compute(kind):
            raise UsageError(f"--kind {kind} was not measured{advice}")
        raise UnknownName("measure", kind, sweep.kinds())
    drawable: set[str] = set()
    for curve in sweep.groups[0].curves:
        points = Counter(chain.from_iterable(row.numbers for row in curve.points.values()))
        drawable.update(name for name, number in points.items() if number > 1)
    if kind not in drawable:
        message = (
            f"--kind {kind} was not measured by runs that differ in {' and '.join(sweep.keys)}"
        )
        choices = [name for name in sweep.kinds() if name in drawable]
        raise UsageError(f"{message}; choose from: {', '.join(choices)}")


def _panel_values(sweep: SweepCurves) -> list[str]:
    """Return the values of the second setting if each has a panel: several systems vary it, and it has few values."""
    if sweep.extra is not None:
        varying = [curve for curve in sweep.groups[0].curves if curve.varies(sweep.extra)]
        values = sweep.values(sweep.extra)
        if len(varying) > 1 and len(values) <= _MOST_PANELS:
            return values
    return [NO_SETTING]


def _lines_of_panel(sweep: SweepCurves, kind: str, panel_value: str) -> _Lines:
    """Return the lines of a panel; a single panel has a line for each value of the second setting."""
    lines: _Lines = {}
    for curve in sweep.groups[0].curves:
        for place, group in curve.points.items():
            value = NO_SETTING if sweep.extra is None else place[sweep.extra]
            in_panel = NO_SETTING in (panel_value, value) or panel_value == value
            if in_panel and kind in group.numbers:
                label = curve.label
                if panel_value == NO_SETTING:
                    label = join(label, _with_value(sweep, value))
                lines.setdefault(label, []).append(_Point(place[sweep.axis], group))
    return lines


def _rank_lines(panels_lines: Sequence[_Lines], kind: str) -> dict[str, list[SeedGroup]]:
    """Return the points of each line in all panels: lines with the most points first, then the best."""
    groups: dict[str, list[SeedGroup]] = {}
    for lines in panels_lines:
        for label, points in lines.items():
            groups.setdefault(label, []).extend(point.group for point in points)

    def rank(label: str) -> tuple[int, float, str]:
        best = max(group.numbers[kind].mean for group in groups[label])
        return -len(groups[label]), -best, label

    return {label: groups[label] for label in sorted(groups, key=rank)}


def _series(
    label: str,
    groups: Sequence[SeedGroup],
    points: Sequence[_Point],
    kind: str,
    positions: dict[str, float],
) -> Series:
    """Return a line in one panel; it is grey if none of its `groups`, in any panel, is shown to have learned."""
    numbers, across, hollow = {}, None, set()
    for value, group in points:
        if value == NO_SETTING:
            across = group.numbers[kind]
            continue
        numbers[positions[value]] = group.numbers[kind]
        if not group.learned.comparable:
            hollow.add(positions[value])
    words = _words_of_unlearned(groups)
    is_grey = len(words) == len(groups)
    if is_grey:
        label = f"{label} ({', '.join(dict.fromkeys(words))})"
    return Series(label, groups[0].first.key.model, numbers, across, hollow, is_grey)


def _words_of_unlearned(groups: Iterable[SeedGroup]) -> list[str]:
    return [group.learned.word for group in groups if not group.learned.comparable]


def _place_values(values: Sequence[str]) -> dict[str, float]:
    """Return the positions of values: numbers by size, words evenly."""
    numbers = [parse_number(value) for value in values]
    known = [number for number in numbers if number is not None]
    places = place_numbers(known) if len(known) == len(values) else map(float, range(len(values)))
    return dict(zip(values, places, strict=True))


def _tick_name(value: str) -> str:
    number = parse_number(value)
    return checkpoint_name(value) if number is None else f"{number:.8g}"


def _reference_series(group: Group, kind: str) -> list[Series]:
    """Return the best reference of each model, and of its oracle, as lines across the panels."""
    models: dict[tuple[str, bool], list[tuple[Estimate, str]]] = {}
    for curve in group.references:
        for point in curve.points.values():
            if kind in point.numbers:
                numbers = models.setdefault((curve.first.key.model, curve.first.oracle), [])
                numbers.append((point.numbers[kind], curve.label))
    series = []
    for (model, is_oracle), numbers in models.items():
        best, label = max(numbers, key=lambda number: number[0].mean)
        if len(numbers) > 1:
            label = f"{model} (best of {len(numbers)})"
        saw = " (saw the references)" if is_oracle else ""
        series.append(Series(f"{label} {best.mean:.1f}{saw}", model, across=best, grey=is_oracle))
    return series


def _with_value(sweep: SweepCurves, value: str) -> str:
    """Return "name=value" of the second setting; empty if there is none."""
    if sweep.extra is None or value == NO_SETTING:
        return ""
    return f"{short_name(sweep.keys[sweep.extra])}={checkpoint_name(value)}"


def _notes(sweep: SweepCurves, kind: str, lines: dict[str, list[SeedGroup]]) -> list[str]:
    """Return the notes: what bands are, what the picture leaves out, and warnings."""
    group, *other_groups = sweep.groups
    rows = group.rows()
    measured = [row for row in rows if kind in row.numbers]
    over = describe_intervals([len(row.runs) > 1 for row in measured])
    if any(isnan(row.numbers[kind].low) for row in measured):
        over += ", where scores.csv exists"
    one_seed = dict.fromkeys(row.first.key.model for row in measured if row.one_seed)
    words = set[str]()
    for label in list(lines)[:MOST_CURVES]:
        words.update(_words_of_unlearned(lines[label]))
    first_note = join(
        f"Bands and whiskers: 95 % intervals over {over}.",
        f"One seed, another may differ: {', '.join(one_seed)}." if one_seed else "",
        describe_mark("Hollow points", words),
    )
    notes = [first_note]
    axes = " and ".join(map(short_name, sweep.keys))
    verb = "gives" if len(sweep.keys) == 1 else "give"
    follows: dict[str, str] = {}
    for curve in group.curves:
        follows |= curve.follows
    for key, value in follows.items():
        name = f"{short_name(key)} is {checkpoint_name(value)}"
        notes.append(f"{name}, or null if {axes} {verb} it no meaning.")
    if len(lines) > MOST_CURVES:
        notes.append(
            f"{MOST_CURVES} of {len(lines)} lines, those with the most points; the CSV has all."
        )
    if other_groups:
        descriptions = [_describe_group(other, group) for other in other_groups]
        listed = shorten_list(descriptions, "; ")
        notes.append(f"Not comparable with these, only in the CSV: {listed}.")
    return [note for note in [*notes, caution(rows)] if note]


def _describe_group(group: Group, first: Group) -> str:
    unlike = [line for line in group.summary if line not in first.summary]
    return f"{', '.join(curve.label for curve in group.curves)} ({'; '.join(unlike)})"


def _name_of(kind: str) -> str:
    if kind in ROUGE_HEADINGS:
        return f"ROUGE-{kind.removeprefix('rouge')} F1"
    return "planted facts stated right" if kind == PLANTED else kind


def _unit_of(kind: str, sweep: SweepCurves) -> str:
    for group in sweep.groups:
        for record in group.records():
            if kind in record.evaluation.units:
                return record.evaluation.units[kind]
    return "%" if kind == PLANTED else "0–100"


def sweep_csv(sweep: SweepCurves) -> str:
    """Return a row for each point: settings, numbers with intervals, costs and run ids.

    A reference line of several groups has all their numbers in `group`; the first group is drawn.
    """
    rows: dict[str, dict[str, Any]] = {}
    for group in sweep.groups:
        for curve in (*group.curves, *group.references):
            for place in curve.points:
                row = _point_row(sweep, group, curve, place)
                same = rows.setdefault(row["run_ids"], row)
                if same is not row:
                    same["group"] += f" {group.number}"
    return csv_text([*rows.values()])


def _point_row(
    sweep: SweepCurves, group: Group, curve: Curve, place: tuple[str, ...]
) -> dict[str, Any]:
    point = curve.points[place]
    first, runs = point.first, point.runs
    row: dict[str, Any] = {
        "group": str(group.number),
        "system": curve.label,
        "model": first.key.model,
    }
    for key, value in zip(sweep.keys, place, strict=True):
        row[short_name(key)] = checkpoint_name(value)
    row |= {"oracle": str(first.oracle).lower(), "split": first.key.split, "n": first.evaluation.n}
    row["seeds"] = " ".join(str(run.key.seed) for run in runs if run.key.seed is not None)
    for kind in sweep.kinds():
        row |= with_bounds(kind, point.numbers.get(kind))
    row["train_seconds"] = _mean_of_known(run.fit.seconds for run in runs if run.trained)
    row["tokens_per_second"] = _mean_of_known(run.costs.decode_tokens_per_second for run in runs)
    row["source_seen"] = _mean_of_known(source_seen(run) for run in runs)
    row["train_steps"] = " ".join(dict.fromkeys(str(run.fit.steps) for run in runs))
    row["run_ids"] = " ".join(run.run_id for run in runs)
    row["repeated"] = " ".join(run.run_id for run in point.repeated)
    row["compared"] = ". ".join(group.summary)
    return row


def _mean_of_known(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
