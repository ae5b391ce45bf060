"""Pages from templates: what is written is escaped, what is missing is an error, and the wheel has all files."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError
from support.pages import BREAKOUT, HOSTILE, Reading

from longsumbench.views import html
from longsumbench.views.html import render_page
from longsumbench.views.tables import Block, Stressed, Tied

ROOT = Path(html.__file__).parents[2]


def block_of(block: Block, **values: Any) -> str:
    """Return a block as a part of a page."""
    text = '{% import "parts.html" as parts %}{{ parts.block(block, classes, picture) }}'
    values = {"block": block, "classes": {}, "picture": "", **values}
    return str(html._environment().from_string(text).render(values))


@pytest.mark.parametrize("text", [HOSTILE, BREAKOUT], ids=["hostile", "breakout"])
def test_values_are_text(text: str) -> None:
    """Each heading, note, cell and footnote of a block is on the page as it is."""
    rows: list[list[str]] = [[text], [Stressed(text)], [Tied(text)]]
    block = Block(text, (text,), (text,), "l", rows, (text,), footnotes=(text,))
    reading = Reading(block_of(block))
    assert reading.open == []
    assert not {"script", "b", "img"} & set(reading.elements)
    assert " ".join(reading.text.split()).count(" ".join(text.split())) == 8


def test_cells_by_hand() -> None:
    """The best cell is bold, a tied one has a sign, a cell has the class of its text; "items" is no class."""
    block = Block("", (), ("a", "b"), "lr", [["items", Stressed("1")], ["bad", Tied("2")]])
    page = block_of(block, classes={"bad": "red"})
    rows = [line for line in page.splitlines() if line.startswith("<tr><td")]
    assert rows == [
        '<tr><td class="l">items</td><td><strong>1</strong></td></tr>',
        '<tr><td class="l red">bad</td><td>2 ≈</td></tr>',
    ]


def test_a_missing_value_is_an_error() -> None:
    """A page is not written with a gap where a value should be."""
    with pytest.raises(UndefinedError, match="is undefined"):
        render_page("inspected.html", title="a")


def test_the_wheel_has_all_templates_styles_and_scripts() -> None:
    """The patterns of pyproject.toml match every file that pages are made of."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-data"
    ]
    package = ROOT / "longsumbench"
    packed = {
        path
        for pattern in patterns["longsumbench"]
        for path in package.glob(pattern)
        if path.is_file()
    }
    folders = (package / "views/templates", package / "views/static")
    assert {path for folder in folders for path in folder.rglob("*") if path.is_file()} <= packed
