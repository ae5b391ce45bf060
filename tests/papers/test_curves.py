"""Figures of curves: points by panel and line, as a table and as a picture."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.paper_jobs import finished_run, paper_job

from longsumbench.leaderboards.seed_groups import NOT_LEARNED, Learned, ScoresOfRuns, SeedGroup
from longsumbench.papers.curves import curves_page
from longsumbench.papers.page import Job
from longsumbench.papers.paper_tables import PaperClaim, PaperRow, PaperTable
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

PNG = b"\x89PNG\r\n\x1a\n"


def figure(folder: Path, *, missing: str = "", facts: bool = True) -> Job:
    """A figure with two panels: one line with two points, and two lines with one."""
    rows, runs = {}, {}
    places = [
        ("(b) EA", "short", 24, 0.5),
        ("(b) EA", "long", 24, 0.6),
        ("(a) Trunc", "Trunc", 64, 0.4),
    ]
    places += [("(a) Trunc", "Trunc", 32, 0.3)]
    for number, (panel, line, x, level) in enumerate(places):
        label = f"{line} {x}"
        rows[label] = PaperRow(panel=panel, line=line, x={"probe": x, "paper": 8 * x})
        values = [
            level - 0.02,
            level,
            level + 0.02,
            level,
            level,
            level,
            level - number / 100,
            level + number / 100,
        ]
        measured: dict[str, Any] = {"facts": [0.5, 1.0] * 4} if facts else {}
        model = "trunc" if line == "Trunc" else "ea"
        run: RunRecord | None = finished_run(
            Results(folder), model, values, run_id=f"run{number}", **measured
        )
        runs[label] = [None if label == missing else run]
    claims = (PaperClaim(orders=("Trunc 64 > Trunc 32",), source="Figure 4(a)"),)
    about: dict[str, Any] = {
        "name": "seal-figure4",
        "prints": "Figure 4",
        "citation": "SEAL",
        "source": "zhao2020seal",
    }
    paper_table = PaperTable(
        "curves", "Lengths", "probe", {}, {"arXiv": {}}, rows, claims=claims, **about
    )
    return paper_job(paper_table, folder, runs)


def test_each_panel_is_a_table_of_its_points(tmp_path: Path) -> None:
    """A row has the line, the place on the horizontal axis at this scale, and the numbers."""
    blocks = {block.heading: block for block in curves_page(figure(tmp_path)).blocks}
    assert blocks.keys() == {"(a) Trunc", "(b) EA"}
    assert blocks["(b) EA"].columns == (
        "line",
        "x",
        "R-1",
        "R-2",
        "R-L",
        "facts stated\nright, %",
        "runs",
    )
    assert [(row[0], row[1], row[2][:5], row[-1]) for row in blocks["(a) Trunc"].rows] == [
        ("Trunc", "64", "40.0 ", "1"),
        ("Trunc", "32", "30.0 ", "1"),
    ]
    assert [block.footnotes[0][:9] for block in blocks.values() if block.footnotes] == ["ROUGE F1,"]


def test_the_picture_is_the_same_for_the_same_runs(tmp_path: Path) -> None:
    """There is one PNG; it depends on the runs only, and a missing run changes it."""
    first, again = (curves_page(figure(tmp_path / name)).pictures for name in ("one", "two"))
    other = curves_page(figure(tmp_path / "three", missing="long 24")).pictures
    assert list(first) == ["seal-figure4-curves.png"]
    assert first["seal-figure4-curves.png"].startswith(PNG)
    assert first == again
    assert other != first


def test_a_missing_point_is_left_out(tmp_path: Path) -> None:
    """The table says which run is missing, and there is no picture without any run."""
    job = figure(tmp_path, missing="long 24")
    rows = [row for block in curves_page(job).blocks for row in block.rows]
    assert [row[-1] for row in rows if row[0] == "long"] == ["0 of 1"]
    nothing = replace(job, rows=tuple(row._replace(records=(None,)) for row in job.rows))
    found = curves_page(nothing)
    assert found.pictures == {}
    (verdict,) = found.verdicts
    assert verdict.reason == "runs of Trunc 64 missing: 1 of 1; runs of Trunc 32 missing: 1 of 1"


def test_points_that_did_not_learn_are_hollow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They look different, and their row has the word, the floor and the lift, also in the CSV."""
    learned = curves_page(figure(tmp_path / "learned")).pictures

    def judged(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> dict[str, Learned]:
        return {row.key: Learned(NOT_LEARNED, "3 %", 4.2, 3.4) for row in rows}

    monkeypatch.setattr("longsumbench.papers.printed.judge_learning", judged)
    found = curves_page(figure(tmp_path / "not"))
    assert found.pictures != learned
    assert {row[-4:-1] for block in found.blocks for row in map(tuple, block.rows)} == {
        (NOT_LEARNED, "4.2", "3")
    }
    lifts = found.numbers[found.numbers["measure"] == "lift"]
    assert set(zip(lifts["value"], lifts["outcome"], strict=True)) == {(3.4, NOT_LEARNED)}
    assert [one.outcome for one in found.verdicts] == [NOT_LEARNED]


def test_the_note_is_about_what_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hollow points and dashed levels are explained only if there are some; all runs here have one seed."""
    notes: list[str] = []

    def drawn(title: str, lines: Sequence[str], rows: object) -> dict[str, bytes]:
        notes.extend(lines)
        return {"png": PNG}

    def judged(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> dict[str, Learned]:
        return {row.key: Learned(NOT_LEARNED, "3 %", 4.2, 3.4) for row in rows}

    monkeypatch.setattr("longsumbench.papers.curves.draw_panels", drawn)
    curves_page(figure(tmp_path / "learned"))
    monkeypatch.setattr("longsumbench.papers.printed.judge_learning", judged)
    curves_page(figure(tmp_path / "not"))
    over = "Bands and whiskers: 95 % intervals over examples."
    assert notes[1] == f"{over} Hollow points: systems that did not learn."
    assert ("Dashed" in notes[0], "did not learn" in notes[0]) == (False, False)
