"""What can be drawn of evidence, chosen by the axes of its arrays alone.

    Evidence --views--> Weights      ("unit", "step")       how much each unit weighed at each step
                        Selections   ("segment", "unit")    which units were selected for each segment, and the scores
                        Plane        anything else          two axes, the mean over those before them

Whatever is counted in a view is counted from 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longsumbench.system import REFERENCE_AXIS, Evidence

STEPS = {"step": "summary", REFERENCE_AXIS: "reference"}  # axis → the text whose tokens are its steps


class Scale(NamedTuple):
    """The lowest and the highest value that is drawn."""

    low: float
    high: float

    def shades(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where values stand on the scale, 0–1; what is no number stands lowest."""
        spread = self.high - self.low
        shares = (values - self.low) / spread if spread > 0 else np.zeros_like(values)
        return np.where(np.isfinite(values), shares, 0.0)


def scale_of(values: NDArray[np.float64]) -> Scale:
    """Return the scale from the lowest to the highest among some values, of those that are finite."""
    finite = values[np.isfinite(values)]
    return Scale(float(finite.min()), float(finite.max())) if finite.size else Scale(0.0, 0.0)


class Run(NamedTuple):
    """Neighbouring steps with the same strongest unit.

    Attributes:
        unit: the strongest one, from 0.
        steps: from 0.
    """

    unit: int
    steps: Sequence[int]


def runs_of(units: Sequence[int]) -> list[Run]:
    """Return the steps with these strongest units, in order."""
    return [Run(unit, list(steps)) for unit, steps in groupby(range(len(units)), key=units.__getitem__)]


@dataclass(frozen=True)
class Weights:
    """How much each unit weighed at each step.

    Attributes:
        name: of the array.
        text: what the steps write: "summary", "reference".
        values: [unit, step].
        tokens: the text of each step; None where it is not known.
    """

    name: str
    text: str
    values: NDArray[np.float64]
    tokens: tuple[str, ...] | None

    @property
    def scale(self) -> Scale:
        """From no weight to the greatest, or twice the mean: weights that are all alike look neither high nor low.

        Of shares, none of which is above 1, no further than to 1.
        """
        finite = self.values[np.isfinite(self.values)]
        low, high = scale_of(self.values)
        middle = 2 * float(finite.mean()) if finite.size else 0.0
        return Scale(min(0.0, low), max(high, min(middle, 1.0) if high <= 1 else middle))

    @property
    def strongest(self) -> list[int]:
        """The unit that weighed most at each step, from 0; the first of several."""
        strongest: list[int] = np.where(np.isnan(self.values), -np.inf, self.values).argmax(axis=0).tolist()
        return strongest

    def runs(self) -> list[Run]:
        """Return all steps, in order; one without text of its own goes with the step before it."""
        units = self.strongest
        for step, token in enumerate(self.tokens or ()):
            if step and not token.strip():
                units[step] = units[step - 1]
        return runs_of(units)


@dataclass(frozen=True)
class Selections:
    """Which units were selected for each segment.

    Attributes:
        name: of the array that says so.
        taken: [segment, unit]; 0: not selected, else how much of the unit.
        scores_name: of the array with the scores behind; None without one.
        scores: [segment, unit]; None without them.
        texts: of the segments; None where they are not known.
    """

    name: str
    taken: NDArray[np.int64]
    scores_name: str | None
    scores: NDArray[np.float64] | None
    texts: tuple[str, ...] | None

    def segments_of(self, unit: int) -> list[int]:
        """Return the segments for which a unit was selected, both from 0."""
        segments: list[int] = np.flatnonzero(self.taken[:, unit]).tolist()
        return segments


@dataclass(frozen=True)
class Plane:
    """An array as a plane.

    Attributes:
        name: of the array.
        axes: all of them.
        shape: of the array.
        values: over the last two axes; an axis is made up where there are fewer.
    """

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    values: NDArray[np.float64]

    @property
    def averaged(self) -> tuple[str, ...]:
        """The axes over which the values are means."""
        return self.axes[:-2]


View = Weights | Selections | Plane


def views(evidence: Evidence) -> list[View]:
    """Return what is to be drawn of evidence: weights first, then selections, then the rest, each in order of names."""
    arrays = {name: np.asarray(array) for name, array in sorted(evidence.arrays.items())}
    axes = {name: evidence.axes[name] for name, array in arrays.items() if array.size}
    weights = [name for name in axes if axes[name] in {("unit", axis) for axis in STEPS}]
    by_segment = [name for name in axes if axes[name] == ("segment", "unit")]
    selection = _selection({name: arrays[name] for name in by_segment}, evidence.texts.get("segment"))
    rest = [name for name in arrays if name not in weights and not (selection and name in by_segment)]
    return [
        *(_weights(name, arrays[name], evidence) for name in weights),
        *([selection] if selection else []),
        *(_plane(name, arrays[name], evidence.axes[name]) for name in rest),
    ]


def _weights(name: str, array: NDArray[Any], evidence: Evidence) -> Weights:
    axis = evidence.axes[name][1]
    return Weights(name, STEPS[axis], array.astype(np.float64), evidence.texts.get(axis))


def _selection(arrays: Mapping[str, NDArray[Any]], texts: tuple[str, ...] | None) -> Selections | None:
    """Return the view of one array of counts and at most one of scores; None for any others, which are told apart."""
    counts = [name for name, array in arrays.items() if array.dtype.kind in "iub"]
    scores = [name for name in arrays if name not in counts]
    if len(counts) != 1 or len(scores) > 1:
        return None
    taken = arrays[counts[0]].astype(np.int64)
    if not scores:
        return Selections(counts[0], taken, None, None, texts)
    return Selections(counts[0], taken, scores[0], arrays[scores[0]].astype(np.float64), texts)


def _plane(name: str, array: NDArray[Any], axes: tuple[str, ...]) -> Plane:
    values = np.atleast_2d(array.astype(np.float64))
    if values.size:
        with np.errstate(invalid="ignore"):  # the mean of -inf and inf is no number, and drawn as none
            values = values.mean(axis=tuple(range(values.ndim - 2)))
    return Plane(name, axes, array.shape, values if values.size else np.zeros((0, 0)))
