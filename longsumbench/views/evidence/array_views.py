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

    def strongest_units(self) -> list[int]:
        """Return the unit with the highest weight at each step; of a blank token, that of the step before it."""
        known = np.where(np.isnan(self.values), -np.inf, self.values)
        units: list[int] = known.argmax(axis=0).tolist()
        for step, token in enumerate(self.tokens or ()):
            if step and not token.strip():
                units[step] = units[step - 1]
        return units


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
        return self.middles.shape[2]

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
    """Return the views of evidence: weights, selections, relations, marks, windows, then planes, each sorted by name."""
    weights: list[View] = []
    relations: list[View] = []
    marks: list[TokenMarks] = []
    windows: list[View] = []
    selection_arrays: dict[str, NDArray[Any]] = {}
    other_arrays: dict[str, NDArray[Any]] = {}
    for name in sorted(evidence.arrays):
        array, axes = np.asarray(evidence.arrays[name]), evidence.axes[name]
        if array.size and axes in _WEIGHT_AXES:
            weights.append(_view_weights(name, array, evidence))
        elif array.size and axes in _SELECTION_AXES:
            selection_arrays[name] = array
        elif array.size and axes == RELATION_AXES and array.shape[2] == array.shape[3]:
            relations.append(_view_relations(name, array, evidence))
        elif array.size and axes in _MARK_AXES:
            marks.append(_view_marks(name, array, evidence))
        elif array.size and axes == WINDOW_AXES and array.shape[3] == 2:
            windows.append(_view_windows(name, array, evidence))
        else:
            other_arrays[name] = array
    selection = _view_selection(selection_arrays, evidence)
    if not selection:
        other_arrays |= selection_arrays
    marks.sort(key=lambda view: _MARK_AXES.index(evidence.axes[view.name]))
    planes = [
        _view_plane(name, other_arrays[name], evidence.axes[name]) for name in sorted(other_arrays)
    ]
    return [*weights, *([selection] if selection else []), *relations, *marks, *windows, *planes]


def _view_weights(name: str, array: NDArray[Any], evidence: Evidence) -> Weights:
    axis = evidence.axes[name][1]
    return Weights(name, _TEXT_OF_STEPS[axis], array.astype(np.float64), evidence.texts.get(axis))


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


def _view_relations(name: str, array: NDArray[Any], evidence: Evidence) -> Relations:
    """Return the view of a square array, without units that have no text and no attention."""
    values = array.astype(np.float64)
    has_text = np.array([bool(text.strip()) for text in evidence.texts["unit"]])
    visible = has_text | (np.nan_to_num(values[:, :, has_text]) != 0).any(axis=(0, 1, 2))
    units = np.flatnonzero(visible if has_text.any() else ~has_text)
    values = values[:, :, units][..., units]
    return Relations(name, values, tuple(units.tolist()), *_name_layers_and_heads(array, evidence))


def _name_layers_and_heads(array: NDArray[Any], evidence: Evidence) -> list[tuple[str, ...]]:
    """Return the names of an array's layers and heads: their texts, or their numbers if unknown."""
    names = []
    for axis, size in zip(("layer", "head"), array.shape, strict=False):
        numbered = tuple(f"{axis} {number + 1}" for number in range(size))
        names.append(evidence.texts.get(axis) or numbered)
    return names


def _view_marks(name: str, array: NDArray[Any], evidence: Evidence) -> TokenMarks:
    text = _TEXT_OF_STEPS.get(evidence.axes[name][0])
    values = np.atleast_2d(array.astype(np.float64))
    return TokenMarks(name, text, values, evidence.texts.get("source_token"))


def _view_windows(name: str, array: NDArray[Any], evidence: Evidence) -> TokenWindows:
    is_known = np.isfinite(array).all(axis=3)
    middles, widths = np.where(is_known, np.moveaxis(array.astype(np.float64), 3, 0), np.nan)
    return TokenWindows(name, middles, widths, *_name_layers_and_heads(array, evidence))


def _view_plane(name: str, array: NDArray[Any], axes: tuple[str, ...]) -> Plane:
    values = np.atleast_2d(array.astype(np.float64))
    if values.size:
        with np.errstate(invalid="ignore"):  # the mean of -inf and inf is NaN
            values = values.mean(axis=tuple(range(values.ndim - 2)))
    return Plane(name, axes, array.shape, values if values.size else np.zeros((0, 0)))
