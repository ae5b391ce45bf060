"""What is drawn of fact recall, how seeds are pooled, and that the same records give the same picture."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from support.run_records import TRAINED, measured, record

from longsumbench.leaderboards import recall
from longsumbench.leaderboards.recall import (
    ORACLE_PANELS,
    PANELS,
    RecallLine,
    best_of_models,
    draw_recall,
    headline,
    oracle_lines,
)
from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NO_INTERVAL,
    NOT_LEARNED,
    STILL_LEARNING,
    UNKNOWN,
    Learned,
)
from longsumbench.leaderboards.significance import comparable_rows
from longsumbench.leaderboards.table import Table
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.fact_recall import FactRecall
from longsumbench.metrics.oracle_recall import OracleRecall
from longsumbench.runs.record import RunRecord
from longsumbench.views.figures import GREY, Panel, PanelLine, PanelRow

MEASURE = "fact_recall_silent_distance_3"


def found(model: str, mean: float, **changes: object) -> RunRecord:
    """A run that stated `mean` percent of all facts right, at every place and distance."""
    measures = measured(dict.fromkeys(FactRecall.columns, mean), below=4, above=2)
    return record(model, mean, measures=measures | measured({"fact_recall_chance": 5.0}), **changes)


def picture(records: Sequence[RunRecord]) -> bytes:
    table = Table("toy", comparable_rows(records))
    return draw_recall(table.title(), table.lines())


def lines_of(records: Sequence[RunRecord]) -> tuple[RecallLine, ...]:
    return Table("toy", comparable_rows(records)).lines()


def test_what_is_drawn_is_what_the_metric_measures() -> None:
    """Every place of every panel is a column of fact recall, and no position or distance is left out."""
    drawn = [name for panel in PANELS for name in panel.places]
    assert drawn == [
        name for name in FactRecall.columns if "_position_" in name or "_distance_" in name
    ]


def test_seeds_are_one_line() -> None:
    """The mean of the seeds' means; without per-example scores, it has no whisker."""
    lines = lines_of(
        [found("seal", 60, seed=1), found("seal", 50, seed=2), found("trunc", 10, seed=1)]
    )
    assert [line.label for line in lines] == ["seal", "trunc"]
    assert lines[0].points[MEASURE] == Estimate(55.0, *NO_INTERVAL)
    assert lines[1].points[MEASURE] == Estimate(10.0, 6.0, 12.0)
    assert {line.chance for line in lines} == {5.0}


def test_what_is_not_one_system_is_not_pooled() -> None:
    """Variants are separate lines, and so are runs with other training settings, whose labels have these."""
    recipe = {
        "model": {},
        "train": {"batch_size": 16, "accumulation": 1, "max_steps": 100, "seed": 1},
    }
    longer = {**recipe, "train": {**recipe["train"], "max_steps": 200}}
    other_seed = {**recipe, "train": {**recipe["train"], "seed": 2}}
    lines = lines_of(
        [
            found("ea", 60, run_id="aaaaaaaaaaaa", seed=1, config=recipe, fit=TRAINED),
            found("ea", 60, run_id="bbbbbbbbbbbb", seed=2, config=other_seed, fit=TRAINED),
            found("ea", 50, run_id="cccccccccccc", seed=1, config=longer, fit=TRAINED),
            found("ea", 40, variant="num_beams=2,x=1", config=recipe),
        ]
    )
    assert [line.label for line in lines] == [
        "ea max_steps=100",
        "ea max_steps=200",
        "ea num_beams=2 x=1",
    ]


def test_a_model_has_one_line() -> None:
    """Its best row; the label has settings only if the model has other rows."""
    lines = lines_of(
        [
            found("ea", 60, variant="num_beams=2"),
            found("ea", 50),
            found("seal", 40, variant="page_size=9"),
        ]
    )
    assert [line.label for line in best_of_models(lines)] == ["ea num_beams=2", "seal"]


def points(**lows: float) -> list[RecallLine]:
    """Lines with intervals that begin there; the word of a system follows its name ("ea_learned")."""
    words = {
        "learned": LEARNED,
        "still": STILL_LEARNING,
        "not": NOT_LEARNED,
        "unknown": UNKNOWN,
        "": "",
    }
    return [
        RecallLine(
            model,
            model,
            {MEASURE: Estimate(low, low, 95 if low > 50 else 50)},
            5.0,
            learned=Learned(words[word]),
        )
        for (model, _, word), low in ((name.partition("_"), low) for name, low in lows.items())
    ]


ONLY_EA = "Facts: of the systems that learned, only ea finds them"
FOUR = "Facts: 4 of 5 systems that learned find them"


@pytest.mark.parametrize(
    ("lows", "title"),
    [
        ({"ea": 60, "seal": 50, "ca": 51}, "Facts: only ea and ca find them"),
        ({"ea": 60, "seal": 50}, "Facts: only ea finds them"),
        ({"ea": 60, "seal": 60}, "Facts: all systems find them"),
        ({"ea": 9, "seal": 9}, "Facts: no system finds them"),
        ({**dict.fromkeys("abcd", 60.0), "e": 9}, "Facts: 4 of 5 systems find them"),
        ({"ea": 60, "seal": float("nan")}, ""),
        (
            {"ea_learned": 60, "ca_learned": 9, "seal_still": 80},
            "Facts: of the systems that learned, only ea finds them",
        ),
        (
            {"ea_learned": 60, "ca_learned": 60, "seal_not": 9},
            "Facts: all systems that learned find them",
        ),
        (
            {"ea_learned": 9, "ca_learned": 9, "seal_still": 80},
            "Facts: no system that learned finds them",
        ),
        ({"ea_learned": 60, "ca_learned": 9, "lead": 70, "trunc_unknown": float("nan")}, ONLY_EA),
        (
            {
                **dict.fromkeys(("a_learned", "b_learned", "c_learned", "d_learned"), 60.0),
                "e_learned": 9,
                "f_not": 9,
            },
            FOUR,
        ),
        ({"ea_still": 60, "lead": 9}, ""),
    ],
)
def test_the_title_says_what_was_found(lows: dict[str, float], title: str) -> None:
    """It names the systems whose interval is above 50 % and that learned, and nobody if an interval is unknown."""
    assert headline("Facts", points(**lows), MEASURE) == title
    unmeasured = RecallLine("other", "other", {}, 5.0, learned=Learned(LEARNED))
    assert headline("Facts", [*points(**lows), unmeasured], MEASURE) == ""


def silent_by_distance(model: str, lows: Sequence[float], word: str = LEARNED) -> RecallLine:
    """A line whose intervals of silent facts begin there, by distance; single facts are at 99 %."""
    found = {
        measure: Estimate(low + 5, low, low + 9)
        for measure, low in zip(PANELS[-1].places, lows, strict=False)
    }
    return RecallLine(
        model,
        model,
        {"fact_recall_single_position_9": Estimate(99, 98, 100), **found},
        4.2,
        learned=Learned(word),
    )


class Drawn(NamedTuple):
    """What `draw_panels` is given."""

    title: str
    notes: Sequence[str]
    panels: Sequence[Panel]
    lines: Sequence[PanelLine]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[RecallLine]], Drawn]:
    """Return what is drawn of lines, instead of the picture."""
    given: list[Drawn] = []

    def draw_panels(title: str, notes: Sequence[str], rows: Sequence[PanelRow]) -> dict[str, bytes]:
        (row,) = rows
        given.append(Drawn(title, notes, row.panels, row.lines))
        return {"png": b""}

    monkeypatch.setattr(recall, "draw_panels", draw_panels)

    def draw(lines: Sequence[RecallLine]) -> Drawn:
        draw_recall("about", lines)
        return given[-1]

    return draw


def test_the_title_is_about_the_largest_distance_of_silent_facts(
    drawn: Callable[[Sequence[RecallLine]], Drawn],
) -> None:
    """A system that finds near facts and misses far ones is not named, and the title says which distance counts."""
    far, near = silent_by_distance("seal", [60] * 8), silent_by_distance("pagesum", [90] * 7 + [40])
    assert drawn([far, near]).title == "Silent facts, 7 sections apart: only seal finds them"
    far, near = (replace(line, points=dict([*line.points.items()][:3])) for line in (far, near))
    assert drawn([far, near]).title == "Silent facts, 1 section apart: all systems find them"


def test_systems_that_did_not_learn_are_grey(
    drawn: Callable[[Sequence[RecallLine]], Drawn],
) -> None:
    """The label has the word, a line below says what grey means, and the title does not name them."""
    learned, other = (
        silent_by_distance("seal", [60] * 8),
        silent_by_distance("trunc", [70] * 8, STILL_LEARNING),
    )
    title, (note,), panels, lines = drawn([other, learned])
    assert title == "Silent facts, 7 sections apart: all systems that learned find them"
    assert "Grey: systems that did not learn" in note
    grey = {line.label: line.style["color"] == GREY for line in lines}
    assert grey == {"seal": False, "trunc (still learning)": True}
    assert [level.label for level in panels[-1].levels] == ["guess of two", "chance 4.2"]
    assert "Grey" not in drawn([learned]).notes[0]


def copying(model: str, mean: float, **changes: object) -> RunRecord:
    """A run that copied `mean` percent of the oracle's sentences, at every place."""
    return record(
        model, mean, measures=measured(dict.fromkeys(OracleRecall.columns, mean)), **changes
    )


def test_oracle_recall_is_drawn_like_the_metric_measures_it() -> None:
    """Every place of both panels is a column of the metric; the others are no places."""
    drawn = [name for panel in ORACLE_PANELS for name in panel.places]
    assert drawn == [name for name in OracleRecall.columns if "_position_" in name]


def test_the_oracle_shows_where_it_looks_but_not_its_recall() -> None:
    """Its line is the first; it has no points where all of them would be 100; it alone has no picture."""
    runs = [copying("ea", 30), copying("lead", 20), copying("oracle", 100, oracle=True)]
    oracle, *lines = oracle_lines(comparable_rows(runs)[0].rows)
    assert oracle.label == "oracle"
    assert set(oracle.points) == set(ORACLE_PANELS[1].places)
    assert [line.label for line in lines] == ["ea", "lead"]
    assert [line.label for line in oracle_lines(comparable_rows(runs[:2])[0].rows)] == [
        "ea",
        "lead",
    ]
    assert oracle_lines(comparable_rows(runs[2:])[0].rows) == ()


def test_a_table_has_the_pictures_that_its_runs_have() -> None:
    """Fact recall and oracle recall have each their file, with a link; a run that copies nothing is drawn, too."""
    table = Table(
        "toy", comparable_rows([copying("ea", 30), copying("lead", 20), found("seal", 60)])
    )
    assert table.pictures() == ["toy-recall.png", "toy-oracle-recall.png"]
    files = table.files()
    for name in table.pictures():
        content = files[name]
        assert isinstance(content, bytes)
        assert content.startswith(b"\x89PNG")
        assert f"]({name})" in table.markdown()
    none = record(
        "trunc", 9, measures=measured({"oracle_recall": 0.0, "oracle_recall_position_0": 0.0})
    )
    assert Table("toy", comparable_rows([none])).files()["toy-oracle-recall.png"]
    assert Table("toy", comparable_rows([record("lead", 30)])).pictures() == []


def test_the_note_says_over_what_lines_are(drawn: Callable[[Sequence[RecallLine]], Drawn]) -> None:
    """Means are over seeds only where there are several, and baselines have none."""
    once = silent_by_distance("lead", [60] * 8)
    often = replace(silent_by_distance("seal", [60] * 8), several_seeds=True)
    for lines, over in (
        ([once], "examples,"),
        ([often], "examples and seeds,"),
        ([once, often], "examples (and seeds, "),
    ):
        assert f"Lines are means over {over}" in drawn(lines).notes[0]
