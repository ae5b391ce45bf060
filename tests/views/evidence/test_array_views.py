"""Views of evidence: chosen by axes, true to the arrays, and drawn whatever sizes and names they have."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pages import evidence

from longsumbench.core import REFERENCE_AXIS
from longsumbench.views.evidence.array_views import (
    RELATION_AXES,
    WINDOW_AXES,
    Plane,
    Relations,
    Selections,
    TokenMarks,
    TokenWindows,
    Weights,
    views,
)
from longsumbench.views.evidence.picture import draw_views, fit_weight_scale

SELECTED = np.array([[4, 0, 2], [0, 0, 7]])
TEXTS = ("", "The rain came.", "It went.")
HEADS = np.array(
    [
        [
            [[0.5, 0.2, 0.3], [0.0, 0.25, 0.75], [0.0, 1.0, 0.0]],
            [[0.9, 0.0, 0.1], [0.0, 0.75, 0.25], [0.0, 0.5, 0.5]],
        ]
    ]
)  # one layer, two heads; the first of three units has no text
MARK_AXES = ("step", "source_token")


def only(values: NDArray[Any], *axes: str, **texts: tuple[str, ...]) -> Any:
    """Return the only view of an array."""
    (view,) = views(evidence({"any name": values}, {"any name": axes}, **texts))
    return view


@pytest.mark.parametrize(
    ("axes", "values", "kind"),
    [
        (("unit", "step"), np.zeros((2, 3)), Weights),
        (("step", "unit"), np.zeros((2, 3)), Plane),
        (("segment", "unit"), SELECTED, Selections),
        (("segment", "unit"), np.zeros((2, 3)), Plane),
        (MARK_AXES, np.zeros((2, 3)), TokenMarks),
        (WINDOW_AXES, np.zeros((2, 2, 3, 2)), TokenWindows),
        (WINDOW_AXES, np.zeros((2, 2, 3, 1)), Plane),
        (RELATION_AXES, HEADS, Relations),
        ((), np.array(0.5), Plane),
    ],
)
def test_axes_choose_the_view(axes: tuple[str, ...], values: NDArray[Any], kind: type) -> None:
    """A view follows from the names of the axes under any name of the array; scores alone select nothing."""
    assert isinstance(only(values, *axes), kind)


def test_counts_and_scores_are_one_view() -> None:
    """Counts with one array of scores are drawn together; with several arrays of scores, each is a plane."""
    arrays: dict[str, Any] = {"a": SELECTED, "b": SELECTED / 2}
    (both,) = views(evidence(arrays, dict.fromkeys(arrays, ("segment", "unit"))))
    assert isinstance(both, Selections)
    assert (both.name, both.scores_name) == ("a", "b")
    arrays["c"] = SELECTED / 3
    several = views(evidence(arrays, dict.fromkeys(arrays, ("segment", "unit"))))
    assert list(map(type, several)) == [Plane] * 3


def test_marks_of_the_summary_come_first() -> None:
    """Marks are in the order of summary, reference and no steps; windows follow."""
    arrays = {"a": np.ones((1, 3)), "b": np.ones((2, 3)), "c": np.ones(3)}
    axes = {"a": (REFERENCE_AXIS, "source_token"), "b": MARK_AXES, "c": ("source_token",)}
    windows = {"0": np.ones((1, 2, 3, 2))}
    ordered = views(evidence(arrays | windows, {**axes, "0": WINDOW_AXES}))
    assert [view.name for view in ordered] == ["b", "a", "c", "0"]
    texts = [view.text for view in ordered if isinstance(view, TokenMarks)]
    assert texts == ["summary", "reference", None]


def test_a_plane_by_an_oracle() -> None:
    """Of more than two axes, the mean over all but the last two; fewer are a row, or one number."""
    values = np.arange(24.0).reshape(2, 2, 2, 3)
    view = only(values, "layer", "head", "unit", "source_token")
    assert view.values.tolist() == np.mean(values.reshape(4, 2, 3), axis=0).tolist()
    assert view.averaged == ("layer", "head")
    assert only(values[0, 0, 0], "head").values.tolist() == [[0.0, 1.0, 2.0]]


def test_values_by_hand() -> None:
    """Means are over what is a number; the scale of weights ends at twice the mean."""
    values = np.array([[0.0, np.nan, np.nan], [0.5, 1.0, -np.inf]])
    means = TokenMarks("", "summary", values, None).mean
    np.testing.assert_array_equal(means, [0.25, 1.0, np.nan])
    assert fit_weight_scale(np.array([0.25, 0.25, np.nan])) == (0.0, 0.5)
    assert fit_weight_scale(np.array([0.0, 0.6, 0.6])) == pytest.approx((0.0, 0.8))


def test_windows_by_hand() -> None:
    """A window goes from its middle − width to its middle + width, as shares of the text and inside it."""
    focus = np.array([[[[0.0, 1.0], [1.0, 1.0], [3.0, 1.5], [1.0, np.nan]]]])
    begins, middles, ends = only(focus, *WINDOW_AXES).shares()
    np.testing.assert_array_equal(begins[0, 0], [0.0, 0.125, 0.5, np.nan])
    np.testing.assert_array_equal(ends[0, 0], [0.375, 0.625, 1.0, np.nan])
    np.testing.assert_array_equal(middles[0, 0], [0.125, 0.375, 0.875, np.nan])


@pytest.mark.parametrize(
    ("values", "texts", "units"),
    [
        (HEADS, TEXTS, (1, 2)),
        (HEADS, ("", "The rain came.", ""), (1, 2)),
        (np.broadcast_to(np.eye(3), (1, 2, 3, 3)), ("", "The rain came.", " "), (1,)),
        (np.full((1, 1, 3, 3), 1 / 3), TEXTS, (0, 1, 2)),
        (HEADS, ("", " ", ""), (0, 1, 2)),
    ],
)
def test_whatever_is_attended_to_is_drawn(
    values: NDArray[Any], texts: tuple[str, ...], units: tuple[int, ...]
) -> None:
    """An empty unit is left out unless one with a text attends to it; where no unit has a text, all are drawn."""
    view = only(values, *RELATION_AXES, unit=texts)
    assert view.units == units
    assert view.means.tolist() == values.mean(axis=1)[:, units][..., units].tolist()


ODD = "$x_{ 漢字\n\x00\t \\frac{"


@pytest.mark.parametrize(
    ("axes", "shape", "texts"),
    [
        (RELATION_AXES, (1, 1, 1, 1), {}),
        (RELATION_AXES, (1, 4, 50, 50), {}),
        (RELATION_AXES, (5, 1, 3, 3), {"layer": (ODD,) * 5}),
        (MARK_AXES, (1, 1), {"source_token": (ODD,)}),
        (MARK_AXES, (1, 3000), {"source_token": (" x",) * 3000}),
        (MARK_AXES, (0, 3), {}),
        (WINDOW_AXES, (1, 2, 3, 2), {"layer": (ODD,)}),
        (WINDOW_AXES, (12, 1, 700, 2), {"head": ("a name that is as long as anything" * 2,)}),
        (("unit", "step"), (3, 2), {"step": (ODD, "w" * 999)}),
        (("segment", "unit"), (2, 3), {"segment": (ODD, "w " * 999)}),
        ((), (), {}),
    ],
)
def test_any_evidence_can_be_drawn(
    axes: tuple[str, ...], shape: tuple[int, ...], texts: dict[str, tuple[str, ...]]
) -> None:
    """From one value to thousands, without a number or a step, in any script: a picture without a warning."""
    for values in (np.ones(shape, int), np.full(shape, 1e38), np.full(shape, np.nan)):
        looked_at = evidence({ODD: values}, {ODD: axes}, **texts)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert draw_views(ODD, views(looked_at)).startswith(b"\x89PNG")
