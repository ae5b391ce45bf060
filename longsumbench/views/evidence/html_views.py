"""Views of evidence in HTML: a drawing, whose values a script reads out, and texts.

    Weights    --html_view--> units × steps; below, the tokens in the colours of their strongest units
    Selections                segments × units, with the texts of the segments
    Relations                 for each layer: units × attended units, of the mean over heads and of each head
    SourceText                the tokens of the steps, which can be selected; the source, shaded by its mean marks; the
                              windows of a selected token, a lane per head; mean widths, a cell per head
    Plane                     rows × columns

A unit's number links to its text at `#unit-<number>`. The script is optional. It shows the value of a cell, adds the
keyboard, and highlights a token together with its column. Of a source text, single steps and tokens are shown only by
the script; its data are attributes of the text, 32-bit floats in base 64.
"""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from longsumbench.views.evidence import array_views
from longsumbench.views.evidence.picture import MOST_CELLS, about_plane, draw_view, format_weight
from longsumbench.views.figures import COLOURS
from longsumbench.views.html import render_part

FILL = COLOURS[:-1]  # pages use the text colour instead of black
_NUM_COLOURS = len(FILL) + 1  # then they repeat
_MOST_VALUES = 1_000_000  # of an array on a page


class Token(NamedTuple):
    """A token on a page, without the blanks around it; a token of blanks is shown as a sign."""

    before: str
    text: str
    after: str
    title: str
    shade: float = 0.0  # 0–1

    @classmethod
    def of(cls, text: str, title: str, shade: float = 0.0) -> "Token":
        """Return a token with its tooltip."""
        body = text.strip()
        if not body:
            return cls("", "↵" if "\n" in text else "·", text, title, shade)
        before, _, after = text.partition(body)
        return cls(before, body, after, title, shade)


def colour(index: int) -> str:
    """Return the CSS class with the colour of a unit or a segment."""
    return f"c{index % _NUM_COLOURS}"


def html_view(view: array_views.View) -> Markup:
    """Return a view with its heading."""
    values: dict[str, Any] = {}
    match view:
        case array_views.Weights():
            values["runs"] = list(_token_runs(view)) if view.tokens else []
        case array_views.Selections():
            values["colour"] = colour
        case array_views.Relations():
            values["most_cells"] = MOST_CELLS
        case array_views.SourceText():
            values |= _source_values(view)
        case array_views.Plane():
            values["caption"] = about_plane(view)
    template = f"evidence/{type(view).__name__.lower()}.html"
    return render_part(template, view=view, drawing=draw_view(view), **values)


def _token_runs(
    view: array_views.Weights,
) -> Iterator[tuple[str, int, str, list[tuple[int, str, float, str]]]]:
    """Yield the colour, the number, the blanks and the tokens of each range of steps with one strongest unit."""
    assert view.tokens is not None
    shades = view.scale.shades(view.values)
    for run in view.step_ranges():
        first, *others = [view.tokens[step] for step in run.steps]
        texts = [first.lstrip(), *others]
        tokens = [
            (step, text, shades[run.unit, step], format_weight(view.values[run.unit, step]))
            for step, text in zip(run.steps, texts, strict=True)
        ]
        yield colour(run.unit), run.unit, first[: len(first) - len(first.lstrip())], tokens


def _source_values(view: array_views.SourceText) -> dict[str, Any]:
    """Return what the template needs: the tokens with their shades, and the data that the script shows."""
    marks, windows = view.marks, view.windows
    texts = _written(view.tokens, view.num_tokens)
    means = marks.mean if marks else np.zeros(len(texts))
    scales, steps = [], []
    data: dict[str, str] = {}
    if marks:
        scales = [array_views.scale_of_weights(values) for values in (means, marks.values)]
        if marks.text:
            steps = _written(marks.tokens, len(marks.values))
            if marks.values.size <= _MOST_VALUES:
                data["rows"] = _encoded(marks.values)
                data["scale"] = f"{scales[1].low:.6g} {scales[1].high:.6g}"
    if windows and windows.middles.size <= _MOST_VALUES:
        data |= {"middles": _encoded(windows.middles), "widths": _encoded(windows.widths)}
    shades = array_views.scale_of_weights(means).shades(means).tolist()
    return {
        "of_steps": "rows" in data,
        "of_windows": "widths" in data,
        "steps": [Token.of(text, f"step {place}") for place, text in enumerate(steps, 1)],
        "tokens": map(Token.of, texts, _titles(view, texts, means), shades),
        "scales": [list(map(format_weight, scale)) for scale in scales],
        "data": data,
    }


def _written(tokens: Sequence[str] | None, count: int) -> list[str]:
    """Return the texts of tokens, or their numbers if the texts are unknown."""
    return list(tokens) if tokens else [f" {place}" for place in range(1, count + 1)]


def _titles(
    view: array_views.SourceText, texts: Sequence[str], means: NDArray[np.float64]
) -> Iterator[str]:
    """Yield the tooltip of each source token: its number, its text, the mean of its marks."""
    marks = view.marks
    for place, text in enumerate(texts, 1):
        title = f"source token {place}"
        if view.tokens:
            title += f", “{text.strip()}”"
        if marks:
            of_steps = " in the mean" if marks.text else ""
            title += f": {marks.name} {format_weight(means[place - 1])}{of_steps}"
        yield title


def _encoded(values: NDArray[np.float64]) -> str:
    with np.errstate(over="ignore"):  # becomes infinite: no number
        return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")
