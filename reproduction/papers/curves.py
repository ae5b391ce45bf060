"""Figures of curves: a plot for each panel, a line for each system, drawn and as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from longsumbench.leaderboards.comparability import (
    PLANTED,
    ROUGE_HEADINGS,
    ROUGE_STATISTICS,
    find_heading,
)
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.views.footnotes import describe_intervals, describe_mark, join
from longsumbench.views.series import (
    Panel,
    PanelRow,
    Series,
    SeriesFigure,
    draw_series,
    place_numbers,
)
from longsumbench.views.tables import Block
from longsumbench_reproduction.papers import published_rows
from longsumbench_reproduction.papers.claims import OURS
from longsumbench_reproduction.papers.conditions import build_row_page, compare_texts
from longsumbench_reproduction.papers.page_model import Job, Page, RowRuns

_CHANCE = f"{PLANTED}_chance"


class _Point(NamedTuple):
    x: float
    group: ResultRow


def curves_page(job: Job) -> Page:
    """Return the page of a figure: the picture, a table of its points, and the verdicts."""
    means = published_rows.read_row_means(job)
    measures, verdicts = (
        published_rows.measures_shown(job, means),
        published_rows.decide_claims(job, means),
    )
    numbers = []
    for (label, dataset), group in means.groups.items():
        for measure in measures:
            if measure in group.means:
                number = group.means[measure]
                numbers.append(means.table_number(OURS, label, dataset, measure, number))
    pictures = {}
    if means.groups:
        figure = paper_series(job, means, measures)
        pictures[f"{job.paper_table.name}-curves.png"] = draw_series(figure)["png"]
    numbers += means.learned_numbers()
    blocks = _panel_blocks(job, means, measures)
    return replace(build_row_page(job, means, blocks, numbers, verdicts), pictures=pictures)


def _panel_blocks(
    job: Job, means: published_rows.RowMeans, measures: Sequence[str]
) -> tuple[Block, ...]:
    """Return a table for each panel; the last has the sentences about the numbers."""
    # Rows of a panel follow each other in the paper's order
    panels: dict[str, list[RowRuns]] = {}
    for row in job.rows:
        panels.setdefault(_panel_name(job, row), []).append(row)
    blocks = [_panel_block(job, means, rows, measures) for rows in panels.values()]
    if means.groups:
        texts = [compare_texts(job, dataset) for dataset in job.datasets]
        footnotes = (*means.describe_numbers(job.paper_table.part), *filter(None, texts))
        blocks[-1] = replace(blocks[-1], footnotes=footnotes)
    return tuple(blocks)


def _panel_block(
    job: Job, means: published_rows.RowMeans, rows: Sequence[RowRuns], measures: Sequence[str]
) -> Block:
    cells = []
    for row in rows:
        estimates = [means.number(row.label, row.dataset, measure) for measure in measures]
        numbers = [f"{number:.1f}" if number else "" for number in estimates]
        learned = means.learned_cells(row.label, row.dataset)
        name, x = _line_name(row), f"{_x(job, row):g}"
        cells.append([name, x, *numbers, *learned, published_rows.count_runs(row)])
    headings = [_heading(measure).replace(" right", "\nright") for measure in measures]
    columns = ("line", "x", *headings, *published_rows.LEARNED_COLUMNS, "runs")
    align = "lr" + "r" * len(measures) + "lrrr"
    return Block(_panel_name(job, rows[0]), (), columns, align, cells).without_empty_columns()


def _line_name(row: RowRuns) -> str:
    """Return the name of a row's line; settings of its system are filled in: "{extractive_length} tokens"."""
    line = row.row.line
    return line.format(**vars(row.points[0].config.model)) if "{" in line else line


def _panel_name(job: Job, row: RowRuns) -> str:
    return f"{row.row.panel}, {row.dataset}" if len(job.datasets) > 1 else row.row.panel


def _x(job: Job, row: RowRuns) -> float:
    return row.row.x[job.scale]


def _heading(measure: str) -> str:
    return published_rows.FACTS_HEADING if measure == PLANTED else find_heading(measure)


def paper_series(job: Job, means: published_rows.RowMeans, measures: Sequence[str]) -> SeriesFigure:
    """Return the figure: a column for each panel of the paper; a row for its first measure, and one for planted facts."""
    panels: dict[str, dict[str, list[_Point]]] = {}
    groups = []
    for row in job.rows:
        group = means.groups.get((row.label, row.dataset))
        if group:
            groups.append(group)
            lines = panels.setdefault(_panel_name(job, row), {})
            lines.setdefault(_line_name(row), []).append(_Point(_x(job, row), group))
    panel_rows: list[PanelRow] = []
    for measure in dict.fromkeys([job.paper_table.measures[0], PLANTED]):
        if measure in measures:
            plots = []
            for name in sorted(panels):
                heading = "" if panel_rows else name.replace(": ", "\n")
                plots.append(_panel(heading, panels[name], measure))
            statistic = ROUGE_STATISTICS[job.paper_table.part] if measure in ROUGE_HEADINGS else ""
            panel_rows.append(PanelRow(join(_heading(measure), statistic), plots))
    over = describe_intervals([len(group.runs) > 1 for group in groups])
    words = {group.learned.word for group in groups if not group.learned.comparable}
    note = join(
        f"Bands and whiskers: 95 % intervals over {over}.", describe_mark("Hollow points", words)
    )
    title = f"{job.paper_table.prints} of {job.paper_table.citation}, at scale={job.scale}"
    return SeriesFigure(title, panel_rows, [note])


def _panel(heading: str, lines: Mapping[str, Sequence[_Point]], measure: str) -> Panel:
    """Return a panel with the lines, and the mean floor of its points if it is known."""
    numbers: set[float] = set()
    floors = []
    for points in lines.values():
        numbers.update(point.x for point in points)
        floors += [_floor(point.group, measure) for point in points]
    ordered = sorted(numbers)
    # Doublings are equally far from each other
    places = dict(zip(ordered, place_numbers(ordered), strict=True))
    known = [floor for floor in floors if floor]
    # The floor of a panel is the mean of its points' floors
    levels = {}
    if known:
        levels["chance" if measure == PLANTED else "floor"] = sum(known) / len(known)
    series = []
    for label, points in lines.items():
        measured = {places[x]: group for x, group in points if measure in group.means}
        estimates = {place: group.means[measure] for place, group in measured.items()}
        hollow = {place for place, group in measured.items() if not group.learned.comparable}
        series.append(
            Series(label, points[0].group.representative.key.model, estimates, hollow=hollow)
        )
    return Panel(heading, "", {places[x]: f"{x:g}" for x in ordered}, series, levels)


def _floor(group: ResultRow, measure: str) -> float | None:
    """Return what a system's outputs score without their sources, 0–100; None if unknown."""
    if measure == PLANTED:
        return group.means[_CHANCE].mean if _CHANCE in group.means else None
    floors = [
        run.evaluation.floor[measure] for run in group.runs if measure in run.evaluation.floor
    ]
    return sum(floors) / len(floors) if floors else None
