"""Views of evidence, chosen by the axes of its arrays.

    Evidence --views--> Weights      ("unit", "step")       weight of each unit at each step
                        Selections   ("segment", "unit")    units that were selected for each segment, and their scores
                                     ("request", "unit")    units that were sent with each request to a language model
                        Relations    ("layer", "head", "unit", "attended_unit")    attention of each unit to each
                        SourceText   ("step", "source_token")    weight of each source token at each step
                                     ("source_token",)           weight of each source token
                                     ("layer", "head", "source_token", "window")    window of each source token
                        Plane        any other axes         the last two axes, averaged over those before them

Displayed numbers of units, steps, segments and tokens start from 1; indices in this module start from 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import ATTENDED_AXIS, REFERENCE_AXIS, WINDOW_AXIS, Evidence

# Axis → text whose tokens are the steps
_TEXT_OF_STEPS = {"step": "summary", REFERENCE_AXIS: "reference"}
_WEIGHT_AXES = [("unit", axis) for axis in _TEXT_OF_STEPS]
_SELECTION_AXES = [("segment", "unit"), ("request", "unit")]
MARKED_AXES = (("step", "source_token"), (REFERENCE_AXIS, "source_token"), ("source_token",))
WINDOW_AXES = ("layer", "head", "source_token", WINDOW_AXIS)
_SHARE_ERROR = 1e-3  # error of shares that were stored in half precision
RELATION_AXES = ("layer", "head", "unit", ATTENDED_AXIS)


class Scale(NamedTuple):
    """The lowest and the highest value of a colour scale."""

    low: float
    high: float

    def shades(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the positions of values on the scale, 0–1; 0 for values that are not finite."""
        spread = self.high - self.low
        shares = (values - self.low) / spread if spread > 0 else np.zeros_like(values)
        return np.where(np.isfinite(values), shares, 0.0)


def scale_of(values: NDArray[np.float64]) -> Scale:
    """Return the scale from the lowest to the highest finite value."""
    finite = values[np.isfinite(values)]
    return Scale(float(finite.min()), float(finite.max())) if finite.size else Scale(0.0, 0.0)


def scale_of_weights(values: NDArray[np.float64]) -> Scale:
    """Return the scale from 0 (or a lower value) to the highest value or twice the mean: equal weights look medium.

    If no value is above 1, the scale ends at 1 at most.
    """
    finite = values[np.isfinite(values)]
    low, high = scale_of(values)
    middle = 2 * float(finite.mean()) if finite.size else 0.0
    return Scale(min(0.0, low), max(high, min(middle, 1.0) if high <= 1 else middle))


def _mean_of(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the mean of the finite values along an axis; NaN if there are none."""
    means: NDArray[np.float64] = np.ma.masked_invalid(values).mean(axis=axis).filled(np.nan)
    return means


class StepRange(NamedTuple):
    """Neighbouring steps with the same strongest unit, both counted from 0."""

    unit: int
    steps: Sequence[int]


@dataclass(frozen=True)
class Weights:
    """The weight of each unit at each step."""

    name: str
    text: str  # the text whose tokens are the steps: "summary" or "reference"
    values: NDArray[np.float64]  # [unit, step]
    tokens: tuple[str, ...] | None  # the text of each step; None if unknown

    @property
    def scale(self) -> Scale:
        """The scale of all weights."""
        return scale_of_weights(self.values)

    @property
    def strongest(self) -> list[int]:
        """The unit with the highest weight at each step, from 0; the first of several."""
        known = np.where(np.isnan(self.values), -np.inf, self.values)
        strongest: list[int] = known.argmax(axis=0).tolist()
        return strongest

    def step_ranges(self) -> list[StepRange]:
        """Group all steps by their strongest units; a blank token belongs to the step before it."""
        units = self.strongest
        for step, token in enumerate(self.tokens or ()):
            if step and not token.strip():
                units[step] = units[step - 1]
        groups = groupby(range(len(units)), key=units.__getitem__)
        return [StepRange(unit, list(steps)) for unit, steps in groups]


@dataclass(frozen=True)
class Selections:
    """The units that were selected for each segment, or sent with each request."""

    name: str
    counts: NDArray[np.int64]  # [segment, unit]; how much of the unit was selected, 0 for none
    scores_name: str | None  # name of the array of scores; None without scores
    scores: NDArray[np.float64] | None  # [segment, unit]; None without scores
    texts: (
        tuple[str, ...] | None
    )  # texts of the segments, or answers to the requests; None if unknown
    row: str = "segment"  # or "request"

    def segments_of(self, unit: int) -> list[int]:
        """Return the segments or requests for which a unit was selected, both from 0."""
        segments: list[int] = np.flatnonzero(self.counts[:, unit]).tolist()
        return segments


@dataclass(frozen=True)
class Relations:
    """The attention of each unit to each unit, in each head of each layer."""

    name: str
    values: NDArray[np.float64]  # [layer, head, unit, attended unit], for `units` only
    # indices, from 0, of units with a text and of the units they attend to; all units if none has a text
    units: tuple[int, ...]
    texts: tuple[str, ...]
    layers: tuple[str, ...]
    heads: tuple[str, ...]

    @property
    def left_out(self) -> list[int]:
        """The units that are not drawn, from 0."""
        return [unit for unit in range(len(self.texts)) if unit not in self.units]

    @property
    def means(self) -> NDArray[np.float64]:
        """[layer, unit, attended unit], over the heads."""
        return _mean_of(self.values, axis=1)

    @property
    def shares(self) -> bool:
        """True if all values can be shown as percentages: none is below 0 or, except for rounding, above 1."""
        scale = scale_of(self.values)
        return scale.low >= 0 and scale.high <= 1 + _SHARE_ERROR


@dataclass(frozen=True)
class TokenMarks:
    """The weight of each source token."""

    name: str
    # The text whose tokens are the steps: "summary" or "reference"; None without steps
    text: str | None
    values: NDArray[np.float64]  # [step, source token]; one row without steps
    tokens: tuple[str, ...] | None  # the text of each step; None if unknown

    @property
    def mean(self) -> NDArray[np.float64]:
        """[source token], over the steps."""
        return _mean_of(self.values, axis=0)


@dataclass(frozen=True)
class TokenWindows:
    """The window of source tokens that each one looks at: from `middles` − `widths` to `middles` + `widths`."""

    name: str
    # [layer, head, source token], positions in source tokens, from 0; NaN without a window
    middles: NDArray[np.float64]
    # [layer, head, source token], in source tokens; NaN without a window
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
        return _mean_of(self.widths, axis=2)

    def shares(self) -> NDArray[np.float64]:
        """Return the starts, middles and ends of windows as shares of the text, 0–1: [3, layer, head, source token].

        A token counts by its center: the first of four is at 0.125.
        """
        places = np.stack([self.middles - self.widths, self.middles, self.middles + self.widths])
        shares: NDArray[np.float64] = np.clip((places + 0.5) / self.num_tokens, 0, 1)
        return shares


@dataclass(frozen=True)
class SourceText:
    """The source text with marks or windows of its tokens, or both."""

    tokens: tuple[str, ...] | None  # the text of each token; None if unknown
    marks: TokenMarks | None  # the weight of each token
    windows: TokenWindows | None  # the window of each token

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its arrays."""
        return tuple(view.name for view in (self.marks, self.windows) if view)

    @property
    def num_tokens(self) -> int:
        """The number of source tokens."""
        if self.marks:
            return len(self.marks.mean)
        assert self.windows is not None
        return self.windows.num_tokens


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


View = Weights | Selections | Relations | SourceText | Plane


def views(evidence: Evidence) -> list[View]:
    """Return the views of evidence: weights, selections, relations, the source, then planes, each sorted by name."""
    weights: list[Weights] = []
    by_segment: dict[str, NDArray[Any]] = {}
    relations: list[Relations] = []
    marked: dict[str, NDArray[Any]] = {}
    windows: list[TokenWindows] = []
    others: dict[str, NDArray[Any]] = {}
    for name in sorted(evidence.arrays):
        array, axes = np.asarray(evidence.arrays[name]), evidence.axes[name]
        if array.size and axes in _WEIGHT_AXES:
            weights.append(_weights(name, array, evidence))
        elif array.size and axes in _SELECTION_AXES:
            by_segment[name] = array
        elif array.size and axes == RELATION_AXES and array.shape[2] == array.shape[3]:
            relations.append(_relations(name, array, evidence))
        elif array.size and axes in MARKED_AXES:
            marked[name] = array
        elif array.size and axes == WINDOW_AXES and array.shape[3] == 2:
            windows.append(_windows(name, array, evidence))
        else:
            others[name] = array
    selection = _selection(by_segment, evidence)
    if not selection:
        others |= by_segment
    in_order = sorted(marked, key=lambda name: MARKED_AXES.index(evidence.axes[name]))
    marks = [_marks(name, marked[name], evidence) for name in in_order]
    return [
        *weights,
        *([selection] if selection else []),
        *relations,
        *_source_texts(marks, windows, evidence.texts.get("source_token")),
        *(_plane_view(name, others[name], evidence.axes[name]) for name in sorted(others)),
    ]


def _weights(name: str, array: NDArray[Any], evidence: Evidence) -> Weights:
    axis = evidence.axes[name][1]
    return Weights(name, _TEXT_OF_STEPS[axis], array.astype(np.float64), evidence.texts.get(axis))


def _selection(arrays: Mapping[str, NDArray[Any]], evidence: Evidence) -> Selections | None:
    """Return the view of one array of counts and at most one of scores; None for any other arrays."""
    counts = [name for name, array in arrays.items() if array.dtype.kind in "iub"]
    scores = [name for name in arrays if name not in counts]
    if len(counts) != 1 or len(scores) > 1:
        return None
    selected = arrays[counts[0]].astype(np.int64)
    row = evidence.axes[counts[0]][0]
    texts = evidence.texts.get(row)
    if not scores:
        return Selections(counts[0], selected, None, None, texts, row)
    values = arrays[scores[0]].astype(np.float64)
    return Selections(counts[0], selected, scores[0], values, texts, row)


def _relations(name: str, array: NDArray[Any], evidence: Evidence) -> Relations:
    """Return the view of a square array, without units that have no text and no attention."""
    texts, values = evidence.texts["unit"], array.astype(np.float64)
    has_text = np.array([bool(text.strip()) for text in texts])
    visible = has_text | (np.nan_to_num(values[:, :, has_text]) != 0).any(axis=(0, 1, 2))
    units = np.flatnonzero(visible if has_text.any() else ~has_text)
    values = values[:, :, units][..., units]
    return Relations(
        name, values, tuple(units.tolist()), texts, *_layers_and_heads(array, evidence)
    )


def _layers_and_heads(array: NDArray[Any], evidence: Evidence) -> list[tuple[str, ...]]:
    """Return the names of an array's layers and heads: their texts, or their numbers if unknown."""
    names = []
    for axis, size in zip(("layer", "head"), array.shape, strict=False):
        numbered = tuple(f"{axis} {number + 1}" for number in range(size))
        names.append(evidence.texts.get(axis) or numbered)
    return names


def _source_texts(
    marks: Sequence[TokenMarks], windows: Sequence[TokenWindows], tokens: tuple[str, ...] | None
) -> list[SourceText]:
    """Return views of marks and windows, in pairs if they belong to one text, one by one otherwise."""
    if marks and windows and len(marks[0].mean) != windows[0].num_tokens:
        with_marks = [SourceText(tokens, mark, None) for mark in marks]
        return with_marks + [SourceText(tokens, None, window) for window in windows]
    return [SourceText(tokens, *pair) for pair in zip_longest(marks, windows)]


def _marks(name: str, array: NDArray[Any], evidence: Evidence) -> TokenMarks:
    axis = evidence.axes[name][0]  # of the steps, if there are any
    values = np.atleast_2d(array.astype(np.float64))
    if axis not in _TEXT_OF_STEPS:
        return TokenMarks(name, None, values, None)
    return TokenMarks(name, _TEXT_OF_STEPS[axis], values, evidence.texts.get(axis))


def _windows(name: str, array: NDArray[Any], evidence: Evidence) -> TokenWindows:
    is_known = np.isfinite(array).all(axis=3)
    middles, widths = np.where(is_known, np.moveaxis(array.astype(np.float64), 3, 0), np.nan)
    return TokenWindows(name, middles, widths, *_layers_and_heads(array, evidence))


def _plane_view(name: str, array: NDArray[Any], axes: tuple[str, ...]) -> Plane:
    values = np.atleast_2d(array.astype(np.float64))
    if values.size:
        with np.errstate(invalid="ignore"):  # the mean of -inf and inf is NaN
            values = values.mean(axis=tuple(range(values.ndim - 2)))
    return Plane(name, axes, array.shape, values if values.size else np.zeros((0, 0)))
