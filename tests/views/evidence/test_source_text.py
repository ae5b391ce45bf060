"""The source text with its marks and windows: its axes, its values, and its page with and without the script."""

import re
import warnings
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pages import CHROMIUM, Reading, evidence, page_of, readouts, shown
from support.requirements import CHROMIUM_PROGRAM

from longsumbench.core import REFERENCE_AXIS, Evidence
from longsumbench.views.evidence import html_views as module
from longsumbench.views.evidence.array_views import WINDOW_AXES, SourceText, TokenMarks, views
from longsumbench.views.evidence.picture import draw_views

BY_STEP = np.array(
    [[0.0, 0.5, 1.0], [0.5, 0.5, 0.0]], dtype=np.float32
)  # two steps, three source tokens
MIDDLES = np.array([[[0.0, 1.0, 2.0], [2.0, 2.0, 2.0]]])  # one layer, two heads
WIDTHS = np.array([[[0.5, 0.5, 0.5], [2.0, 1.0, 0.0]]])
FOCUS = np.stack([MIDDLES, WIDTHS], axis=-1)
AXES_OF = {"marks": ("step", "source_token"), "focus": WINDOW_AXES}
TOKENS = {"source_token": ("The", " cat", " sat"), "step": ("A", " cat")}


def both(**texts: tuple[str, ...]) -> Evidence:
    """Return marks and windows of three source tokens."""
    return evidence({"marks": BY_STEP, "focus": FOCUS}, AXES_OF, **texts)


def alone(name: str, values: NDArray[Any], **texts: tuple[str, ...]) -> Evidence:
    """Return marks or windows."""
    return evidence({name: values}, {name: AXES_OF[name]}, **texts)


def only(looked_at: Evidence) -> SourceText:
    (view,) = views(looked_at)
    assert isinstance(view, SourceText)
    return view


def test_marks_and_windows_share_the_text() -> None:
    """Marks of the summary and windows are one view; others are views of their own, those of the summary first."""
    arrays = {"a": BY_STEP[:1], "b": BY_STEP, "c": BY_STEP[0], "d": FOCUS, "e": FOCUS}
    axes = {
        "a": (REFERENCE_AXIS, "source_token"),
        "b": ("step", "source_token"),
        "c": ("source_token",),
    }
    found = views(evidence(arrays, {**axes, "d": WINDOW_AXES, "e": WINDOW_AXES}, **TOKENS))
    assert all(
        isinstance(view, SourceText) and view.tokens == TOKENS["source_token"] for view in found
    )
    assert [view.names for view in found if isinstance(view, SourceText)] == [
        ("b", "d"),
        ("a", "e"),
        ("c",),
    ]
    texts = [view.marks.text for view in found if isinstance(view, SourceText) and view.marks]
    assert texts == ["summary", "reference", None]


def test_means_by_hand() -> None:
    """Means are over what is a number; where there is none, there is no mean."""
    values = np.array([[0.0, np.nan, np.nan], [0.5, 1.0, -np.inf]])
    np.testing.assert_array_equal(TokenMarks("", "summary", values, None).mean, [0.25, 1.0, np.nan])


def test_windows_by_hand() -> None:
    """A window goes from its middle − width to its middle + width, as shares of the text and inside it."""
    focus = np.array([[[[0.0, 1.0], [1.0, 1.0], [3.0, 1.5], [1.0, np.nan]]]])
    view = only(alone("focus", focus))
    assert view.windows is not None
    begins, middles, ends = view.windows.shares()
    np.testing.assert_array_equal(begins[0, 0], [0.0, 0.125, 0.5, np.nan])
    np.testing.assert_array_equal(ends[0, 0], [0.375, 0.625, 1.0, np.nan])
    np.testing.assert_array_equal(middles[0, 0], [0.125, 0.375, 0.875, np.nan])


def spans(text: str, kind: str) -> list[tuple[str, str, str]]:
    """Return the shades, the titles and the texts of tokens."""
    found = re.findall(
        rf'<span class="{kind} shaded"(?: style="--v:([\d.]+)")? title="([^"]*)">([^<]*)</span>',
        text,
    )
    return [(shade, unescape(title), unescape(shown)) for shade, title, shown in found]


def test_the_text_by_hand() -> None:
    """Without a script: each source token with the shade and the tooltip of its mean; the steps; mean widths."""
    text = page_of(both(**TOKENS))
    assert spans(text, "s") == [
        ("0.300", "source token 1, “The”: marks 0.25 in the mean", "The"),
        ("0.600", "source token 2, “cat”: marks 0.5 in the mean", "cat"),
        ("0.600", "source token 3, “sat”: marks 0.5 in the mean", "sat"),
    ]
    assert spans(text, "o") == [("", "step 1", "A"), ("", "step 2", "cat")]
    reading = Reading(text).text
    assert "marks and focus: the source text" in reading
    assert (
        "marks: the mean over the 2 steps of the summary 00.833" in reading
    )  # the ends of the scale: twice the mean
    assert "The cat sat" in reading
    assert readouts(text) == ["layer 1, head 1: 0.5", "layer 1, head 2: 1"]
    assert '<div class="of-token" hidden>' in text


def test_tokens_without_texts_or_letters() -> None:
    """Numbers replace unknown texts; a token of blanks has a sign, and its blanks after it."""
    text = page_of(both())
    assert [shown for _, _, shown in spans(text, "s")] == ["1", "2", "3"]
    assert spans(text, "s")[1][1] == "source token 2: marks 0.5 in the mean"
    assert text.count(' numbers"') == 2
    blank = page_of(alone("marks", BY_STEP, source_token=("", " \n", " x "), step=("", " y")))
    assert [shown for _, _, shown in spans(blank, "s")] == ["·", "↵", "x"]
    assert "</span> \n <span" in blank
    assert "x</span> </p>" in blank


def test_what_has_no_room_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more values than a page holds it shows the means, and says so."""
    monkeypatch.setattr(module, "_MOST_VALUES", 5)
    text = page_of(both(**TOKENS))
    assert "There are too many values (6) to show single steps on a page." in text
    assert "There are too many windows (6) to show single ones on a page." in text
    assert "data-rows" not in text
    assert "data-middles" not in text
    assert "of-token" not in text.partition("<script>")[0].partition("</style>")[2]
    assert spans(text, "s")[0][0] == "0.300"


@pytest.mark.parametrize(
    "looked_at",
    [
        alone("marks", np.ones((1, 1)), source_token=("a",), step=("b",)),
        alone("marks", np.full((2, 3), np.nan), source_token=("$a$", "漢字\n\x00\t", "\\frac{")),
        alone("marks", np.zeros((1, 3000)), source_token=(" x",) * 3000),
        alone("marks", np.array([[1e38, -1e38]]), source_token=("w" * 999, " ")),
        alone("marks", np.zeros((0, 3))),
        alone("focus", np.full((1, 2, 3, 2), np.nan), layer=("$x_{",)),
        alone("focus", np.array([[[[np.inf, 1.0], [1.0, np.inf], [-3.0, 0.0], [9.0, 1e9]]]])),
        alone("focus", np.ones((12, 1, 700, 2)), head=("a name that is as long as anything" * 2,)),
    ],
)
def test_any_source_can_be_drawn(looked_at: Evidence) -> None:
    """From one token to thousands, without a number or a step, in any script: no warning, elements that nest."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw_views("A title", views(looked_at)).startswith(b"\x89PNG")
        assert Reading(page_of(looked_at)).open == []


def answers(looked_at: Evidence, script: str, folder: Path) -> list[str]:
    """Return what a script finds on a page: whatever it puts into `log`."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page_of(looked_at))
    ask = f"<script>const log = [];\n{ASKING}\n{script}\ndocument.title = log.join(' | ');</script></body>"
    path = folder / "asked.html"
    path.write_text(text.replace("</body>", ask))
    (title,) = re.findall(r"<title>(.*?)</title>", shown(path))
    return title.split(" | ")


ASKING = """
const all = name => [...document.querySelectorAll(name)], text = name => document.querySelector(name).textContent;
const shades = name => all(name).map(one => one.style.getPropertyValue("--v") || "0").join(" ");
const press = key => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const colour = place => getComputedStyle(all(".s")[place]).backgroundColor;
const seen = () => all(".s.seen").map(one => one.textContent).join(" ");
"""
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=CHROMIUM_PROGRAM)


@needs_browser
def test_choosing_a_step_in_a_browser(tmp_path: Path) -> None:
    """A token of the summary, clicked or reached by keys, shows its own marks; once more or Escape, the mean again."""
    script = """
    const before = colour(2);
    all(".o")[0].click();
    log.push(shades(".s"), colour(2) !== before, text(".what"), all(".o")[0].getAttribute("aria-selected"));
    all(".o")[0].focus(); press("ArrowRight");
    log.push(shades(".s"), text(".what"), document.activeElement.textContent);
    press("ArrowRight");
    log.push(text(".what"));
    press("Escape");
    log.push(shades(".s"), text(".what"), colour(2) === before);
    all(".o")[1].click(); document.querySelector(".whole").click();
    log.push(text(".what"));
    """
    mean = ["0.300 0.600 0.600", "the mean over the 2 steps of the summary"]
    assert answers(both(**TOKENS), script, tmp_path) == [
        *("0.000 0.500 1.000", "true", "step 1, “A”", "true"),
        *("0.500 0.500 0.000", "step 2, “cat”", "cat", "step 2, “cat”"),
        *(*mean, "true", mean[1]),
    ]


@needs_browser
def test_choosing_a_source_token_in_a_browser(tmp_path: Path) -> None:
    """A source token shows the window of each head, the steps it weighed at, and one head's window in the text."""
    script = """
    log.push(document.querySelector(".of-token").hidden, seen());
    all(".s")[1].click();
    log.push(document.querySelector(".of-token").hidden, text(".whose"), ...all(".lane .span").map(e => e.textContent));
    log.push(seen(), shades(".o"), text(".status"));
    all(".lane")[1].click();
    log.push(seen(), ["from", "to", "center"].map(name => +all(".lane")[1].style.getPropertyValue("--" + name)));
    all(".s")[1].focus(); press("ArrowLeft");
    log.push(text(".whose"), seen());
    all(".lane")[1].focus(); press("ArrowUp");
    log.push(seen(), all(".lane[aria-selected=true]").length);
    all(".s")[0].click();
    log.push(document.querySelector(".of-token").hidden, seen(), document.documentElement.scrollWidth <= innerWidth);
    """
    found = answers(both(**TOKENS), script, tmp_path)
    assert found[:2] == ["true", ""]
    assert found[2:6] == ["false", "Windows of source token 2, “cat”", "2.0 ± 0.5", "3.0 ± 1.0"]
    assert found[6:9] == ["cat", "0.500 0.500", "source token 2, “cat”: marks 0.5 in the mean"]
    assert found[9] == "cat sat"
    assert [float(share) for share in found[10].split(",")] == pytest.approx(
        [0.5, 1.0, 5 / 6], abs=1e-3
    )
    assert found[11:13] == ["Windows of source token 1, “The”", "The cat sat"]
    assert found[13:15] == ["The", "1"]
    assert found[15:] == ["true", "", "true"]
