"""Figures of curves: a plot for each panel, a line for each system, drawn and as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, ROUGE_PARTS, heading_of
from longsumbench.leaderboards.curves_picture import Axis
from longsumbench.leaderboards.notes import PLANTED, describe_intervals, describe_mark, join
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.papers import printed
from longsumbench.papers.claims import OURS, long_table
from longsumbench.papers.conditions import compare_texts, describe_conditions
from longsumbench.papers.page import Job, Page, RowRuns
from longsumbench.views.figures import (
    Level,
    Panel,
    PanelLine,
    PanelRow,
    Series,
    draw_panels,
    system_styles,
)
from longsumbench.views.tables import Block

_CHANCE = f"{PLANTED}_chance"


class _Point(NamedTuple):
    x: float
    group: SeedGroup


_Panels = Mapping[str, Mapping[str, Sequence[_Point]]]  # panel → line → points from left to right


def curves_page(job: Job) -> Page:
    """Return the page of a figure: the picture, a table of its points, and the verdicts."""
    means = printed.read_row_means(job)
    measures, verdicts = printed.measures_shown(job, means), printed.decide_claims(job, means)
    numbers = [
        means.table_number(OURS, label, dataset, measure, group.numbers[measure])
        for (label, dataset), group in means.groups.items()
        for measure in measures
        if measure in group.numbers
    ]
    panels = _panels(job, means)
    main_measures = [
        name for name in dict.fromkeys([job.paper_table.measures[0], PLANTED]) if name in measures
    ]
    return Page(
        blocks=_panel_blocks(job, means, measures),
        numbers=long_table([*numbers, *means.learned_numbers()], verdicts),
        verdicts=verdicts,
        conditions=describe_conditions(job, means),
        pictures={f"{job.paper_table.name}-curves.png": _draw_panels(job, panels, main_measures)}
        if panels
        else {},
    )


def _panel_blocks(job: Job, means: printed.RowMeans, measures: Sequence[str]) -> tuple[Block, ...]:
    """Return a table for each panel; the last has the sentences about the numbers."""
    panels: dict[str, list[RowRuns]] = {}
    for row in job.rows:
        panels.setdefault(_panel_name(job, row), []).append(row)
    blocks = [_panel_block(job, means, rows, measures) for rows in panels.values()]
    if means.groups:
        part = f"ROUGE {ROUGE_PARTS[job.paper_table.part]}, 0–100. {means.describe_interval()}"
        texts = [compare_texts(job, dataset) for dataset in job.datasets]
        blocks[-1] = replace(
            blocks[-1], footnotes=(part, printed.LEARNED_NOTE, *filter(None, texts))
        )
    return tuple(blocks)


def _panel_block(
    job: Job, means: printed.RowMeans, rows: Sequence[RowRuns], measures: Sequence[str]
) -> Block:
    cells = []
    for row in rows:
        estimates = [means.number(row.label, row.dataset, measure) for measure in measures]
        numbers = [f"{number:.1f}" if number else "" for number in estimates]
        learned = means.learned_cells(row.label, row.dataset)
        cells.append(
            [_line_name(row), f"{_x(job, row):g}", *numbers, *learned, printed.count_runs(row)]
        )
    return Block(
        _panel_name(job, rows[0]),
        (),
        (
            "line",
            "x",
            *(_heading(measure).replace(" right", "\nright") for measure in measures),
            *printed.LEARNED_COLUMNS,
            "runs",
        ),
        "lr" + "r" * len(measures) + "lrrr",
        cells,
    ).without_empty_columns()


def _line_name(row: RowRuns) -> str:
    """Return the name of a row's line; settings of its system are filled in: "{extractive_length} tokens"."""
    line = row.row.line
    return line.format(**vars(row.points[0].config.model)) if "{" in line else line


def _panel_name(job: Job, row: RowRuns) -> str:
    return f"{row.row.panel}, {row.dataset}" if len(job.datasets) > 1 else row.row.panel


def _x(job: Job, row: RowRuns) -> float:
    return row.row.x[job.scale]


def _heading(measure: str) -> str:
    return printed.FACTS_HEADING if measure == PLANTED else heading_of(measure)


def _panels(job: Job, means: printed.RowMeans) -> _Panels:
    panels: dict[str, dict[str, list[_Point]]] = {}
    for row in sorted(job.rows, key=lambda row: _x(job, row)):
        if group := means.groups.get((row.label, row.dataset)):
            lines = panels.setdefault(_panel_name(job, row), {})
            lines.setdefault(_line_name(row), []).append(_Point(_x(job, row), group))
    return dict(sorted(panels.items()))


def _draw_panels(job: Job, panels: _Panels, measures: Sequence[str]) -> bytes:
    """Draw a column of plots for each panel and a row for each measure; return a PNG."""
    models = {
        name: points[0].group.first.key.model
        for lines in panels.values()
        for name, points in lines.items()
    }
    styles = dict(zip(models, system_styles([*models.values()]), strict=True))
    axes, rows = [_axis(lines) for lines in panels.values()], list[PanelRow]()
    for measure in measures:
        part = ROUGE_PARTS[job.paper_table.part] if measure in ROUGE_HEADINGS else ""
        plots, lines = [], []
        for (panel, panel_lines), axis in zip(panels.items(), axes, strict=True):
            ticks = {place: value for value, place in axis.places.items()}
            heading = "" if rows else panel.replace(": ", "\n")
            plots.append(Panel(heading, "", axis.ends, ticks, _floor_level(panel_lines, measure)))
        for name, style in styles.items():
            pairs = zip(panels.values(), axes, strict=True)
            series = [
                _series(panel_lines.get(name, ()), axis, measure) for panel_lines, axis in pairs
            ]
            if any(one.points for one in series):
                lines.append(PanelLine(name if series[-1].points else "", style, series))
        rows.append(PanelRow(f"{_heading(measure)} {part}".strip(), plots, lines))
    title = f"{job.paper_table.prints} of {job.paper_table.citation}, at scale={job.scale}"
    points = chain.from_iterable(
        chain.from_iterable(panel_lines.values() for panel_lines in panels.values())
    )
    groups = [point.group for point in points]
    plots_of_rows = chain.from_iterable(row.panels for row in rows)
    levels = chain.from_iterable(plot.levels for plot in plots_of_rows)
    kinds = dict.fromkeys(level.label.split()[0] for level in levels)
    over = describe_intervals([len(group.runs) > 1 for group in groups])
    notes = [
        f"Bands and whiskers: 95 % intervals over {over}.",
        f"Dashed: {', '.join(kinds)}." if kinds else "",
    ]
    words = {group.learned.word for group in groups if not group.learned.comparable}
    notes.append(describe_mark("Hollow points", words))
    return draw_panels(title, [join(*notes)], rows)["png"]


def _axis(lines: Mapping[str, Sequence[_Point]]) -> Axis:
    values = sorted({point.x for points in lines.values() for point in points})
    return Axis.of("", [f"{value:g}" for value in values])


def _series(points: Sequence[_Point], axis: Axis, measure: str) -> Series:
    groups = {
        axis.places[f"{point.x:g}"]: point.group
        for point in points
        if measure in point.group.numbers
    }
    hollow = {place for place, group in groups.items() if not group.learned.comparable}
    return Series({place: group.numbers[measure] for place, group in groups.items()}, hollow=hollow)


def _floor_level(lines: Mapping[str, Sequence[_Point]], measure: str) -> list[Level]:
    """Return the mean floor of a panel's points; empty if it is unknown."""
    floors = [
        floor
        for points in lines.values()
        for point in points
        if (floor := _floor(point.group, measure))
    ]
    word = "chance" if measure == PLANTED else "floor"
    return [Level(f"{word} {(mean := sum(floors) / len(floors)):.1f}", mean)] if floors else []


def _floor(group: SeedGroup, measure: str) -> float | None:
    """Return what a system's outputs score without their sources, 0–100; None if unknown."""
    if measure == PLANTED:
        return group.numbers[_CHANCE].mean if _CHANCE in group.numbers else None
    floors = [
        run.evaluation.floor[measure] for run in group.runs if measure in run.evaluation.floor
    ]
    return sum(floors) / len(floors) if floors else None
