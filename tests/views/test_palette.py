"""Colours are visible and distinguishable, and a system has the same ones in every picture."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from longsumbench.core import registry
from longsumbench.views.figures import COLOURS, GREY, system_styles

DARK = "#14171b"  # of pages
# Linear RGB as seen with complete protanopia, deuteranopia and tritanopia (Machado and others, 2009)
SEEN_AS = {
    "by all": "1 0 0 0 1 0 0 0 1",
    "protan": """0.152286 1.052583 -0.204868
        0.114503 0.786281 0.099216
        -0.003882 -0.048116 1.051998""",
    "deutan": """0.367322 0.860646 -0.227968
        0.280085 0.672501 0.047413
        -0.011820 0.042940 0.968881""",
    "tritan": """1.255528 -0.076749 -0.178779
        -0.078411 0.930809 0.147602
        0.004733 0.691367 0.303900""",
}
TO_XYZ = """0.4124564 0.3575761 0.1804375
    0.2126729 0.7151522 0.0721750
    0.0193339 0.1191920 0.9503041"""


def matrix(numbers: str) -> NDArray[np.float64]:
    """Return a matrix of 3 × 3 of its numbers."""
    return np.array(numbers.split(), float).reshape(3, 3)


def linear(colour: str) -> NDArray[np.float64]:
    """Linear RGB of a colour in hexadecimal digits."""
    values = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Contrast of WCAG, 1 to 21."""
    high, low = sorted(
        (float(linear(colour) @ matrix(TO_XYZ)[1]) for colour in (one, other)), reverse=True
    )
    return (high + 0.05) / (low + 0.05)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y, z = np.cbrt(matrix(TO_XYZ) @ rgb.clip(0, 1) / [0.95047, 1, 1.08883])
    return np.array([116 * y, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("colour", [*COLOURS, GREY])
def test_colours_are_visible(colour: str) -> None:
    """The contrast with white is 3 or more; with dark pages too, except for black, which they replace."""
    assert contrast(colour, "#FFFFFF") >= 3
    assert contrast(colour, DARK) >= 3 or colour == "#000000"


@pytest.mark.parametrize("seen_as", SEEN_AS.values(), ids=SEEN_AS)
def test_colours_differ_for_everybody(seen_as: str) -> None:
    """With any kind of colour blindness, two colours differ by five just noticeable differences (2.3)."""
    colours = [lab(matrix(seen_as) @ linear(colour)) for colour in COLOURS]
    assert (
        min(float(np.linalg.norm(one - other)) for one, other in combinations(colours, 2))
        >= 5 * 2.3
    )


def test_a_system_looks_the_same_everywhere() -> None:
    """Whatever is drawn next to it; built-in systems all look different, and so do variants of one."""
    (seal,) = system_styles(["seal"])
    assert system_styles(["ea", "mine", "seal"])[2] == seal
    names = list(registry.systems.shipped())
    assert len({(style["color"], style["marker"]) for style in system_styles(names)}) == len(names)
    first, *others = system_styles(["seal"] * 8)
    assert first == seal
    colours = [style["color"] for style in others]
    assert {seal["color"], *colours} == {*COLOURS}
    assert colours[-1] == seal["color"]
    assert others[-1]["marker"] != seal["marker"]
