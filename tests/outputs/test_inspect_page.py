"""An inspection as a page and a picture: safe for any output, the same for the same evidence, by hand without any."""

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.pages import BREAKOUT, HOSTILE, Reading, evidence, inspection

from longsumbench.core import Evidence
from longsumbench.outputs.inspection import nearest_sentences, write_inspection
from longsumbench.views.evidence.array_views import WINDOW_AXES

TWO_STEPS = np.array([[0.25, 0.9, 0.0], [0.75, 0.1, 1.0]])
SELECTED = np.array([[4, 0, 2], [0, 0, 7]])
WEIGHED = evidence({"weight": TWO_STEPS}, {"weight": ("unit", "step")})


def test_selected_units_are_open_with_the_numbers_of_their_segments() -> None:
    """The first unit is selected for segment 1, the third for both; the texts of the segments are listed."""
    segments = ("First & foremost", "second")
    selected = evidence({"n": SELECTED}, {"n": ("segment", "unit")}, segment=segments)
    text = inspection(selected).page()
    assert "<li>First &amp; foremost</li><li>second</li>" in text
    units = []
    for is_open, name, chips in re.findall(r"<details( open)?>\s*<summary><b>(.*?)</b>(.*)", text):
        units.append((name, is_open, *re.findall(r">(\d)<", chips)))
    chips = re.findall(r'<span class="chip">(\d)</span>', text)
    assert chips == ["1", "1", "2"]
    assert [unit[:2] for unit in units] == [
        ("unit 1", " open"),
        ("unit 2", ""),
        ("unit 3", " open"),
    ]


def test_the_head_says_what_was_run() -> None:
    """Model, settings, dataset, run, example, scores, and in words what was not read and where the summary stops."""
    text = Reading(inspection(WEIGHED).page()).text
    facts = ["looker, depth=2, width=3", "arxiv, test split", "e-1, at place 3, from 0"]
    facts += ["R-1 12.3 · R-Lsum 5.0", "read 50 % of the text: num_units cut 4 words"]
    facts += ["7 tokens; it stops at its length limit", "reference 2"]
    assert [fact for fact in facts if fact not in text] == []
    assert "The title and the references are not shown" not in text
    bare = Reading(inspection(WEIGHED, example=None, scores={}).page()).text
    assert "The title and the references are not shown" in bare
    assert "not scored" in bare


def hostile_evidence(text: str) -> Evidence:
    """Return evidence with every view whose every name and text is hostile."""
    arrays: dict[str, tuple[tuple[str, ...], Any]] = {
        text: (("unit", "step"), np.ones((3, 3))),
        f"{text}b": (("segment", "unit"), SELECTED),
        f"{text}c": (("segment", "unit"), SELECTED / 3),
        f"{text}d": (("layer", "head"), np.zeros((2, 2))),
        f"{text}e": (("step", "source_token"), np.ones((3, 2))),
        f"{text}f": (WINDOW_AXES, np.ones((1, 2, 2, 2))),
    }
    sizes = {"unit": 3, "step": 3, "segment": 2, "source_token": 2}
    return Evidence(
        {name: values for name, (_, values) in arrays.items()},
        {name: axes for name, (axes, _) in arrays.items()},
        {axis: (text,) * size for axis, size in sizes.items()},
    )


@pytest.mark.parametrize("text", ["plain", HOSTILE, BREAKOUT], ids=["plain", "hostile", "breakout"])
@pytest.mark.parametrize("has_evidence", [True, False])
def test_the_page_is_whole_in_itself(text: str, has_evidence: bool) -> None:
    """Every element ends where it must, no script is there or allowed, and nothing is loaded from elsewhere."""
    looked_at = hostile_evidence(text) if has_evidence else None
    page = inspection(looked_at, text, text, no_evidence=text, input_text=text).page()
    reading = Reading(page)
    assert reading.open == []
    assert not {"script", "link", "iframe", "object", "form"} & set(reading.elements)
    for address in reading.loaded:
        assert re.match(r"data:image/png;base64,|#s\d+$", address)
    elements = re.sub(r'="[^"]*"', "", page)
    assert not re.search(r"<[^>]* on\w+=|url\(|@import", elements)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    # The output, its references, the input, the reason, and the units and segments or the source
    assert reading.text.count(text) >= 6 + 3


def test_the_same_evidence_gives_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes, whatever matplotlibrc a machine has; the page has the picture of the file."""
    import matplotlib as mpl

    paths = write_inspection(inspection(WEIGHED), tmp_path / "one", picture=True)
    assert [path.name for path in paths] == ["3.html", "3.png"]
    first = [path.read_bytes() for path in paths]
    assert base64.b64encode(first[1]) in first[0]
    monkeypatch.setitem(mpl.rcParams, "font.size", 20.0)
    monkeypatch.setitem(mpl.rcParams, "axes.facecolor", "black")
    paths = write_inspection(inspection(WEIGHED), tmp_path / "two", picture=True)
    assert [path.read_bytes() for path in paths] == first
    halves = evidence({"weight": TWO_STEPS / 2}, WEIGHED.axes)
    assert inspection(halves).picture() != first[1]


def test_links_to_other_pages() -> None:
    """A page links to the pages of the previous and the next example in its folder."""
    looked_at = inspection(WEIGHED)
    links = '<nav><a href="1.html">previous: 1</a> · <a href="8.html">next: 8</a></nav>'
    assert links in replace(looked_at, pages=(1, 3, 8)).page()
    assert "<nav>" not in looked_at.page()


def test_nearest_sentences_by_hand() -> None:
    """Equal sentences have 100; two of three words and one of two bigrams (2/3 + 1/2) / 2; no word in common, none."""
    source = ["Dogs bark loudly.", "Red cats sleep.", "Red cats sleep."]
    shared = 50 * (2 / 3 + 1 / 2)
    found = nearest_sentences(["Red cats sleep.", "Red cats run.", "Nothing."], source)
    assert found == [(1, 100.0), (1, shared), (None, 0.0)]
    assert nearest_sentences([], source) == []
    assert nearest_sentences(["A."], []) == [(None, 0.0)]


def test_words_of_an_output_are_marked_by_who_shares_them() -> None:
    """Without evidence, a word of the output is marked as in the source, in a reference, in both, or not at all."""
    example = inspection(None, "Cats slept; sleep under roofs.").example
    assert example is not None
    example = replace(example, references=(("Cats near tables.",),))
    summary = replace(inspection(None).summary, text="Cats sleeping under purple tables.")
    page = inspection(None, example=example, summary=summary).page()
    marks = re.findall(r'<mark class="(\w+)">(\w+)</mark>', page.partition("nearest source")[2])
    expected = [("both", "Cats"), ("one", "sleeping"), ("one", "under"), ("other", "tables")]
    assert marks[:4] == expected
    assert "purple" not in dict(marks).values()
