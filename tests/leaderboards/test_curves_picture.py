"""The content of a sweep's picture and CSV, and that both are reproducible."""

import csv
import io
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from longsumbench.leaderboards.curves_picture import (
    Axis,
    draw_layout,
    layout_of,
    sweep_csv,
    update_curves,
)
from support.swept_runs import baseline, trained

from longsumbench.cli.main import main
from longsumbench.core import Cut, Truncation
from longsumbench.errors import UsageError
from longsumbench.leaderboards import curves
from longsumbench.leaderboards.curves import SweepCurves, sweep_of
from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NOT_LEARNED,
    UNKNOWN,
    Learned,
    ScoresOfRuns,
    SeedGroup,
)
from longsumbench.metrics.aggregate import Estimate, MeasureMean
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

PAGES = [
    trained("pagesum", 20 + place, page_size=size)
    for place, size in enumerate((128, 256, 512, 1024))
]
REFERENCES = [baseline("lead", 22), baseline("oracle", 60), trained("trunc", 21)]
GRID = [
    trained("seal", a / 10 + b, extractive=a, segment=b) for a in (64, 128, 256) for b in (1, 2)
]


def swept(records: Sequence[RunRecord], *words: str) -> SweepCurves:
    return sweep_of("arxiv", records, words)


def rows(found: SweepCurves) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sweep_csv(found))))


def words_in(image: bytes) -> list[str]:
    """The texts of an SVG, which are comments next to their outlines."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))  # noqa: S314 - our own picture
    root = ET.fromstring(image, parser)  # noqa: S314
    return [unescape((node.text or "").strip()) for node in root.iter() if node.tag is ET.Comment]


def keep(root: Path, *records: RunRecord) -> Results:
    for one in records:
        one.write(root / "runs" / one.dataset / one.model / one.run_id)
    return Results(root)


def test_powers_are_spaced_by_their_logarithms() -> None:
    """Each twice the one before: evenly; equal steps, and what begins with 0: as they are; words: evenly, in order."""
    assert Axis.of("x", ["128", "256", "1024"]).places == {"128": 7, "256": 8, "1024": 10}
    assert Axis.of("x", ["100", "200", "300", "400"]).places == {
        "100": 100,
        "200": 200,
        "300": 300,
        "400": 400,
    }
    assert Axis.of("x", ["1e-05", "0.0001"]).places["0.0001"] == pytest.approx(-13.29, abs=0.01)
    assert Axis.of("x", ["0", "1", "2", "8"]).places["8"] == 8
    by_words = Axis.of("x", ["2", "null", "all"])
    assert (by_words.places, by_words.words) == ({"2": 0, "null": 1, "all": 2}, True)


def test_what_is_drawn() -> None:
    """A line per system; systems without a page size are reference lines, and oracles are marked."""
    layout = layout_of(swept([*PAGES, *REFERENCES], "page_size"))
    (line,) = layout.lines
    assert {value: one.mean for value, one in line.plots[0].items()} == {
        "128": 20,
        "256": 21,
        "512": 22,
        "1024": 23,
    }
    references = [("lead 22.0", 22, False), ("oracle 60.0", 60, True), ("trunc 21.0", 21, False)]
    assert [tuple(level) for level in layout.references] == references
    assert (layout.title, layout.measured) == (
        "arxiv: ROUGE-Lsum F1 against page_size",
        "ROUGE-Lsum F1 (0–100)",
    )
    assert layout_of(swept(PAGES, "page_size"), "rouge2").lines[0].plots[0]["128"] == Estimate(
        11, 10, 11.6
    )


def test_of_a_system_beside_the_best_run_is_drawn() -> None:
    """Three runs of a system that has no page size are one line, which says so."""
    others = [
        trained("ea", score, segment=place) for place, score in enumerate((9, 19, 14), start=1)
    ]
    layout = layout_of(swept([*PAGES, *others], "page_size"))
    assert [(one.label, one.height) for one in layout.references] == [("ea (best of 3) 19.0", 19)]


def test_two_settings_of_one_system_are_lines() -> None:
    """The setting with more values is the axis; each value of the other is a line; one who varies neither is flat."""
    layout = layout_of(swept([*GRID, trained("ea", 9, segment=2)], "segment", "extractive"))
    assert layout.axis.name == "extractive"
    drawn = {
        line.label: {value: one.mean for value, one in line.plots[0].items()}
        for line in layout.lines
    }
    assert drawn == {
        "seal segment=2": {"64": 8.4, "128": 14.8, "256": 27.6},
        "seal segment=1": {"64": 7.4, "128": 13.8, "256": 26.6},
        "ea segment=2": {},
    }
    assert [line.flat[0].mean for line in layout.lines if line.flat[0]] == [9]


def test_two_settings_of_several_systems_are_plots() -> None:
    """Each value of the setting with fewer values has a plot; systems without it are in all plots."""
    others = [trained("tall", 50 + b, extractive=64, segment=b) for b in (1, 2)]
    wide = [trained("wide", a / 10, extractive=a) for a in (64, 128)]
    layout = layout_of(swept([*GRID, *others, *wide], "extractive", "segment"))
    assert (layout.axis.name, layout.headings) == ("extractive", ("segment=1", "segment=2"))
    drawn = {
        line.label: [{v: one.mean for v, one in plot.items()} for plot in line.plots]
        for line in layout.lines
    }
    assert drawn["tall"] == [{"64": 51}, {"64": 52}]
    assert drawn["wide"] == [{"64": 6.4, "128": 12.8}] * 2
    assert drawn["seal"][1] == {"64": 8.4, "128": 14.8, "256": 27.6}
    assert words_in(draw_layout(layout)["svg"]).count("extractive") == 2


def test_the_csv_has_a_row_for_each_system_and_value() -> None:
    """A row for each system and value: all numbers, the cost and the runs."""
    ledger = Truncation(200, 100, (Cut("page", 50, 9),))
    second = trained("pagesum", 24, seed=2, page_size=128, source=ledger)
    other = [trained("pagesum", 4, train={"max_steps": 9}, page_size=size) for size in (8, 4)]
    found = rows(swept([*PAGES, second, *other, baseline("lead", 22)], "page_size"))
    assert [(row["group"], row["system"], row["page_size"]) for row in found] == [
        *(("1", "pagesum", size) for size in ("128", "256", "512", "1024")),
        ("1 2", "lead", ""),
        *(("2", "pagesum", size) for size in ("4", "8")),
    ]
    first = found[0]
    assert (first["rougeLsum"], first["rougeLsum_lo"], first["rougeLsum_hi"]) == ("22.0", "", "")
    assert (first["seeds"], first["n"]) == ("1 2", "20")
    assert (first["train_seconds"], first["tokens_per_second"], first["source_seen"]) == (
        "60.0",
        "12.5",
        "75.0",
    )
    assert first["run_ids"].split() == [PAGES[0].run_id, second.run_id]
    assert found[1]["rouge1"] == "24.0"


def test_measures_stand_in_the_csv_and_can_be_drawn() -> None:
    """A measure by which runs are ranked is drawn; the cell of a run without it is empty."""
    runs = [
        trained("ea", 20, page_size=size, measures={"facts": MeasureMean(1.0, size - 1.0, 9.0, 5)})
        for size in (4, 8)
    ]
    without = trained("ea", 20, page_size=16)
    found = swept([*runs, without], "page_size")
    layout = layout_of(found)
    assert layout.measured == "facts (0–100)"
    assert layout.lines[0].plots[0] == {"4": (1, 3, 9), "8": (1, 7, 9)}
    assert [row["facts_lo"] for row in rows(found)] == ["3.0", "7.0", ""]


def test_update_writes_the_same_files_again(tmp_path: Path) -> None:
    """Writes CSV, PNG and SVG next to the leaderboard; a second call, or --kind with the default, changes nothing."""
    results = keep(tmp_path, *PAGES, *REFERENCES)
    written = update_curves(results, "arxiv", ["page_size"])
    assert [path.name for path in written] == [
        f"arxiv-page_size.{suffix}" for suffix in ("csv", "png", "svg")
    ]
    before = [path.read_bytes() for path in written]
    assert update_curves(results, "arxiv", ["model.page_size"], "rougeLsum") == written
    assert [path.read_bytes() for path in written] == before
    names = [path.name for path in update_curves(results, "arxiv", ["page_size"], "rouge2")]
    assert names == [
        "arxiv-page_size.csv",
        "arxiv-page_size-rouge2.png",
        "arxiv-page_size-rouge2.svg",
    ]
    assert [path.read_bytes() for path in written] == before


def test_nothing_to_draw_is_no_error_where_it_was_not_asked_for(tmp_path: Path) -> None:
    """At the end of a sweep of which one point is there, nothing is written."""
    results = keep(tmp_path, PAGES[0])
    assert update_curves(results, "arxiv", ["page_size"], required=False) == []
    with pytest.raises(UsageError):
        update_curves(results, "arxiv", ["page_size"])


def test_of_two_settings_the_one_that_varies_is_drawn(tmp_path: Path) -> None:
    """At the end of a sweep, the plot leaves out a setting if no two runs differ only in it.

    It is an error if the user asks for it.
    """
    cuts = {"spatial": "tokens", "document": "sentences"}
    records = [
        trained("pagesum", size / 10 + len(place), page_size=size, locality=place, cut=cut)
        for size in (64, 128)
        for place, cut in cuts.items()
    ]
    results, words = keep(tmp_path, *records), ["model.locality", "model.page_size"]
    written = update_curves(results, "arxiv", words, required=False)
    assert [path.name for path in written] == [
        f"arxiv-page_size.{suffix}" for suffix in ("csv", "png", "svg")
    ]
    with pytest.raises(UsageError, match=r"differ only in model\.locality"):
        update_curves(results, "arxiv", words)


def test_the_command_prints_the_table_and_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`leaderboard DATASET --against` prints the table and the files; an invalid setting is one line and exit 2."""
    keep(tmp_path, *GRID)
    place = ["--results-dir", str(tmp_path)]
    assert (
        main(
            [
                "leaderboard",
                "arxiv",
                *place,
                "--against",
                "segment",
                "--against",
                "model.extractive",
            ]
        )
        == 0
    )
    assert (
        capsys.readouterr().out.splitlines()[-1]
        == f"{tmp_path}/leaderboard/arxiv-segment-extractive.svg"
    )
    assert main(["leaderboard", *place]) == 0  # without it, pictures stay
    assert (tmp_path / "leaderboard" / "arxiv-segment-extractive.png").exists()
    capsys.readouterr()
    for wrong, said in (
        (["--against", "page"], "--against page: no run on arxiv has this setting"),
        (["--kind", "rouge1"], "--kind needs --against SETTING"),
        (["--against", "segment", "--measure", "recall"], "--measure is for the printed table"),
        (["--against", "segment", "--kind", "x"], "unknown measure 'x'"),
    ):
        assert main(["leaderboard", "arxiv", *place, *wrong]) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert printed.err.startswith(f"longsumbench: {said}")


ONE_SEED = "One seed, another may differ: pagesum"
OF_SEVERAL = "over examples (and seeds, where there are several)"


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Page size → whether the system learned; default: it did."""
    learned: dict[str, str] = {}

    def judge(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> dict[str, Learned]:
        sizes = {row.key: str(row.first.config["model"].get("page_size")) for row in rows}
        return {
            key: Learned(learned.get(size, LEARNED if size != "None" else ""))
            for key, size in sizes.items()
        }

    monkeypatch.setattr(curves, "judge_learning", judge)
    return learned


def test_points_that_may_not_have_learned_are_hollow(words: dict[str, str]) -> None:
    """A note says what hollow points are, only if there are some; a line of such points alone is grey with its word."""
    drawn = layout_of(swept([*PAGES, *REFERENCES], "page_size"))
    assert (drawn.lines[0].words(), "Hollow" in " ".join(drawn.notes)) == ([], False)
    words["128"] = UNKNOWN
    some = layout_of(swept(PAGES, "page_size"))
    assert some.lines[0].hollow == {0: {"128": UNKNOWN}}
    assert "Hollow points: systems of which it is not known whether they learned." in some.notes[0]
    assert "pagesum" in words_in(draw_layout(some)["svg"])
    words["256"] = NOT_LEARNED
    assert (
        "systems that did not learn or of which it is not known"
        in layout_of(swept(PAGES, "page_size")).notes[0]
    )
    words |= dict.fromkeys(("128", "256", "512", "1024"), NOT_LEARNED)
    grey = layout_of(swept(PAGES, "page_size"))
    assert "Hollow points: systems that did not learn." in grey.notes[0]
    assert "(not learned)" in " ".join(words_in(draw_layout(grey)["svg"]))


def test_the_note_says_over_what_intervals_are(words: dict[str, str]) -> None:
    """Over seeds only if there are several, everywhere or somewhere; systems of one seed are named."""
    again = [
        trained("pagesum", 22 + place, seed=2, page_size=run.config["model"]["page_size"])
        for place, run in enumerate(PAGES)
    ]
    one, some, several = (
        layout_of(swept(runs, "page_size")).notes[0]
        for runs in (PAGES, [*PAGES, *again[:1]], PAGES + again)
    )
    assert one.startswith(f"Bands and whiskers: 95 % intervals over examples. {ONE_SEED}")
    assert (OF_SEVERAL in some, ONE_SEED in some) == (True, True)
    assert several.startswith("Bands and whiskers: 95 % intervals over examples and seeds")
    assert "One seed" not in several
