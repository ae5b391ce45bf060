"""The data of a sweep's figure, its CSV, and that the files are reproducible."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.commands import Command
from support.swept_runs import baseline, trained

from longsumbench.core import Cut, Truncation
from longsumbench.errors import UsageError
from longsumbench.leaderboards import curves
from longsumbench.leaderboards.curves import SweepCurves, build_sweep
from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NOT_LEARNED,
    UNKNOWN,
    Learned,
    ResultRow,
    ScoresOfRuns,
)
from longsumbench.metrics.aggregate import Estimate, MeasureMean
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.curves import curves_figure, sweep_csv, update_curves
from longsumbench.views.series import Panel, Series

PAGES = [
    trained("pagesum", 20 + place, page_size=size)
    for place, size in enumerate((128, 256, 512, 1024))
]
REFERENCES = [baseline("lead", 22), baseline("oracle", 60), trained("trunc", 21)]
GRID = [
    trained("seal", a / 10 + b, extractive=a, segment=b) for a in (64, 128, 256) for b in (1, 2)
]


def swept(records: Sequence[RunRecord], *words: str) -> SweepCurves:
    return build_sweep("arxiv", records, words)


def rows(sweep: SweepCurves) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sweep_csv(sweep))))


def panels(records: Sequence[RunRecord], *words: str) -> Sequence[Panel]:
    return curves_figure(swept(records, *words)).rows[0].panels


def means(series: Series) -> Mapping[float, float]:
    """Mean by position; positions are logarithms to the base 2."""
    return {place: number.mean for place, number in series.points.items()}


def keep(root: Path, *records: RunRecord) -> Results:
    for one in records:
        one.write(root / "runs" / one.key.dataset / one.key.model / one.run_id)
    return Results(root)


def test_a_line_per_system() -> None:
    """Systems without a page size are across the panel, the best of a model once; oracles are grey."""
    others = [trained("ea", score, segment=score) for score in (9, 19)]
    figure = curves_figure(swept([*PAGES, *REFERENCES, *others], "page_size"))
    (panel,) = figure.rows[0].panels
    line, *references = panel.series
    assert means(line) == {7: 20, 8: 21, 9: 22, 10: 23}
    assert panel.ticks == {7: "128", 8: "256", 9: "512", 10: "1024"}
    assert [(one.label, one.across and one.across.mean, one.grey) for one in references] == [
        ("ea (best of 2) 19.0", 19, False),
        ("lead 22.0", 22, False),
        ("oracle 60.0 (saw the references)", 60, True),
        ("trunc 21.0", 21, False),
    ]
    assert figure.title == "arxiv: ROUGE-Lsum F1 against page_size"
    assert figure.rows[0].measured == "ROUGE-Lsum F1 (0–100)"
    other = curves_figure(swept(PAGES, "page_size"), "rouge2").rows[0].panels[0].series[0]
    assert figure.notes[0] == "test split, 20 examples. Equal budget: 300 steps × 8 examples."
    assert other.points[7] == Estimate(11, 10, 11.6)


def test_words_are_in_order() -> None:
    """If a value is a word, values have equal distances; of many values, some have no label."""
    words = [trained("ea", 9, size=size) for size in ("all", 8, 2)]
    assert panels(words, "size")[0].ticks == {0: "2", 1: "8", 2: "all"}
    many = [trained("ea", 9, size=size) for size in range(1, 31)]
    assert list(panels(many, "size")[0].ticks.values())[:3] == ["1", "4", "7"]


def test_two_settings_of_one_system_are_lines() -> None:
    """The setting with more values is the axis; each value of the other is a line; one who varies neither is flat."""
    (panel,) = panels([*GRID, trained("ea", 9, segment=2)], "segment", "extractive")
    assert panel.axis == "extractive"
    assert {line.label: means(line) for line in panel.series} == {
        "seal segment=2": {6: 8.4, 7: 14.8, 8: 27.6},
        "seal segment=1": {6: 7.4, 7: 13.8, 8: 26.6},
        "ea segment=2": {},
    }
    assert [line.across.mean for line in panel.series if line.across] == [9]


def test_the_csv_has_a_row_for_each_system_and_value() -> None:
    """A row for each system and value: all numbers, the cost and the runs."""
    ledger = Truncation(200, 100, (Cut("page", 50, 9),))
    second = trained("pagesum", 24, seed=2, page_size=128, source=ledger)
    other = [trained("pagesum", 4, signature="other", page_size=size) for size in (8, 4)]
    sweep = swept([*PAGES[:2], second, *other, baseline("lead", 22)], "page_size")
    points = [f"{row['group']} {row['system']} {row['page_size']}" for row in rows(sweep)]
    assert points == ["1 pagesum 128", "1 pagesum 256", "1 lead ", "2 pagesum 4", "2 pagesum 8"]
    expected = """rougeLsum=22.0 rougeLsum_lo= n=20 train_seconds=60.0 tokens_per_second=12.5 source_seen=75.0"""
    cells = dict(pair.split("=") for pair in expected.split())
    cells |= {"seeds": "1 2", "run_ids": f"{PAGES[0].run_id} {second.run_id}"}
    assert rows(sweep)[0].items() >= cells.items()


def test_a_measure_by_which_runs_are_ranked_is_drawn() -> None:
    """Its cell in the CSV is empty for a run without it."""
    runs = [
        trained("ea", 20, page_size=size, measures={"facts": MeasureMean(1.0, size - 1.0, 9.0, 5)})
        for size in (4, 8)
    ]
    sweep = swept([*runs, trained("ea", 20, page_size=16)], "page_size")
    (row,) = curves_figure(sweep).rows
    assert row.measured == "facts (0–100)"
    assert row.panels[0].series[0].points == {2: (1, 3, 9), 3: (1, 7, 9)}
    assert [cells["facts_lo"] for cells in rows(sweep)] == ["3.0", "7.0", ""]


def test_update_writes_the_same_files_again(tmp_path: Path) -> None:
    """Writes CSV, PNG and SVG; a second call changes nothing; pictures of another number have its name."""
    results = keep(tmp_path, *PAGES, *REFERENCES)
    written = update_curves(results, "arxiv", ["page_size"])
    assert [path.name for path in written] == [
        f"arxiv-page_size.{suffix}" for suffix in ("csv", "png", "svg")
    ]
    before = [path.read_bytes() for path in written]
    assert update_curves(results, "arxiv", ["model.page_size"], "rougeLsum") == written
    other = update_curves(results, "arxiv", ["page_size"], "rouge2")
    assert other[1].name == "arxiv-page_size-rouge2.png"
    assert [path.read_bytes() for path in written] == before


def test_a_sweep_draws_the_settings_that_vary(tmp_path: Path) -> None:
    """At its end, a setting in which alone no two runs differ is left out; it is an error if the user asks for it."""
    cuts = {"spatial": "tokens", "document": "sentences"}
    records = [
        trained("pagesum", size / 10 + len(place), page_size=size, locality=place, cut=cut)
        for size in (64, 128)
        for place, cut in cuts.items()
    ]
    results, words = keep(tmp_path, *records), ["model.locality", "model.page_size"]
    written = update_curves(results, "arxiv", words, required=False)
    assert written[0].name == "arxiv-page_size.csv"
    assert update_curves(results, "arxiv", words[:1], required=False) == []
    with pytest.raises(UsageError, match=r"differ only in model\.locality"):
        update_curves(results, "arxiv", words)


def test_the_command_prints_the_files(tmp_path: Path, run_command: Command) -> None:
    """`leaderboard DATASET --against` names the files; an invalid setting is one line and exit 2."""
    keep(tmp_path, *GRID)
    command = ["leaderboard", "arxiv", "--results-dir", str(tmp_path)]
    last = run_command(
        0, *command, "--against", "segment", "--against", "model.extractive"
    ).out.splitlines()[-1]
    assert last == f"{tmp_path}/leaderboard/arxiv-segment-extractive.svg"
    for wrong, message in (
        ("--against page", "--against page: no run on arxiv has this setting"),
        ("--kind rouge1", "--kind needs --against SETTING"),
    ):
        printed = run_command(2, *command, *wrong.split())
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert printed.err.startswith(f"longsumbench: {message}")


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Page size → whether the system learned; default: it did."""
    learned: dict[str, str] = {}

    def judge(groups: Sequence[ResultRow], scores: ScoresOfRuns) -> dict[str, Learned]:
        sizes = {
            group.key: str(group.representative.config.model.get("page_size")) for group in groups
        }
        return {key: Learned(learned.get(size, LEARNED)) for key, size in sizes.items()}

    monkeypatch.setattr(curves, "gate_rows", judge)
    return learned


def test_points_that_may_not_have_learned_are_hollow(words: dict[str, str]) -> None:
    """A note says what hollow points are; a line of such points alone is grey with its word."""
    words["128"] = UNKNOWN
    figure = curves_figure(swept(PAGES, "page_size"))
    (line,) = figure.rows[0].panels[0].series
    assert (line.hollow, line.label, line.grey) == ({7}, "pagesum", False)
    note = "Hollow points: systems of which it is not known whether they learned."
    assert note in figure.notes[1]
    words |= dict.fromkeys(("128", "256", "512", "1024"), NOT_LEARNED)
    (panel,) = panels(PAGES, "page_size")
    assert (panel.series[0].label, panel.series[0].grey) == ("pagesum (not learned)", True)
