"""Draw the curves of a sweep against a setting: a line with a band per system, and its name at the end.

    Results --update_curves--> <dataset>-<setting>[-<second>].csv, .png, .svg

The same records give the same bytes, with the same release of matplotlib.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longsumbench.leaderboards.figures.curves_layout import CurveLine, Layout, ReferenceLine, tick_name
from longsumbench.render.figures import GREY, TEXT, LineLabel, draw_panels, draw_series, plain_axes, system_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from collections.abc import Collection, Iterable
from pathlib import Path

from longsumbench.errors import UsageError
from longsumbench.leaderboards.curves import Curve, Group, SweepCurves, short_name, sweep_of
from longsumbench.leaderboards.figures.curves_layout import layout_of
from longsumbench.leaderboards.notes import checkpoint_name
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.render.tables import rounded_frame, with_bounds
from longsumbench.runs.record import source_seen
from longsumbench.runs.results import Results

_NEAR_SHARE = 0.75  # share of the curves' height; reference lines that are farther away have only a label
_LEAST_HEIGHT = 1e-3  # in the unit of the scores


def draw_layout(layout: Layout) -> dict[str, bytes]:
    """Draw the plots side by side, with labels of the lines on the right; return "png" and "svg" → bytes."""

    def draw(plots: "Sequence[Axes]") -> None:
        for index, (heading, plot) in enumerate(zip(layout.headings, plots, strict=True)):
            _draw_plot(plot, index, layout)
            plot.set_title(heading, loc="left", fontsize=TEXT, fontweight="bold")
        plots[0].set_ylabel(layout.measured, fontsize=TEXT)

    notes = [". ".join(layout.summary) + ".", *layout.notes]
    return draw_panels(layout.title, notes, len(layout.headings), draw, _line_labels(layout))


def _draw_plot(plot: "Axes", index: int, layout: Layout) -> None:
    axis = layout.axis
    for place, (line, style) in enumerate(zip(layout.lines, _line_styles(layout), strict=True)):
        above = 3 + len(layout.lines) - place
        numbers = {axis.places[value]: line.plots[index][value] for value in axis.values if value in line.plots[index]}
        draw_series(plot, [*numbers], [*numbers.values()], style, above)
        if flat := line.flat[index]:
            plot.axhline(flat.mean, color=style["color"], linewidth=1.4, zorder=above)
    for rule in layout.references:
        plot.axhline(rule.number.mean, color=GREY, linestyle="--" if rule.oracle else "-", linewidth=1.0, zorder=2)
    plain_axes(plot)
    plot.set_xlim(*axis.ends)
    plot.set_ylim(*_limits(layout.lines, layout.references))
    ticks = axis.ticks(len(layout.headings))
    plot.set_xticks([axis.places[value] for value in ticks], list(map(tick_name, ticks)))
    plot.locator_params(axis="y", nbins=5)
    plot.set_xlabel(axis.name, fontsize=TEXT)


def _line_styles(layout: Layout) -> list[dict[str, Any]]:
    return system_styles([line.model for line in layout.lines])


def _limits(lines: Sequence[CurveLine], references: Sequence[ReferenceLine]) -> tuple[float, float]:
    """Return the limits of the vertical axis: around the curves and the reference lines near them."""
    ends = [bound for line in lines for number in line.numbers() for bound in number if bound == bound]
    low, high = min(ends), max(ends)
    room = _NEAR_SHARE * max(high - low, _LEAST_HEIGHT)
    levels = [reference.number.mean for reference in references if low - room <= reference.number.mean <= high + room]
    low, high = min([low, *levels]), max([high, *levels])
    return low - 0.06 * max(high - low, _LEAST_HEIGHT), high + 0.06 * max(high - low, _LEAST_HEIGHT)


def _line_labels(layout: Layout) -> list[LineLabel]:
    axis, (low, high) = layout.axis, _limits(layout.lines, layout.references)
    labels = []
    for line, style in zip(layout.lines, _line_styles(layout), strict=True):
        ends = [(axis.places[value], line.plots[-1][value]) for value in axis.values if value in line.plots[-1]]
        ends += [(axis.ends[1], flat)] if (flat := line.flat[-1]) else []
        end, number = ends[-1] if ends else (None, line.numbers()[-1])
        labels.append(LineLabel(line.label, number.mean, style["color"], end))
    for rule in layout.references:
        off = " ▲" if rule.number.mean > high else " ▼" if rule.number.mean < low else ""
        name = f"{rule.label} {rule.number.mean:.1f}{off}"
        labels.append(LineLabel(name, rule.number.mean, GREY, None if off else axis.ends[1]))
    return labels


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

    Args:
        results: the results folder.
        dataset: its name.
        words: the settings, as "model.page_size"; "model." may be left out.
        kind: the number to draw: a type of ROUGE, or a measure; default: the one by which runs are ranked.
        required: raise an error if there is nothing to draw. If False, try both settings, then each one, then give up.
        run_ids: ids of runs that must be in the picture; by default the largest group is drawn.

    Raises:
        UsageError: there is nothing to draw, or a setting or number is unknown.
    """
    with results.leaderboard_lock(dataset):
        records = list(results.records(dataset))
        scores = read_all_scores(results, records)
        for keys in [words] if required or len(words) == 1 else [words, *([word] for word in words)]:
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
    return rounded_frame(values).to_csv(index=False, lineterminator="\n")


def _point_row(sweep: SweepCurves, group: Group, curve: Curve, place: Sequence[str]) -> dict[str, Any]:
    point = curve.points[tuple(place)]
    first = point.runs[0]
    row: dict[str, Any] = {"system": curve.label, "model": first.model}
    row |= {short_name(key): checkpoint_name(value) for key, value in zip(sweep.keys, place, strict=True)}
    row |= {"oracle": str(first.oracle).lower(), "split": first.split, "n": first.n}
    row["seeds"] = " ".join(str(run.seed) for run in point.runs if run.seed is not None)
    for kind in sweep.kinds():
        row |= with_bounds(kind, point.numbers.get(kind))
    row["train_seconds"] = _mean_of_known(run.fit.seconds for run in point.runs if run.trained)
    row["tokens_per_second"] = _mean_of_known(run.decode_tokens_per_second for run in point.runs)
    row["source_seen"] = _mean_of_known(source_seen(run) for run in point.runs)
    row["train_steps"] = " ".join(dict.fromkeys(str(run.fit.steps) for run in point.runs))
    row["run_ids"] = " ".join(run.run_id for run in point.runs)
    row["repeated"] = " ".join(run.run_id for run in point.repeated)
    row["compared"] = ". ".join(group.summary)
    return row


def _mean_of_known(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
