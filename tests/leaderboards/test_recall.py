"""What is drawn of fact recall and fact survival, how seeds are pooled, and what a title says."""

from collections.abc import Mapping, Sequence

from support.run_records import measured, record

from longsumbench.leaderboards.seed_groups import (
    LEARNED,
    NOT_SHOWN,
    STILL_LEARNING,
    Learned,
    ResultRow,
)
from longsumbench.leaderboards.significance import build_blocks
from longsumbench.leaderboards.table import Table
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.fact_recall import FactRecall
from longsumbench.metrics.fact_survival import FactSurvival
from longsumbench.runs.record import RunRecord
from longsumbench.views.leaderboard import TableView
from longsumbench.views.recall import (
    PANELS,
    SURVIVAL_PANELS,
    recall_figure,
    recall_lines,
    survival_figure,
)
from longsumbench.views.series import SeriesFigure

MEASURE = "fact_recall_silent_distance_3"
CHANCE = {"fact_recall_chance": Estimate(4.2, 4, 5)}


def stating(model: str, mean: float, **changes: object) -> RunRecord:
    """A run that stated `mean` percent of all facts right, at every place and distance."""
    measures = measured(dict.fromkeys(FactRecall.columns, mean), below=4, above=2)
    return record(model, mean, measures=measures | measured({"fact_recall_chance": 5.0}), **changes)


def lines_of(records: Sequence[RunRecord]) -> list[ResultRow]:
    return recall_lines(build_blocks(records)[0].rows)


def view_of(*records: RunRecord) -> TableView:
    return TableView(Table("toy", build_blocks(records)))


def line(
    model: str, means: Mapping[str, Estimate], word: str = LEARNED, seeds: int = 1
) -> ResultRow:
    runs = (record(model, 9),) * seeds
    return ResultRow(runs, means=means, learned=Learned(word))


def test_every_place_is_measured() -> None:
    """Every place of every panel is a column of the metric, and no position or distance is left out."""
    drawn = [name for panel in PANELS for name in panel.places]
    assert drawn == [
        name for name in FactRecall.columns if "_position_" in name or "_distance_" in name
    ]


def silent_by_distance(
    model: str, lows: Sequence[float], word: str = LEARNED, seeds: int = 1
) -> ResultRow:
    """A line whose intervals of facts in two places begin there, by distance; facts in one place are at 99 %."""
    means = {"fact_recall_single_position_9": Estimate(99, 98, 100), **CHANCE}
    for measure, low in zip(PANELS[-1].places, lows, strict=False):
        means[measure] = Estimate(low + 5, low, low + 9)
    return line(model, means, word, seeds)


def figure_of(*lines: ResultRow) -> SeriesFigure:
    return recall_figure("about", lines)


def test_systems_that_did_not_learn_are_grey() -> None:
    """The label has the word, a line below says what grey means, and the title does not name them."""
    learned = silent_by_distance("seal", [60] * 8)
    figure = figure_of(silent_by_distance("trunc", [70] * 8, STILL_LEARNING), learned)
    assert figure.title == "about"
    assert "Grey: systems that did not learn" in figure.notes[0]
    silent = figure.rows[0].panels[-1]
    grey = {series.label: series.grey for series in silent.series}
    assert grey == {"seal": False, "trunc (still learning)": True}
    assert silent.levels == {"guess of two": 50, "chance 4.2": 4.2}
    assert "Grey" not in figure_of(learned).notes[0]
    doubtful = figure_of(silent_by_distance("trunc", [70] * 8, NOT_SHOWN))
    assert not doubtful.rows[0].panels[-1].series[0].grey
    assert "Not shown: systems of which it is not known whether they learned." in doubtful.notes[0]


def test_wide_intervals_have_no_band() -> None:
    """A note says what dashed lines are, and how few examples and runs there are; only if there are some."""
    vague = line("seal", {MEASURE: Estimate(50, 10, 90)})
    figure = figure_of(vague)
    assert [series.band for series in figure.rows[0].panels[0].series] == [False]
    assert (
        "Dashed lines: intervals of more than 60 points (20 examples, 1 run or more)."
        in figure.notes[0]
    )
    assert "Dashed" not in figure_of(silent_by_distance("seal", [60] * 8)).notes[0]


def surviving(model: str, kept: float, **changes: object) -> RunRecord:
    """A run that stated `kept` percent of the facts in natural texts right, at every place and of every kind."""
    names = [panel_name for panel in SURVIVAL_PANELS for panel_name in panel.places]
    bounds = {"fact_survival_wrong": 3, "fact_survival_random": 20, "fact_survival_ceiling": 90}
    means = {"fact_survival": kept, **dict.fromkeys(names, kept), **bounds}
    return record(model, 30, measures=measured(means), **changes)


def test_what_survives_from_where() -> None:
    """Every place and kind is drawn, between two levels; the table has what is right and wrong, and the bounds."""
    drawn = {name for panel in SURVIVAL_PANELS for name in panel.places}
    assert drawn < set(FactSurvival.columns)
    view = view_of(surviving("ea", 60), surviving("lead", 40))
    assert view_of(record("lead", 30)).picture_files() == []
    assert view.picture_files() == ["toy-survival.png"]
    content = view.files()["toy-survival.png"]
    assert isinstance(content, bytes)
    assert content.startswith(b"\x89PNG")
    assert "](toy-survival.png)" in view.markdown()
    rows = build_blocks([surviving("ea", 60)])[0].rows
    figure = survival_figure("about", recall_lines(rows, SURVIVAL_PANELS))
    for panel in figure.rows[0].panels:
        assert panel.levels == {"random sentences": 20, "ceiling": 90}
        assert {point.mean for point in panel.series[0].points.values()} == {60}
    row = " ".join(view.render().split())
    assert "1 ea *60.0 ±1.5 *30.0 ±0.8 3.0 ±1.5 20.0 ±1.5 90.0 ±1.5" in row
