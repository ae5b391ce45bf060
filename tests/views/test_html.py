"""Pages from templates: what is missing is an error, and the wheel has all files."""

import tomllib
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from longsumbench.views import html
from longsumbench.views.html import render_page

ROOT = Path(html.__file__).parents[2]


def test_a_missing_value_is_an_error() -> None:
    """A page is not written with a gap where a value should be."""
    with pytest.raises(UndefinedError, match="is undefined"):
        render_page("inspection.html", title="a")


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
