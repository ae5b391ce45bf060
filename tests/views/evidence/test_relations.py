"""How much units attend to each other: drawn by axes, true to the arrays, without the units that are not there."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pages import (
    BREAKOUT,
    CHROMIUM,
    HOSTILE,
    Reading,
    drawn_maps,
    evidence,
    page_of,
    readouts,
    shown,
)
from support.requirements import CHROMIUM_PROGRAM

from longsumbench.core import Evidence
from longsumbench.views.evidence import html_views, picture
from longsumbench.views.evidence.array_views import RELATION_AXES, Relations, views
from longsumbench.views.evidence.picture import draw_views

TEXTS = ("", "The rain came.", "It went.")
HEADS = np.array(
    [
        [
            [[0.5, 0.2, 0.3], [0.0, 0.25, 0.75], [0.0, 1.0, 0.0]],
            [[0.9, 0.0, 0.1], [0.0, 0.75, 0.25], [0.0, 0.5, 0.5]],
        ]
    ],
    dtype=np.float32,
)  # one layer, two heads; the first of three units has no text


def related(values: NDArray[Any] = HEADS, **texts: tuple[str, ...]) -> Evidence:
    """Return how much units attend to each other."""
    return evidence({"relation": values}, {"relation": RELATION_AXES}, **{"unit": TEXTS, **texts})


def test_relations_by_hand() -> None:
    """Two units that are there, two heads: the mean comes first, then each head, each cell with its share."""
    text = page_of(related())
    pairs = [f"from unit {unit}, to unit {other}" for unit in (2, 3) for other in (2, 3)]
    shares = {
        "layer 1": ("50.00", "50.00", "75.00", "25.00"),
        "layer 1, head 1": ("25.00", "75.00", "100.00", "0.00"),
        "layer 1, head 2": ("75.00", "25.00", "50.00", "50.00"),
    }
    cells = readouts(text)
    assert cells == [
        f"{head}, {pair}: {shares[head][place]} %"
        for head in shares
        for place, pair in enumerate(pairs)
    ]
    assert "Unit 1 has no text and is left out." in text


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
    (view,) = views(related(values, unit=texts))
    assert isinstance(view, Relations)
    assert view.units == units
    assert set(view.left_out) == {0, 1, 2} - {*units}
    assert view.values.shape[2:] == (len(units), len(units))


def test_what_is_no_share_is_a_number() -> None:
    """Values below 0 or above 1 are no percentages; a value that is no number is said to be none."""
    assert readouts(page_of(related(2 * HEADS)))[6] == "layer 1, head 1, from unit 3, to unit 2: 2"
    values = HEADS.copy()
    values[0, 0, 1, 1] = np.nan
    text = page_of(related(values))
    assert (
        readouts(text)[0] == "layer 1, from unit 2, to unit 2: 75.00 %"
    )  # of the one that is there
    assert readouts(text)[4] == "layer 1, head 1, from unit 2, to unit 2: no number"


def test_too_many_heads_are_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the values of single heads would make a page too large, it tells only the means, and has a note."""
    for module in (html_views, picture):
        monkeypatch.setattr(module, "MOST_CELLS", 7)
    text = page_of(related())
    assert len(readouts(text)) == 4
    assert "too many values (8) to read those of single heads" in Reading(text).text


@pytest.mark.parametrize("text", [HOSTILE, BREAKOUT], ids=["hostile", "breakout"])
def test_names_and_texts_are_escaped(text: str) -> None:
    """Whatever arrays, layers, heads and units are called, every element ends where it must and none is added."""

    def page(name: str) -> str:
        texts = {"unit": (name,) * 3, "layer": (name,), "head": (name, f"{name}2")}
        return page_of(Evidence({name: HEADS}, {name: RELATION_AXES}, texts))

    assert drawn_maps(page(text))[0]["rows"][0] == f"{text}, from unit 1"
    reading = Reading(page(text))
    assert reading.open == []
    assert reading.elements == Reading(page("a")).elements


@pytest.mark.parametrize(
    ("shape", "texts"),
    [
        ((1, 1, 1, 1), {}),
        ((1, 4, 50, 50), {}),
        ((5, 1, 3, 3), {"layer": ("$x_{",) * 5}),
        ((1, 1, 2, 2), {"head": ("漢 $ \\frac{",)}),
    ],
)
def test_any_sizes_can_be_drawn(shape: tuple[int, ...], texts: dict[str, tuple[str, ...]]) -> None:
    """From one unit to fifty, in one layer or five, with any names: a picture and a page without a warning."""
    for fill in (1 / shape[-1], np.nan):
        looked_at = related(
            np.full(shape, fill), unit=tuple(f"unit {unit}" for unit in range(shape[-1])), **texts
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert draw_views("A title", views(looked_at)).startswith(b"\x89PNG")
            assert Reading(page_of(looked_at)).open == []


ASK = """<script>
const log = [], drawn = document.querySelector(".drawn"), readout = document.querySelector(".readout");
const ways = ["Right", "Right", "Down", "Right", "Right", "Left"].map(way => `Arrow${way}`);
for (const key of ["Enter", ...ways, "Enter"]) {
  drawn.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  log.push(readout.textContent);
}
log.push(document.activeElement.textContent.trim().slice(0, 6));
document.title = log.join(" | ");
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason=CHROMIUM_PROGRAM)
def test_the_keyboard_goes_from_map_to_map_in_a_browser(tmp_path: Path) -> None:
    """Beyond the last column of a map is the first one of the next head's; Enter opens the unit of the row."""
    path = tmp_path / "asked.html"
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page_of(related()))
    path.write_text(text.replace("</body>", ASK))
    (title,) = re.findall(r"<title>(.*?)</title>", shown(path))
    assert title.split(" | ") == [
        *("layer 1, from unit 2, to unit 2: 50.00 %", "layer 1, from unit 2, to unit 3: 50.00 %"),
        *(
            "layer 1, head 1, from unit 2, to unit 2: 25.00 %",
            "layer 1, head 1, from unit 3, to unit 2: 100.00 %",
        ),
        *(
            "layer 1, head 1, from unit 3, to unit 3: 0.00 %",
            "layer 1, head 2, from unit 3, to unit 2: 50.00 %",
        ),
        *("layer 1, head 1, from unit 3, to unit 3: 0.00 %",) * 2,
        "unit 3",
    ]
