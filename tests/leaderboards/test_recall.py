"""What is drawn of fact recall and oracle recall, how seeds are pooled, and what a title says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from support.run_records import TRAINED, measured, record

from longsumbench.leaderboards.recall import (
    ORACLE_PANELS,
    PANELS,
    RecallLine,
    best_of_models,
    facts_figure,
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
    SeedGroup,
)
from longsumbench.leaderboards.significance import comparable_rows
from longsumbench.leaderboards.table import Table
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.fact_recall import FactRecall
from longsumbench.metrics.oracle_recall import OracleRecall
from longsumbench.runs.record import RunRecord
from longsumbench.views.series import SeriesFigure

MEASURE = "fact_recall_silent_distance_3"
CHANCE = {"fact_recall_chance": Estimate(4.2, 4, 5)}


def stating(model: str, mean: float, **changes: object) -> RunRecord:
    """A run that stated `mean` percent of all facts right, at every place and distance."""
    measures = measured(dict.fromkeys(FactRecall.columns, mean), below=4, above=2)
    return record(model, mean, measures=measures | measured({"fact_recall_chance": 5.0}), **changes)


def copying(model: str, mean: float, **changes: object) -> RunRecord:
    """A run that copied `mean` percent of the oracle's sentences, at every place."""
    measures = measured(dict.fromkeys(OracleRecall.columns, mean))
    return record(model, mean, measures=measures, **changes)


def lines_of(records: Sequence[RunRecord]) -> list[RecallLine]:
    return Table("toy", comparable_rows(records)).lines()


def line(
    model: str, numbers: Mapping[str, Estimate], word: str = LEARNED, seeds: int = 1
) -> RecallLine:
    runs = (record(model, 9),) * seeds
    return RecallLine(model, SeedGroup(runs, numbers=numbers, learned=Learned(word)))


def test_every_place_is_measured() -> None:
    """Every place of every panel is a column of its metric, and no position or distance is left out."""
    for panels, metric in ((PANELS, FactRecall), (ORACLE_PANELS, OracleRecall)):
        drawn = [name for panel in panels for name in panel.places]
        assert drawn == [
            name for name in metric.columns if "_position_" in name or "_distance_" in name
        ]


def test_seeds_are_one_line() -> None:
    """The mean of the seeds' means; without per-example scores, it has no whisker."""
    lines = lines_of(
        [stating("seal", 60, seed=1), stating("seal", 50, seed=2), stating("trunc", 10, seed=1)]
    )
    assert [one.label for one in lines] == ["seal", "trunc"]
    numbers = [one.row.numbers for one in lines]
    assert numbers[0][MEASURE] == Estimate(55.0, *NO_INTERVAL)
    assert numbers[1][MEASURE] == Estimate(10.0, 6.0, 12.0)


def test_a_model_has_one_line() -> None:
    """Its best row; the label has settings only if the model has other rows."""
    lines = lines_of(
        [
            stating("ea", 60, variant="num_beams=2"),
            stating("ea", 50),
            stating("seal", 40, variant="page_size=9"),
        ]
    )
    assert [one.label for one in best_of_models(lines)] == ["ea num_beams=2", "seal"]


WORDS = {
    "learned": LEARNED,
    "still": STILL_LEARNING,
    "not": NOT_LEARNED,
    "unknown": UNKNOWN,
    "": "",
}
ONLY_EA = "Facts: of the systems that learned, only ea finds them"
FOUND = ("a_learned", "b_learned", "c_learned", "d_learned")
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
        ({"ea_learned": 60, "ca_learned": 9, "seal_still": 80}, ONLY_EA),
        (
            {"ea_learned": 60, "ca_learned": 60, "seal_not": 9},
            "Facts: all systems that learned find them",
        ),
        (
            {"ea_learned": 9, "ca_learned": 9, "seal_still": 80},
            "Facts: no system that learned finds them",
        ),
        ({"ea_learned": 60, "ca_learned": 9, "lead": 70, "trunc_unknown": float("nan")}, ONLY_EA),
        ({**dict.fromkeys(FOUND, 60.0), "e_learned": 9, "f_not": 9}, FOUR),
        ({"ea_still": 60, "lead": 9}, ""),
    ],
)
def test_the_title_says_what_was_found(lows: dict[str, float], title: str) -> None:
    """It names the systems whose interval is above 50 % and that learned, and nobody if an interval is unknown."""
    lines = []
    for name, low in lows.items():
        model, _, word = name.partition("_")
        number = Estimate(low, low, 95 if low > 50 else 50)
        lines.append(line(model, {MEASURE: number}, WORDS[word]))
    assert headline("Facts", lines, MEASURE) == title
    assert headline("Facts", [*lines, line("other", {})], MEASURE) == ""


def silent_by_distance(
    model: str, lows: Sequence[float], word: str = LEARNED, seeds: int = 1
) -> RecallLine:
    """A line whose intervals of silent facts begin there, by distance; single facts are at 99 %."""
    numbers = {"fact_recall_single_position_9": Estimate(99, 98, 100), **CHANCE}
    for measure, low in zip(PANELS[-1].places, lows, strict=False):
        numbers[measure] = Estimate(low + 5, low, low + 9)
    return line(model, numbers, word, seeds)


def figure_of(*lines: RecallLine) -> SeriesFigure:
    return facts_figure("about", lines)


def test_the_title_is_about_the_largest_distance_of_silent_facts() -> None:
    """A system that finds near facts and misses far ones is not named, and the title says which distance counts."""
    far, near = silent_by_distance("seal", [60] * 8), silent_by_distance("pagesum", [90] * 7 + [40])
    title = "Silent facts, 7 sections apart: only seal finds them"
    assert figure_of(far, near).title == title
    far, near = (silent_by_distance(model, [60] * 2) for model in ("seal", "pagesum"))
    assert figure_of(far, near).title == "Silent facts, 1 section apart: all systems find them"


def test_systems_that_did_not_learn_are_grey() -> None:
    """The label has the word, a line below says what grey means, and the title does not name them."""
    learned = silent_by_distance("seal", [60] * 8)
    figure = figure_of(silent_by_distance("trunc", [70] * 8, STILL_LEARNING), learned)
    title = "Silent facts, 7 sections apart: all systems that learned find them"
    assert figure.title == title
    assert "Grey: systems that did not learn" in figure.notes[0]
    silent = figure.rows[0].panels[-1]
    grey = {series.label: series.grey for series in silent.series}
    assert grey == {"seal": False, "trunc (still learning)": True}
    assert silent.levels == {"guess of two": 50, "chance 4.2": 4.2}
    assert "Grey" not in figure_of(learned).notes[0]


def test_one_trained_seed_is_no_title() -> None:
    """Another seed may give another number: the note names the system, and the title is the topic."""
    seal = silent_by_distance("seal", [60] * 8)
    run = record("seal", 9, seed=1, fit=TRAINED)
    figure = figure_of(replace(seal, row=replace(seal.row, runs=(run,))))
    assert figure.title == "about"
    assert "One seed, another may differ: seal." in figure.notes[0]


def test_wide_intervals_have_no_band() -> None:
    """A note says what dashed lines are, only if there are some."""
    vague = line("seal", {MEASURE: Estimate(50, 10, 90)})
    figure = figure_of(vague)
    assert [series.band for series in figure.rows[0].panels[0].series] == [False]
    assert "Dashed lines: intervals of more than 60 points" in figure.notes[0]
    assert "Dashed" not in figure_of(silent_by_distance("seal", [60] * 8)).notes[0]


@pytest.mark.parametrize(
    ("seeds", "over"),
    [((1,), "examples,"), ((2,), "examples and seeds,"), ((1, 2), "examples (and seeds, ")],
)
def test_the_note_says_over_what_lines_are(seeds: Sequence[int], over: str) -> None:
    """Means are over seeds only where there are several, and baselines have none."""
    lines = [silent_by_distance(f"s{number}", [60] * 8, "", number) for number in seeds]
    assert f"Lines are means over {over}" in figure_of(*lines).notes[0]


def test_the_oracle_shows_where_it_looks_but_not_its_recall() -> None:
    """Its line is the first; it has no points where all of them would be 100; it alone has no picture."""
    runs = [copying("ea", 30), copying("lead", 20), copying("oracle", 100, oracle=True)]
    oracle, *lines = oracle_lines(comparable_rows(runs)[0].rows)
    assert oracle.label == "oracle"
    assert set(oracle.row.numbers) == set(ORACLE_PANELS[1].places)
    assert [one.label for one in lines] == ["ea", "lead"]
    assert [one.label for one in oracle_lines(comparable_rows(runs[:2])[0].rows)] == [
        "ea",
        "lead",
    ]
    assert oracle_lines(comparable_rows(runs[2:])[0].rows) == []


def test_a_table_has_the_pictures_that_its_runs_have() -> None:
    """Fact recall and oracle recall have each their file, with a link; a run that copies nothing is drawn, too."""
    table = Table(
        "toy", comparable_rows([copying("ea", 30), copying("lead", 20), stating("seal", 60)])
    )
    assert table.pictures() == ["toy-recall.png", "toy-oracle-recall.png"]
    files = table.files()
    for name in table.pictures():
        content = files[name]
        assert isinstance(content, bytes)
        assert content.startswith(b"\x89PNG")
        assert f"]({name})" in table.markdown()
    assert Table("toy", comparable_rows([copying("trunc", 0)])).pictures() == table.pictures()[1:]
    assert Table("toy", comparable_rows([record("lead", 30)])).pictures() == []
