"""`decode.length_norm` and `decode.coverage`: what is refused, what reaches the search, what keeps its id."""

from typing import Any

import pytest
from support.toys import build_tiny, refuses, settings_of

from longsumbench.core import Decoding, check_search
from longsumbench.runs.plan import plan
from longsumbench.runs.summarize import settle_decoding, summarize_inputs

COVERING: dict[str, Any] = {"num_beams": 4, "coverage": "summary"}


@pytest.mark.parametrize(
    ("name", "settings", "gives"),
    [
        ("trunc", "", True),
        ("ea", "", True),
        ("seal", "", False),
        ("pagesum", "decoding=global", True),
        ("pagesum", "decoding=page", False),
        ("lead", "", False),
    ],
)
def test_who_gives_attention(name: str, settings: str, gives: bool) -> None:
    """Coverage is refused where the memory is not one and the same; systems that do not search ignore it."""
    one = build_tiny(name, **settings_of(settings))
    assert one.config.capabilities.gives_attention == gives
    check_search(one.config, Decoding())
    if gives or name == "lead":
        check_search(one.config, Decoding(**COVERING))
    else:
        with refuses(rf"decode\.coverage=summary: model={name}, .*decode\.coverage=none"):
            check_search(one.config, Decoding(**COVERING))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (f"model={name} decode.mode=extract", "scores no sentences")
            for name in ("trunc", "tdmca")
        ),
        ("model=pagesum model.decoding=global decode.mode=extract", "scores no sentences"),
        ("model=etads train.only=scorer decode.mode=extract", "no scorer that trains alone"),
        ("model=ea train.only=scorer", r"add decode\.mode=extract"),
        ("model=ea decode.mode=extract decode.extract_length=0", "a number of words, at least 1"),
        ("model=ea decode.extract_length=50", r"is for extracts: add decode\.mode=extract"),
    ],
)
def test_extracts_that_are_refused(words: str, message: str) -> None:
    """What cannot be extracted, or would not be, is refused where it is planned, in one line."""
    with refuses(message):
        plan([*words.split(), "scale=tiny"])


def test_summarize_refuses_extracts_as_long_as_a_reference() -> None:
    """One's own texts have no reference, and a checkpoint whose decoder was not trained does not write."""
    decoding = settle_decoding(
        ["decode.mode=extract", "decode.extract_length=reference"], Decoding()
    )
    with refuses("no reference"):
        next(summarize_inputs(build_tiny("ea"), [], decoding))
    one = build_tiny("ea")
    one.state.trained_only = "scorer"
    with refuses(r"choose decode\.mode=extract"):
        next(summarize_inputs(one, [], Decoding()))
