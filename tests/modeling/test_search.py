"""`decode.length_norm` and `decode.coverage`: what is refused, what reaches the search, what keeps its id."""

from typing import Any

import pytest

from longsumbench.core import Decoding, System, build_settings, check_search, registry
from longsumbench.errors import UsageError
from longsumbench.runs.plan import plan
from longsumbench.runs.summarize import settle_decoding, summarize_inputs

COVERING: dict[str, Any] = {"num_beams": 4, "coverage": "summary"}


def system(name: str, **settings: Any) -> System:
    """Return a system that is not fitted."""
    kind = registry.systems.load(name)
    found: System = kind(kind.Config(**settings))
    return found


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"coverage": "summary"},
            r"decode\.coverage=summary ranks beams, and decode\.num_beams=1 has none: choose ",
        ),
        (
            {"num_beams": 4, "coverage": "sumary"},
            r"decode\.coverage=sumary \(did you mean 'summary'\?\); allowed: none",
        ),
        ({**COVERING, "coverage_penalty": -0.1}, r"decode\.coverage_penalty=-0\.1 is below 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], message: str) -> None:
    """A rule that is none, a negative β, and coverage without beams fail with their key and what to do."""
    with pytest.raises(UsageError, match=message):
        build_settings(Decoding, settings, "decode.")


@pytest.mark.parametrize(
    ("name", "settings", "gives"),
    [
        ("trunc", {}, True),
        ("ea", {}, True),
        ("seal", {}, False),
        ("pagesum", {"decoding": "global"}, True),
        ("pagesum", {"decoding": "page"}, False),
        ("lead", {}, False),
    ],
)
def test_who_gives_attention(name: str, settings: dict[str, Any], gives: bool) -> None:
    """Coverage is refused where the memory is not one and the same; systems that do not search ignore it."""
    one = system(name, **settings)
    assert one.config.capabilities.gives_attention == gives
    check_search(one.config, Decoding())
    if gives or name == "lead":
        check_search(one.config, Decoding(**COVERING))
    else:
        with pytest.raises(
            UsageError, match=rf"decode\.coverage=summary: model={name}, .*decode\.coverage=none"
        ):
            check_search(one.config, Decoding(**COVERING))


def test_a_run_is_refused_before_any_work() -> None:
    """`run` refuses coverage where it is planned; what is possible is planned, and named in the table's variant."""
    words = ["decode.num_beams=4", "decode.coverage=wu", "decode.length_norm=wu"]
    with pytest.raises(UsageError, match=r"decode\.coverage=wu: model=seal"):
        plan(["model=seal", *words])
    planned = plan(["model=trunc", "scale=tiny", *words])[0]
    assert planned.config.decode.coverage == planned.config.decode.length_norm == "wu"
    assert planned.variant == "coverage=wu,length_norm=wu,num_beams=4"


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
    with pytest.raises(UsageError, match=message) as refused:
        plan([*words.split(), "scale=tiny"])
    assert "\n" not in str(refused.value)


def test_summarize_refuses_extracts_as_long_as_a_reference() -> None:
    """One's own texts have no reference, and a checkpoint whose decoder was not trained does not write."""
    decoding = settle_decoding(
        ["decode.mode=extract", "decode.extract_length=reference"], Decoding()
    )
    with pytest.raises(UsageError, match="no reference"):
        next(summarize_inputs(system("ea"), [], decoding))
    one = system("ea")
    one.state.trained_only = "scorer"
    with pytest.raises(UsageError, match=r"choose decode\.mode=extract"):
        next(summarize_inputs(one, [], Decoding()))
