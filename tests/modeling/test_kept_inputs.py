"""The text of an example as a neural system read it."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.toys import example, fit_tiny

from longsumbench.core import Decoding

KEPT = Decoding(max_length=4, evidence="none", keep_inputs="all", device="cpu")


@pytest.mark.parametrize("mode", ["write", "extract"])
def test_a_system_of_several_units_numbers_them(mode: str, tmp_path: Path) -> None:
    """Before each unit is a line with its number; without those lines the text is that of the source."""
    system = fit_tiny("ea", tmp_path, snippet_length=8)
    (summary,) = system.summarize([example(7, sentences=3)], replace(KEPT, mode=mode))
    lines = summary.read.splitlines()
    headings = [line for line in lines if line.startswith("──")]
    assert headings == [f"── unit {number} of 3" for number in (1, 2, 3)]
    text = " ".join(line.strip() for line in lines if line not in headings)
    assert text == " ".join(example(7, sentences=3).sentences())
