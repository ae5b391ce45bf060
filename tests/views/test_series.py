"""The figures of series and of intervals: drawn once of everything that they can have."""

import math
import warnings
from functools import partial

import pytest

from longsumbench.metrics.aggregate import Estimate
from longsumbench.views.figures import draw_figure, render_picture
from longsumbench.views.intervals import IntervalFigure, IntervalPanel, IntervalRow
from longsumbench.views.series import (
    Panel,
    PanelRow,
    Series,
    SeriesFigure,
    _choose_styles,
    _draw_content,
    draw_series,
    place_numbers,
)


def number(mean: float) -> Estimate:
    return Estimate(mean, mean - 1, mean + 1)


LINE = Series("seal $x_{", "seal", {1: number(20), 2: number(22)}, hollow={2})
POINT = Series("ea", "ea", {1: number(21)}, across=number(30))
UNKNOWN = Series("mine", "mine", {1: Estimate(19, math.nan, math.nan)}, grey=True, band=False)
ORACLE = Series("oracle", "oracle", across=number(90))
TICKS = {1.0: "128", 2.0: "256"}
FIRST = Panel("one\nplace", "x", TICKS, [LINE, POINT], {"chance": 21, "guess": 5})
CONTENT = SeriesFigure(
    "A title", [PanelRow("R-1", [FIRST, Panel("", "x", TICKS, [UNKNOWN, ORACLE])])], ["A note."]
)


def test_everything_can_be_drawn() -> None:
    """Without a warning; the same data give the same bytes, others give others."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images = draw_series(CONTENT, ("png", "svg"))
    assert (images["png"][:4], b"<svg" in images["svg"]) == (b"\x89PNG", True)
    assert images["png"] == draw_series(CONTENT)["png"]
    other = SeriesFigure("A title", [PanelRow("R-1", [FIRST])], ["A note."])
    assert images["png"] != draw_series(other)["png"]


def test_the_legend_and_the_limits() -> None:
    """The legend has each series and level once; what is far away does not change the limits, what is near does."""
    styles = _choose_styles(CONTENT)
    assert list(styles) == ["seal $x_{", "ea", "mine", "oracle", "chance", "guess"]
    assert styles["mine"]["color"] == styles["oracle"]["color"] == styles["chance"]["color"]
    figure = draw_figure((8, 4), partial(_draw_content, CONTENT, styles))
    low, high = figure.axes[0].get_ylim()
    assert 17 < low < 19
    assert 23 < high < 25
    near = Panel("", "x", TICKS, [Series("ea", "ea", LINE.points, across=number(25))])
    content = SeriesFigure("", [PanelRow("R-1", [near])])
    figure = draw_figure((8, 4), partial(_draw_content, content, _choose_styles(content)))
    assert figure.axes[0].get_ylim()[1] == pytest.approx(25)


def test_positive_numbers_are_placed_by_their_logarithms() -> None:
    """Each twice the one before is a step of one; with zero among them, numbers are placed as they are."""
    assert place_numbers([0.25, 128, 256]) == [-2, 7, 8]
    assert place_numbers([0, 1, 8]) == [0, 1, 8]


def test_intervals_have_a_row_for_each_number() -> None:
    """Panels have the same rows, and the legend has each level once."""
    rows = [IntervalRow("seal", number(20), "seal"), IntervalRow("x" * 40, number(9))]
    panels = [IntervalPanel(f"aspect {place}", rows, {"length": 12.0}) for place in range(4)]
    content = IntervalFigure("A title", panels, "τ")
    assert content.grid == (2, 3)
    figure = draw_figure(content.size, content.draw)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[0] == "seal"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["length"]
    assert render_picture(content.size, content.draw, ("png",))["png"].startswith(b"\x89PNG")
