"""Figures of curves: points by panel and line, as a table and as a picture."""

from dataclasses import replace
from pathlib import Path

from support.paper_jobs import finished_run, paper_job

from longsumbench.papers.artifacts import Artifact, ArtifactRow, Ordering
from longsumbench.papers.numbers.curves import curves_page
from longsumbench.papers.page import REPRODUCED, UNDECIDED, Job
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

PNG = b"\x89PNG\r\n\x1a\n"


def figure(folder: Path, *, missing: str = "", facts: bool = True) -> Job:
    """A figure with two panels: one line with two points, and two lines with one."""
    rows, runs = {}, {}
    places = [("(b) EA", "short", 24, 0.5), ("(b) EA", "long", 24, 0.6), ("(a) Trunc", "Trunc", 64, 0.4)]
    places += [("(a) Trunc", "Trunc", 32, 0.3)]
    for number, (panel, line, x, level) in enumerate(places):
        label = f"{line} {x}"
        rows[label] = ArtifactRow(panel=panel, line=line, x={"probe": x, "paper": 8 * x})
        values = [level - 0.02, level, level + 0.02, level, level, level, level, level]
        measured = {"facts": [0.5, 1.0] * 4} if facts else {}
        model = "trunc" if line == "Trunc" else "ea"
        run: RunRecord | None = finished_run(Results(folder), model, values, run_id=f"run{number}", **measured)
        runs[label] = [None if label == missing else run]
    orderings = (Ordering("Trunc 64 > Trunc 32", source="Figure 4(a)"),)
    about = {"name": "seal-figure4", "prints": "Figure 4", "citation": "SEAL", "source": "zhao2020seal"}
    artifact = Artifact("curves", "Lengths", "probe", {}, {"arXiv": {}}, rows, orderings=orderings, **about)
    return paper_job(artifact, folder, runs)


def test_each_panel_is_a_table_of_its_points(tmp_path: Path) -> None:
    """A row has the line, the place on the horizontal axis at this scale, and the numbers."""
    blocks = {block.heading: block for block in curves_page(figure(tmp_path)).blocks}
    assert blocks.keys() == {"(a) Trunc", "(b) EA"}
    assert blocks["(b) EA"].columns == ("line", "x", "R-1", "R-2", "R-L", "facts stated\nright, %", "runs")
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


def test_claims_about_curves_are_tested(tmp_path: Path) -> None:
    """Orderings of two points have verdicts, on ROUGE and on planted facts, and are in the CSV."""
    found = curves_page(figure(tmp_path))
    outcomes = {one.measure: one.outcome for one in found.verdicts}
    assert outcomes == {"rouge1": REPRODUCED, "fact_recall": UNDECIDED}
    kinds = list(found.numbers["kind"])
    assert kinds == ["ours"] * 16 + ["verdict"] * 2  # 4 points with 4 measures


def test_without_planted_facts_only_rouge_is_drawn(tmp_path: Path) -> None:
    """The picture has a row of plots for each measure, so it is lower without facts."""

    def height(picture: bytes) -> int:
        return int.from_bytes(picture[20:24], "big")  # of a PNG's header

    both, rouge = (curves_page(figure(tmp_path / str(facts), facts=facts)).pictures for facts in (True, False))
    (one,), (other,) = both.values(), rouge.values()
    assert height(other) < height(one)
