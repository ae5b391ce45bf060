"""Views of evidence, chosen by the axes of its arrays; `picture` draws them.

    Evidence --views--> Weights       ("unit", "step")       weight of each unit at each step
                        Selections    ("segment", "unit")    units that were selected for each segment, and their scores
                                      ("request", "unit")    units that were sent with each request to a language model
                        Relations     ("layer", "head", "unit", "attended_unit")    attention of each unit to each
                        TokenMarks    ("step", "source_token")    weight of each source token at each step
                                      ("source_token",)           weight of each source token
                        TokenWindows  ("layer", "head", "source_token", "window")    window of each source token
                        Plane         any other axes         the last two axes, averaged over those before them

Displayed numbers of units, steps, segments and tokens start from 1; indices in this module start from 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import ATTENDED_AXIS, REFERENCE_AXIS, WINDOW_AXIS, Evidence

# Axis → text whose tokens are the steps
_TEXT_OF_STEPS = {"step": "summary", REFERENCE_AXIS: "reference"}
_WEIGHT_AXES = [("unit", axis) for axis in _TEXT_OF_STEPS]
_SELECTION_AXES = [("segment", "unit"), ("request", "unit")]
_MARK_AXES = [*((axis, "source_token") for axis in _TEXT_OF_STEPS), ("source_token",)]
WINDOW_AXES = ("layer", "head", "source_token", WINDOW_AXIS)
RELATION_AXES = ("layer", "head", "unit", ATTENDED_AXIS)
_ORDER = [*_WEIGHT_AXES, *_SELECTION_AXES, RELATION_AXES, *_MARK_AXES, WINDOW_AXES]


def _average(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the mean of the finite values along an axis; NaN if there are none."""
    means: NDArray[np.float64] = np.ma.masked_invalid(values).mean(axis=axis).filled(np.nan)
    return means


@dataclass(frozen=True)
class Weights:
    """The weight of each unit at each step."""

    name: str
    text: str  # the text whose tokens are the steps: "summary" or "reference"
    values: NDArray[np.float64]  # [unit, step]
    tokens: tuple[str, ...] | None  # the text of each step; None if unknown


@dataclass(frozen=True)
class Selections:
    """The units that were selected for each segment, or sent with each request."""

    name: str
    counts: NDArray[np.int64]  # [segment, unit]; how much of the unit was selected, 0 for none
    scores_name: str | None  # name of the array of scores; None without scores
    scores: NDArray[np.float64] | None  # [segment, unit]; None without scores
    # texts of the segments, or answers to the requests; None if unknown
    texts: tuple[str, ...] | None
    row: str = "segment"  # or "request"


@dataclass(frozen=True)
class Relations:
    """The attention of each unit to each unit, in each head of each layer."""

    name: str
    values: NDArray[np.float64]  # [layer, head, unit, attended unit], for `units` only
    # indices of units with a text and of the units they attend to; all units if none has a text
    units: tuple[int, ...]
    layers: tuple[str, ...]
    heads: tuple[str, ...]

    @property
    def means(self) -> NDArray[np.float64]:
        """[layer, unit, attended unit], over the heads."""
        return _average(self.values, axis=1)


@dataclass(frozen=True)
class TokenMarks:
    """The weight of each source token."""

    name: str
    # The text whose tokens are the steps: "summary" or "reference"; None without steps
    text: str | None
    values: NDArray[np.float64]  # [step, source token]; one row without steps
    tokens: tuple[str, ...] | None  # the text of each source token; None if unknown

    @property
    def mean(self) -> NDArray[np.float64]:
        """[source token], over the steps."""
        return _average(self.values, axis=0)


@dataclass(frozen=True)
class TokenWindows:
    """The window of source tokens that each one looks at: from `middles` − `widths` to `middles` + `widths`."""

    name: str
    # [layer, head, source token], in source tokens; NaN without a window
    middles: NDArray[np.float64]
    widths: NDArray[np.float64]
    layers: tuple[str, ...]
    heads: tuple[str, ...]

    @property
    def num_tokens(self) -> int:
        """The number of source tokens."""
        return len(self.middles[0, 0])

    @property
    def mean_widths(self) -> NDArray[np.float64]:
        """[layer, head], over the source tokens."""
        return _average(self.widths, axis=2)

    def shares(self) -> NDArray[np.float64]:
        """Return the starts, middles and ends of windows as shares of the text, 0–1: [3, layer, head, source token].

        A token counts by its center: the first of four is at 0.125.
        """
        positions = np.stack([self.middles - self.widths, self.middles, self.middles + self.widths])
        shares: NDArray[np.float64] = np.clip((positions + 0.5) / self.num_tokens, 0, 1)
        return shares


@dataclass(frozen=True)
class Plane:
    """An array with any axes, as a plane."""

    name: str
    axes: tuple[str, ...]  # names of its axes
    shape: tuple[int, ...]  # shape of the array
    values: NDArray[np.float64]  # means over all but the last two axes; always two-dimensional

    @property
    def averaged(self) -> tuple[str, ...]:
        """The axes over which `values` are averaged."""
        return self.axes[:-2]


View = Weights | Selections | Relations | TokenMarks | TokenWindows | Plane


def views(evidence: Evidence) -> list[View]:
    """Return the views of evidence in the order of this module, those with the same axes sorted by name."""
    arrays = {name: np.asarray(array) for name, array in evidence.arrays.items()}
    selection_arrays = {}
    for name, array in arrays.items():
        if array.size and evidence.axes[name] in _SELECTION_AXES:
            selection_arrays[name] = array
    selection = _view_selection(selection_arrays, evidence)
    all_views: list[View] = [selection] if selection else []
    for name, array in arrays.items():
        if not selection or name not in selection_arrays:
            all_views.append(_view_array(name, array, evidence))

    def rank(view: View) -> tuple[int, str]:
        axes = evidence.axes[view.name]
        return _ORDER.index(axes) if axes in _ORDER else len(_ORDER), view.name

    return sorted(all_views, key=rank)


def _view_array(name: str, array: NDArray[Any], evidence: Evidence) -> View:
    """Return the view of one array."""
    axes, texts, values = evidence.axes[name], evidence.texts, array.astype(np.float64)
    if array.size and axes in _WEIGHT_AXES:
        return Weights(name, _TEXT_OF_STEPS[axes[1]], values, texts.get(axes[1]))
    if array.size and axes == RELATION_AXES and array.shape[2] == array.shape[3]:
        return _view_relations(name, values, evidence)
    if array.size and axes in _MARK_AXES:
        text = _TEXT_OF_STEPS.get(axes[0])
        return TokenMarks(name, text, np.atleast_2d(values), texts.get("source_token"))
    if array.size and axes == WINDOW_AXES and array.shape[3] == 2:
        is_known = np.isfinite(values).all(axis=3)
        middles, widths = np.where(is_known, np.moveaxis(values, 3, 0), np.nan)
        return TokenWindows(name, middles, widths, *_name_layers_and_heads(array, evidence))
    values = np.atleast_2d(values)
    with np.errstate(invalid="ignore"):  # the mean of -inf and inf is NaN
        means = values.mean(axis=tuple(range(values.ndim - 2))) if array.size else np.zeros((0, 0))
    return Plane(name, axes, array.shape, means)


def _view_selection(arrays: Mapping[str, NDArray[Any]], evidence: Evidence) -> Selections | None:
    """Return the view of one array of counts and at most one of scores; None for any other arrays."""
    counts = [name for name, array in arrays.items() if array.dtype.kind in "iub"]
    scores = [name for name in arrays if name not in counts]
    if len(counts) != 1 or len(scores) > 1:
        return None
    scores_name = scores[0] if scores else None
    row = evidence.axes[counts[0]][0]
    return Selections(
        counts[0],
        arrays[counts[0]].astype(np.int64),
        scores_name,
        arrays[scores_name].astype(np.float64) if scores_name else None,
        evidence.texts.get(row),
        row,
    )


def _view_relations(name: str, values: NDArray[np.float64], evidence: Evidence) -> Relations:
    """Return the view of a square array, without units that have no text and no attention."""
    has_text = np.array([bool(text.strip()) for text in evidence.texts["unit"]])
    visible = has_text | (np.nan_to_num(values[:, :, has_text]) != 0).any(axis=(0, 1, 2))
    units = np.flatnonzero(visible if has_text.any() else ~has_text)
    visible_values = values[:, :, units][..., units]
    names = _name_layers_and_heads(values, evidence)
    return Relations(name, visible_values, tuple(units.tolist()), *names)


def _name_layers_and_heads(array: NDArray[Any], evidence: Evidence) -> list[tuple[str, ...]]:
    """Return the names of an array's layers and heads: their texts, or their numbers if unknown."""
    names = []
    for axis, size in zip(("layer", "head"), array.shape, strict=False):
        numbered = tuple(f"{axis} {number + 1}" for number in range(size))
        names.append(evidence.texts.get(axis) or numbered)
    return names
