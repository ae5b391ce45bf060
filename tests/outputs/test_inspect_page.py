"""An inspection as a page and a picture: chosen by axes, true to the arrays, safe for any output."""

import base64
import hashlib
import re
from dataclasses import replace
from functools import partial
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
    evidence,
    inspection,
    page_of,
    readouts,
    shown,
)
from support.requirements import CHROMIUM_PROGRAM

from longsumbench.core import Evidence
from longsumbench.outputs.inspection import Inspection, write_inspection
from longsumbench.views.evidence import picture
from longsumbench.views.evidence.array_views import (
    RELATION_AXES,
    WINDOW_AXES,
    Plane,
    Relations,
    Selections,
    SourceText,
    View,
    Weights,
    views,
)
from longsumbench.views.figures import draw_figure
from longsumbench.views.html import static_text


def weighed(values: NDArray[Any], tokens: tuple[str, ...] = (), axis: str = "step") -> Evidence:
    """Return weights of units, with the tokens of the steps where they are given."""
    return evidence(
        {"weight": values}, {"weight": ("unit", axis)}, **({axis: tokens} if tokens else {})
    )


def selected(
    taken: NDArray[Any], scores: NDArray[Any] | None = None, **texts: tuple[str, ...]
) -> Evidence:
    """Return selections for segments, with scores where they are given."""
    arrays = {"taken": taken, **({} if scores is None else {"worth": scores})}
    return evidence(arrays, dict.fromkeys(arrays, ("segment", "unit")), **texts)


TWO_STEPS = np.array([[0.25, 0.9, 0.0], [0.75, 0.1, 1.0]], dtype=np.float32)
TAKEN = np.array([[4, 0, 2], [0, 0, 7]], dtype=np.int32)


@pytest.mark.parametrize(
    ("axes", "values", "kind"),
    [
        (("unit", "step"), np.zeros((2, 3)), Weights),
        (("step", "unit"), np.zeros((2, 3)), Plane),
        (("segment", "unit"), np.zeros((2, 3), dtype=np.int32), Selections),
        (("segment", "unit"), np.zeros((2, 3)), Plane),
        (("step", "source_token"), np.zeros((2, 3)), SourceText),
        (WINDOW_AXES, np.zeros((2, 2, 3, 2)), SourceText),
        (WINDOW_AXES, np.zeros((2, 2, 3, 1)), Plane),
        (RELATION_AXES, np.zeros((2, 2, 3, 3)), Relations),
        ((), np.array(0.5), Plane),
    ],
)
def test_axes_choose_the_view(axes: tuple[str, ...], values: NDArray[Any], kind: type) -> None:
    """A view follows from the names of the axes under any name of the array; scores alone select nothing."""
    (view,) = views(evidence({"any name": values}, {"any name": axes}))
    assert isinstance(view, kind)


def test_counts_and_scores_are_one_view() -> None:
    """Counts with one array of scores are drawn together; which scores are behind is not guessed from several."""
    (both,) = views(selected(TAKEN, TAKEN / 2))
    assert isinstance(both, Selections)
    assert (both.name, both.scores_name) == ("taken", "worth")
    assert [both.segments_of(unit) for unit in range(3)] == [[0], [], [0, 1]]
    three: dict[str, Any] = {"a": TAKEN, "b": TAKEN / 2, "c": TAKEN / 3}
    several = views(evidence(three, dict.fromkeys(three, ("segment", "unit"))))
    assert list(map(type, several)) == [Plane] * 3


def test_a_plane_by_an_oracle() -> None:
    """Of more than two axes, the mean over all but the last two; fewer are a row, or one number."""
    values = np.arange(24.0).reshape(2, 2, 2, 3)
    (view,) = views(evidence({"a": values}, {"a": ("layer", "head", "unit", "source_token")}))
    assert isinstance(view, Plane)
    assert view.values.tolist() == np.mean(values.reshape(4, 2, 3), axis=0).tolist()
    assert view.averaged == ("layer", "head")
    (row,) = views(evidence({"a": values[0, 0, 0]}, {"a": ("head",)}))
    assert isinstance(row, Plane)
    assert row.values.tolist() == [[0.0, 1.0, 2.0]]


def test_weights_by_hand() -> None:
    """Three steps of two units: each cell with its value, below the tokens in the colours of their strongest units."""
    text = page_of(weighed(TWO_STEPS, ("A", " cat", "<s>")))
    assert readouts(text) == [
        *("unit 1, step 1, “A”: 0.25", "unit 1, step 2, “cat”: 0.9", "unit 1, step 3, “<s>”: 0"),
        *("unit 2, step 1, “A”: 0.75", "unit 2, step 2, “cat”: 0.1", "unit 2, step 3, “<s>”: 1"),
    ]
    tokens = re.findall(r'<span class="t"[^>]* style="--v:([\d.]+)" title="([^"]*)">([^<]*)<', text)
    assert tokens == [
        ("0.750", "unit 2, step 1: 0.75", "A"),
        ("0.900", "unit 1, step 2: 0.9", "cat"),
        ("1.000", "unit 2, step 3: 1", "&lt;s&gt;"),
    ]
    runs = re.findall(r'<span class="(c\d)">( ?)<sup><a href="#(unit-\d)">\d</a></sup>', text)
    assert runs == [("c1", "", "unit-2"), ("c0", " ", "unit-1"), ("c1", "", "unit-2")]
    assert 'id="unit-2">Text of unit 2.</p>' in text


def test_selections_by_hand() -> None:
    """Cells tell counts and scores; selected units are marked, are open and carry the numbers of their segments."""
    scores = np.array([[0.5, -np.inf, 0.25], [0.125, 0.0, 1.5]])
    text = page_of(selected(TAKEN, scores, segment=("First & foremost", "second")))
    assert readouts(text) == [
        *("segment 1, unit 1: taken 4, worth 0.5", "segment 1, unit 2: taken 0, worth −inf"),
        *("segment 1, unit 3: taken 2, worth 0.25", "segment 2, unit 1: taken 0, worth 0.125"),
        *("segment 2, unit 2: taken 0, worth 0", "segment 2, unit 3: taken 7, worth 1.5"),
    ]
    segments = re.findall(r'<li class="(c\d)">(.*?)</li>', text)
    assert segments == [("c0", "First &amp; foremost"), ("c1", "second")]
    pattern = r'<details class="(\w*)"( open)?><summary><b>(unit \d)</b>(.*?)<span class="soft'
    units = []
    for kind, is_open, name, chips in re.findall(pattern, text, re.DOTALL):
        units.append((kind, is_open, name, *re.findall(r">(\d)<", chips)))
    selected_units = ("c0", " open", "unit 1", "1"), ("c0", " open", "unit 3", "1", "2")
    assert units == [selected_units[0], ("", "", "unit 2"), selected_units[1]]


def test_the_head_says_what_was_run() -> None:
    """Model, settings, dataset, run, example, scores, and in words what was not read and where the summary stops."""
    text = Reading(page_of(weighed(TWO_STEPS))).text
    facts = ["looker, depth=2, width=3", "arxiv, test split", "e-1, at place 3, from 0"]
    facts += ["R-1 12.3 · R-Lsum 5.0", "read 50 % of the text: num_units cut 4 words"]
    facts += ["7 tokens; it stops at its length limit", "reference 2"]
    assert [fact for fact in facts if fact not in text] == []
    assert "The title and the references are not shown" not in text
    bare = Reading(page_of(weighed(TWO_STEPS), example=None, scores={})).text
    assert "The title and the references are not shown" in bare
    assert "not scored" in bare


def hostile(text: str) -> Evidence:
    """Return evidence with every view whose every name and text is hostile."""
    arrays: dict[str, tuple[tuple[str, ...], NDArray[Any]]] = {
        text: (("unit", "step"), TWO_STEPS),
        f"{text}b": (("segment", "unit"), TAKEN),
        f"{text}c": (("segment", "unit"), TAKEN / 3),
        f"{text}d": (("layer", "head"), np.zeros((2, 2))),
        f"{text}e": (("step", "source_token"), TWO_STEPS.T),
        f"{text}f": (WINDOW_AXES, np.ones((1, 2, 2, 2))),
    }
    sizes = {"unit": 3, "step": 3, "segment": 2, "source_token": 2}
    return Evidence(
        {name: values for name, (_, values) in arrays.items()},
        {name: axes for name, (axes, _) in arrays.items()},
        {axis: (text,) * size for axis, size in sizes.items()},
    )


@pytest.mark.parametrize("text", ["plain", HOSTILE, BREAKOUT], ids=["plain", "hostile", "breakout"])
def test_the_page_is_whole_in_itself(text: str) -> None:
    """Every element ends where it must, nothing is loaded from elsewhere, and no script but the page's own is there."""
    written = page_of(hostile(text), text, text)
    reading = Reading(written)
    assert reading.open == []
    assert reading.elements.count("script") == 1
    assert not {"link", "iframe", "object", "form"} & set(reading.elements)
    assert reading.elements.count("img") == 4
    for address in reading.loaded:
        assert re.match(r"data:image/svg\+xml;base64,|#unit-\d+$", address)
    elements = re.sub(r'="[^"]*"', "", written.partition("<script>")[0])
    assert not re.search(r"<[^>]* on\w+=|url\(|@import", elements)
    # The units, the segments, the summary and its references
    assert reading.text.count(text) >= 3 + 2 + 3


def test_a_browser_is_told_to_run_nothing_else() -> None:
    """The page's policy allows one script, by its hash, and that is the one on the page; nothing may be fetched."""
    text = page_of(weighed(TWO_STEPS))
    (allowed,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script == static_text("drawn.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in allowed
    assert "default-src 'none'" in allowed
    assert "http" not in allowed


def write_bytes(looked_at: Inspection, folder: Path) -> dict[str, bytes]:
    """Write the page and the picture; return name → content."""
    paths = write_inspection(looked_at, folder, picture=True)
    return {path.name: path.read_bytes() for path in paths}


def test_the_same_evidence_gives_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes, whatever matplotlibrc a machine has; other values give another page and another picture."""
    import matplotlib as mpl

    both = evidence(
        {"w": TWO_STEPS[:, :2], "t": TAKEN[:, :2], "p": np.eye(2)},
        {"w": ("unit", "step"), "t": ("segment", "unit"), "p": ("layer", "head")},
        step=("a", "b"),
    )
    first = write_bytes(inspection(both), tmp_path / "one")
    monkeypatch.setitem(mpl.rcParams, "font.size", 20.0)
    monkeypatch.setitem(mpl.rcParams, "axes.facecolor", "black")
    assert list(first) == ["3.html", "3.png"]
    assert write_bytes(inspection(both), tmp_path / "two") == first
    other = Evidence({**both.arrays, "w": both.arrays["w"] / 2}, both.axes, both.texts)
    changed = write_bytes(inspection(other), tmp_path / "three")
    assert changed["3.html"] != first["3.html"]
    assert changed["3.png"] != first["3.png"]


def test_links_to_other_pages() -> None:
    """A page links to the pages of the previous and the next example in its folder."""
    looked_at = inspection(weighed(TWO_STEPS))
    links = '<nav><a href="1.html">previous: 1</a> · <a href="8.html">next: 8</a></nav>'
    assert links in replace(looked_at, pages=(1, 3, 8)).page()
    assert "<nav>" not in looked_at.page()


def draw(view: View, maps: list[picture.DrawnMap], figure: Any) -> None:
    """Draw a view; add its maps to a list."""
    maps += picture._draw_view(figure, view)


def test_maps_are_where_they_are_drawn() -> None:
    """The place of a map in its drawing is that of the image's corners, by matplotlib's own coordinates."""
    arrays = {"w": TWO_STEPS, "t": TAKEN, "r": np.full((2, 3, 3, 3), 0.5)}
    axes = {"w": ("unit", "step"), "t": ("segment", "unit"), "r": RELATION_AXES}
    for view in views(evidence(arrays, axes)):
        maps: list[picture.DrawnMap] = []
        figure = draw_figure((12.0, 4.0), partial(draw, view, maps))
        figure.draw_without_rendering()
        for drawn in maps:
            left, top, width, height = drawn.describe()["box"]
            corners = [(-0.5, -0.5), (len(drawn.columns) - 0.5, len(drawn.rows) - 0.5)]
            pixels = drawn.plot.transData.transform(corners)
            corners_drawn = figure.transFigure.inverted().transform(pixels)
            expected = [[left, 1 - top], [left + width, 1 - top - height]]
            assert corners_drawn == pytest.approx(np.array(expected), abs=1e-4)


ASK = """<script>
const told = () => document.querySelector(".readout").textContent, log = [];
const drawn = document.querySelector(".drawn"), cursor = document.querySelector(".cursor");
document.querySelectorAll(".t")[1].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
log.push(told(), document.querySelectorAll(".t.on").length);
const sides = ["left", "top", "width", "height"];
const share = Object.fromEntries(sides.map(name => [name, parseFloat(cursor.style[name])]));
const point = (kind, name) => {
  const box = drawn.getBoundingClientRect();
  const clientX = box.left + (share.left + share.width / 2) * box.width / 100;
  const clientY = box.top + (share.top + share.height / 2) * box.height / 100;
  drawn.dispatchEvent(new kind(name, { clientX, clientY, bubbles: true }));
};
for (const key of ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown"]) {
  drawn.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  log.push(told());
}
point(PointerEvent, "pointermove");
log.push(told());
document.querySelector("sup a").click();
log.push(document.activeElement.closest("details").open, document.querySelectorAll("details[open]").length);
point(MouseEvent, "click");
log.push(document.querySelectorAll("details[open]").length);
log.push(document.documentElement.scrollWidth <= innerWidth);
document.title = log.join(" | ");
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason=CHROMIUM_PROGRAM)
def test_pointer_and_keyboard_in_a_browser(tmp_path: Path) -> None:
    """A token and its cell are found together, arrows move through the map, and a cell or a number opens its unit."""
    text = re.sub(
        r"<meta http-equiv=[^>]*>", "", page_of(weighed(TWO_STEPS, ("A", " cat", " sat")))
    )
    path = tmp_path / "asked.html"
    path.write_text(text.replace("</body>", ASK))
    (title,) = re.findall(r"<title>(.*?)</title>", shown(path))
    assert title.split(" | ") == [
        *("unit 1, step 2, “cat”: 0.9", "1"),
        *("unit 2, step 2, “cat”: 0.1", "unit 1, step 2, “cat”: 0.9", "unit 1, step 3, “sat”: 0"),
        *("unit 1, step 3, “sat”: 0", "unit 2, step 3, “sat”: 1", "unit 2, step 3, “sat”: 1"),
        *("unit 1, step 2, “cat”: 0.9", "true", "1", "2", "true"),
    ]
