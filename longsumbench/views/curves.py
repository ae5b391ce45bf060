"""The figure and the CSV file of a sweep.

    Results --update_curves--> <dataset>-<setting>[-<second>].csv, .png, .svg
    SweepCurves --curves_figure--> SeriesFigure   --sweep_csv--> CSV

With two settings, the one with more values is the axis. Each value of the other one has a line.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from longsumbench.cache.hub import checkpoint_name
from longsumbench.errors import UnknownName, UsageError
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import (
    PLANTED,
    ROUGE_HEADINGS,
    describe_unlike_conditions,
)
from longsumbench.leaderboards.curves import (
    NO_SETTING,
    Curve,
    Group,
    SweepCurves,
    build_sweep,
    parse_number,
)
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.leaderboards.table import how_to_compute
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import source_seen
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import hide_folders
from longsumbench.views.footnotes import describe_budget, describe_intervals, describe_mark, join
from longsumbench.views.outcomes import describe_single_seeds
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
_MOST_TICKS = 10

_Points = list[tuple[str, ResultRow]]  # value on the axis, or `NO_SETTING` → result


def update_curves(
    results: Results,
    dataset: str,
    words: Sequence[str],
    measure: str | None = None,
    required: bool = True,
    run_ids: Collection[str] = (),
) -> list[Path]:
    """Write the curves of all finished runs on a dataset against one or two settings; return the files.

    The files are `leaderboard/<dataset>-<setting>[-<second>].csv`, `.png` and `.svg`. If `measure` is not the one by
    which runs are ranked, the names of the pictures end with it. A lock serializes simultaneous jobs.

    `words` are as in `build_sweep`. The group of the runs in `run_ids` is drawn, or the largest. Unless a picture is
    required, try both settings, then each one, then give up.

    Raises:
        UsageError: there is nothing to draw, or a setting or measure is unknown.
    """
    with results.leaderboard_lock(dataset):
        records = list(map(hide_folders, results.records(dataset)))
        scores = read_all_scores(results, records)
        # A sweep's settings may vary together only: then one of them is drawn alone
        attempts = [words]
        if not required and len(words) > 1:
            attempts += [[word] for word in words]
        for keys in attempts:
            try:
                sweep = build_sweep(dataset, records, keys, scores, run_ids)
                break
            except UsageError:
                if required:
                    raise
        else:
            return []
        images = draw_series(curves_figure(sweep, measure), ("png", "svg"))
        name = "-".join([dataset, *map(_short_name, sweep.keys)])
        # A picture of another measure must not replace that of the ranking score
        pictured = name if measure in (None, sweep.ranked_by()) else f"{name}-{measure}"
        contents: dict[str, str | bytes | None] = {f"{name}.csv": sweep_csv(sweep)}
        contents |= {f"{pictured}.{suffix}": image for suffix, image in images.items()}
        return results.write_leaderboard(contents)


def _short_name(key: str) -> str:
    return key.removeprefix("model.")


def curves_figure(sweep: SweepCurves, measure: str | None = None) -> SeriesFigure:
    """Return the figure of the first group of a sweep.

    `measure` is a type of ROUGE, or of another metric; default: the one by which runs are ranked.

    Raises:
        UsageError: the measure is unknown, or no curve has it.
    """
    measure = measure or sweep.ranked_by()
    _check_measure(measure, sweep)
    lines = _split_lines(sweep, measure)
    values = sweep.values(sweep.axis)
    positions = _place_values(values)
    # Of many values, every second or third has a label
    interval = -(-len(values) // _MOST_TICKS)
    ticks = {positions[value]: _tick_name(value) for value in values[::interval]}
    series = []
    for label in list(lines)[:MOST_CURVES]:
        series.append(_series(label, lines[label], measure, positions))
    series += _reference_series(sweep.groups[0], measure)
    axis = _short_name(sweep.keys[sweep.axis])
    settings = " and ".join(map(_short_name, sweep.keys))
    return SeriesFigure(
        f"{sweep.dataset}: {_name_of(measure)} against {settings}",
        [
            PanelRow(
                f"{_name_of(measure)} ({_find_unit(measure, sweep)})",
                [Panel("", axis, ticks, series)],
            )
        ],
        [". ".join(describe_group(sweep.groups[0], sweep)) + ".", *_notes(sweep, measure, lines)],
    )


def _check_measure(measure: str, sweep: SweepCurves) -> None:
    """Raise UsageError if no curve has a measure at two points."""
    drawable: set[str] = set()
    for curve in sweep.groups[0].curves:
        names = [name for point in curve.points.values() for name in point.means]
        drawable |= {name for name in names if names.count(name) > 1}
    if measure not in drawable:
        if advice := how_to_compute(measure):
            raise UsageError(f"--kind {measure} was not measured{advice}")
        choices = [name for name in sweep.measures() if name in drawable]
        raise UnknownName(f"number against {' and '.join(sweep.keys)}", measure, choices)


def _split_lines(sweep: SweepCurves, measure: str) -> dict[str, _Points]:
    """Return label → points: lines with the most points first, then the best."""
    lines: dict[str, _Points] = {}
    for curve in sweep.groups[0].curves:
        for place, group in curve.points.items():
            label = curve.label
            for key, value in zip(sweep.keys, place, strict=True):
                if key != sweep.keys[sweep.axis] and value != NO_SETTING:
                    label += f" {_short_name(key)}={checkpoint_name(value)}"
            if measure in group.means:
                lines.setdefault(label, []).append((place[sweep.axis], group))

    def rank(label: str) -> tuple[int, float, str]:
        best = max(group.means[measure].mean for _, group in lines[label])
        return -len(lines[label]), -best, label

    return {label: lines[label] for label in sorted(lines, key=rank)}


def _series(label: str, points: _Points, measure: str, positions: Mapping[str, float]) -> Series:
    """Return a line; it is grey if none of its points is ranked."""
    means, across, hollow = {}, None, set()
    for value, group in points:
        # A system without this setting is a line across the plot
        if value == NO_SETTING:
            across = group.means[measure]
            continue
        means[positions[value]] = group.means[measure]
        if not group.learned.comparable:
            hollow.add(positions[value])
    words = _list_unlearned_words(points)
    if len(words) == len(points):
        label = f"{label} ({', '.join(dict.fromkeys(words))})"
    is_grey = not any(group.ranked for _, group in points)
    return Series(label, points[0][1].representative.key.model, means, across, hollow, is_grey)


def _list_unlearned_words(points: _Points) -> list[str]:
    return [group.learned.word for _, group in points if not group.learned.comparable]


def _place_values(values: Sequence[str]) -> dict[str, float]:
    """Return the positions of values: numbers by size, words evenly."""
    numbers = [number for number in map(parse_number, values) if number is not None]
    is_numeric = len(numbers) == len(values)
    places = place_numbers(numbers) if is_numeric else map(float, range(len(values)))
    return dict(zip(values, places, strict=True))


def _tick_name(value: str) -> str:
    number = parse_number(value)
    return checkpoint_name(value) if number is None else f"{number:.8g}"


def _reference_series(group: Group, measure: str) -> list[Series]:
    """Return the best reference of each model, and of its oracle, as lines across the panel."""
    models: dict[tuple[str, bool], list[tuple[Estimate, str]]] = {}
    for curve in group.references:
        for point in curve.points.values():
            if measure in point.means:
                references = models.setdefault(
                    (curve.representative.key.model, curve.representative.oracle), []
                )
                references.append((point.means[measure], curve.label))
    series = []
    for (model, is_oracle), references in models.items():
        best, label = max(references, key=lambda reference: reference[0].mean)
        if len(references) > 1:
            label = f"{model} (best of {len(references)})"
        saw = " (saw the references)" if is_oracle else ""
        series.append(Series(f"{label} {best.mean:.1f}{saw}", model, across=best, grey=is_oracle))
    return series


def describe_group(group: Group, sweep: SweepCurves) -> list[str]:
    """Describe what the runs of a group have in common, and how they differ from the drawn one; without full stops."""
    run, drawn = group.curves[0].representative, sweep.groups[0].curves[0].representative
    texts = [
        f"{run.key.split} split, {run.evaluation.describe_examples()}",
        describe_unlike_conditions(run, drawn),
        describe_budget(group.records()).rstrip("."),
    ]
    return [text for text in texts if text]


def _notes(sweep: SweepCurves, measure: str, lines: Mapping[str, _Points]) -> list[str]:
    """Return the notes: what bands are, and what the picture leaves out."""
    group, *other_groups = sweep.groups
    rows = group.rows()
    measured = [row for row in rows if measure in row.means]
    over = describe_intervals([len(row.runs) > 1 for row in measured])
    if any(isnan(row.means[measure].low) for row in measured):
        over += ", where scores.csv exists"
    one_seed = dict.fromkeys(row.representative.key.model for row in measured if row.one_seed)
    words = set[str]()
    for label in list(lines)[:MOST_CURVES]:
        words.update(_list_unlearned_words(lines[label]))
    first_note = join(
        f"Bands and whiskers: 95 % intervals over {over}.",
        describe_single_seeds(one_seed),
        describe_mark("Hollow points", words),
    )
    notes = [first_note]
    if len(lines) > MOST_CURVES:
        notes.append(
            f"{MOST_CURVES} of {len(lines)} lines, those with the most points; the CSV has all."
        )
    if other_groups:
        count = format_count(len(other_groups), "group")
        notes.append(f"Not comparable with these: {count} of runs in the CSV, which says why.")
    return notes


def _name_of(measure: str) -> str:
    if measure in ROUGE_HEADINGS:
        return f"ROUGE-{measure.removeprefix('rouge')} F1"
    return "planted facts stated right" if measure == PLANTED else measure


def _find_unit(measure: str, sweep: SweepCurves) -> str:
    for record in sweep.groups[0].records():
        if measure in record.evaluation.units:
            return record.evaluation.units[measure]
    return "%" if measure == PLANTED else "0–100"


def sweep_csv(sweep: SweepCurves) -> str:
    """Return a row for each point: settings, numbers with intervals, costs and run ids; the first group is drawn."""
    rows = []
    for group in sweep.groups:
        compared = ". ".join(describe_group(group, sweep))
        for curve in group.all_curves():
            for place in curve.points:
                row = {"group": group.number, **_point_row(sweep, curve, place)}
                rows.append({**row, "compared": compared})
    return csv_text(rows)


def _point_row(sweep: SweepCurves, curve: Curve, place: tuple[str, ...]) -> dict[str, Any]:
    point = curve.points[place]
    representative, runs = point.representative, point.runs
    row: dict[str, Any] = {"system": curve.label, "model": representative.key.model}
    for key, value in zip(sweep.keys, place, strict=True):
        row[_short_name(key)] = checkpoint_name(value)
    row |= {
        "oracle": str(representative.oracle).lower(),
        "split": representative.key.split,
        "n": representative.evaluation.n,
    }
    row["seeds"] = " ".join(str(run.key.seed) for run in runs if run.key.seed is not None)
    for measure in sweep.measures():
        row |= with_bounds(measure, point.means.get(measure))
    row["train_seconds"] = _known_mean(run.fit.seconds for run in runs if run.trained)
    row["tokens_per_second"] = _known_mean(run.costs.decode_tokens_per_second for run in runs)
    row["source_seen"] = _known_mean(source_seen(run) for run in runs)
    row["train_steps"] = " ".join(dict.fromkeys(str(run.fit.steps) for run in runs))
    row["run_ids"] = " ".join(run.run_id for run in runs)
    row["repeated"] = " ".join(run.run_id for run in point.repeated)
    return row


def _known_mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
