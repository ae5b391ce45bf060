"""What tests of HTML pages share."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import Cut, Document, Evidence, Example, Section, Summary, Truncation
from longsumbench.outputs.inspection import Inspection
from support.run_records import record
from support.waiting import PATIENCE

HOSTILE = "<script>alert('x')</script> & \"quoted\" | a `tick`\n<img src=x onerror=y> </mark></details>\u2028end"


WITHOUT_END = {"meta", "img", "col", "input", "link"}  # of the elements that pages use


class Reading(HTMLParser):
    """Reads a page: which elements it has, whether they nest, what it would load, its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.loaded: list[str] = []
        self.text = ""
        self.feed(str(text))
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note an element and the addresses it names."""
        self.elements.append(tag)
        self.loaded += [
            value or "" for name, value in attributes if name in ("src", "href", "data", "action")
        ]
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that what ends is what began last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect what is read."""
        self.text += data


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


BREAKOUT = (
    "</script><script>document.title='ran'</script>\" onmouseover=\"document.title='ran'\" <!-- '"
)


def evidence(
    arrays: Mapping[str, NDArray[Any]],
    axes: Mapping[str, tuple[str, ...]],
    **texts: tuple[str, ...],
) -> Evidence:
    """Return evidence; its units have texts of their own where none are given."""
    numbers = [
        np.shape(arrays[name])[found.index("unit")]
        for name, found in axes.items()
        if "unit" in found
    ]
    units = tuple(f"Text of unit {number + 1}." for number in range(max(numbers, default=2)))
    return Evidence(arrays, axes, {"unit": units, **texts})


def inspection(
    looked_at: Evidence | None, text: str = "A summary.", name: str = "e-1", **changes: Any
) -> Inspection:
    example = Example(
        name, text, None, (Document(None, (Section(None, ((text,),)),)),), ((text,), (text, text))
    )
    ledger = Truncation(10, 8, (Cut("num_units", 5, 4),))
    values = {
        "record": record("looker", 30, variant="depth=2,width=3"),
        "number": 3,
        "summary": Summary(name, text, ledger, False, 7),
        "evidence": looked_at,
        "scores": {"R-1": 12.34, "R-Lsum": 5.0},
        "example": example,
    }
    return Inspection(**{**values, **changes})


def shown(path: Path, *more_flags: str) -> str:
    """Open a page in a browser; return it as it is when its script has run."""
    return opened(path, "--dump-dom", *more_flags).stdout


def opened(path: Path, *more_flags: str) -> "subprocess.CompletedProcess[str]":
    """Open a page in a browser; return what it prints. With --enable-logging=stderr it prints the console, too."""
    assert CHROMIUM
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={path.parent / 'profile'}",
        *more_flags,
    )
    return subprocess.run(
        [CHROMIUM, *flags, path.as_uri()],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def text_of(path: Path) -> str:
    """Return what a page says, with a blank after each cell."""
    spaced = re.sub("(</t[dh]>)", r"\1 ", path.read_text())
    return " ".join(Reading(spaced).text.split())
