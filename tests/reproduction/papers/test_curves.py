"""Figures of curves: points by panel and line, as a table and as a picture."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.reproduction.paper_jobs import finished_run, judge, paper_job

from longsumbench.leaderboards.seed_groups import NOT_LEARNED, Learned
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers import published_rows
from longsumbench_reproduction.papers.curves import curves_page, paper_series
from longsumbench_reproduction.papers.page_model import Job
from longsumbench_reproduction.papers.paper_tables import PaperClaim, PaperRow, PaperTable

PNG = b"\x89PNG\r\n\x1a\n"


def figure(folder: Path, *, missing: str = "") -> Job:
    """A figure with two panels: one line with two points, and two lines with one."""
    rows, runs = {}, {}
    places = [
        ("(b) EA", "short", 24, 0.5),
        ("(b) EA", "long", 24, 0.6),
        ("(a) Trunc", "Trunc", 64, 0.4),
        ("(a) Trunc", "Trunc", 32, 0.3),
    ]
    for number, (panel, line, x, level) in enumerate(places):
        label = f"{line} {x}"
        rows[label] = PaperRow(panel=panel, line=line, x={"probe": x, "paper": 8 * x})
        changes = [-0.02, 0, 0.02, 0, 0, 0, -number / 100, number / 100]
        values = [level + change for change in changes]
        model = "trunc" if line == "Trunc" else "ea"
        run: RunRecord | None = finished_run(
            Results(folder), model, values, run_id=f"run{number}", facts=[0.5, 1.0] * 4
        )
        runs[label] = [None if label == missing else run]
    claims = (PaperClaim(orders=("Trunc 64 > Trunc 32",), source="Figure 4(a)"),)
    paper_table = PaperTable(
        "curves",
        "Lengths",
        "probe",
        {},
        {"arXiv": {}},
        rows,
        claims=claims,
        name="seal-figure4",
        prints="Figure 4",
        citation="SEAL",
        source="zhao2020seal",
    )
    return paper_job(paper_table, folder, runs)


def test_each_panel_is_a_table_of_its_points(tmp_path: Path) -> None:
    """A row has the line, the place on the horizontal axis at this scale, and the numbers."""
    blocks = {block.heading: block for block in curves_page(figure(tmp_path)).blocks}
    assert blocks.keys() == {"(a) Trunc", "(b) EA"}
    numbers = ("R-1", "R-2", "R-L", "facts stated\nright, %")
    assert blocks["(b) EA"].columns == ("line", "x", *numbers, "runs")
    rows = [f"{row[0]} {row[1]}: {row[2][:5]}{row[-1]}" for row in blocks["(a) Trunc"].rows]
    assert rows == ["Trunc 64: 40.0 1", "Trunc 32: 30.0 1"]
    assert [block.footnotes[0][:9] for block in blocks.values() if block.footnotes] == ["ROUGE F1,"]


def test_a_column_for_each_panel_of_the_paper(tmp_path: Path) -> None:
    """A series is a line of the paper, at the logarithm of its place; there is one PNG."""
    job = figure(tmp_path)
    assert curves_page(job).pictures["seal-figure4-curves.png"].startswith(PNG)
    drawn = paper_series(job, published_rows.read_row_means(job), ["rouge1", "fact_recall"])
    assert drawn.title == "Figure 4 of SEAL, at scale=probe"
    assert [row.measured for row in drawn.rows] == ["R-1 F1", "facts stated right, %"]
    trunc, ea = drawn.rows[0].panels
    assert (trunc.heading, ea.heading) == ("(a) Trunc", "(b) EA")
    assert trunc.ticks == {5: "32", 6: "64"}
    (line,) = trunc.series
    assert {place: round(point.mean) for place, point in line.points.items()} == {6: 40, 5: 30}
    assert [one.label for one in ea.series] == ["short", "long"]


def test_a_missing_point_is_left_out(tmp_path: Path) -> None:
    """The table says which run is missing, and there is no picture without any run."""
    job = figure(tmp_path, missing="long 24")
    block, _ = curves_page(job).blocks
    assert [(row[0], row[-1]) for row in block.rows] == [("short", "1"), ("long", "0 of 1")]
    nothing = replace(job, rows=tuple(row._replace(records=(None,)) for row in job.rows))
    page = curves_page(nothing)
    assert page.pictures == {}
    reason = "runs of Trunc 64 missing: 1 of 1; runs of Trunc 32 missing: 1 of 1"
    assert page.verdicts[0].reason == reason


def test_points_that_did_not_learn_are_hollow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note says so, and the CSV has the word and the lift."""
    job = figure(tmp_path)
    over = "Bands and whiskers: 95 % intervals over examples."
    assert paper_series(job, published_rows.read_row_means(job), ["rouge1"]).notes == [over]
    judge(monkeypatch, Learned(NOT_LEARNED, "3 %", 4.2, 3.4))
    drawn = paper_series(job, published_rows.read_row_means(job), ["rouge1"])
    assert drawn.notes == [f"{over} Hollow points: systems that did not learn."]
    assert drawn.rows[0].panels[0].series[0].hollow == {5, 6}
    lifts = curves_page(job).numbers.query("measure == 'lift'")
    assert set(lifts[["value", "outcome"]].itertuples(index=False)) == {(3.4, NOT_LEARNED)}
