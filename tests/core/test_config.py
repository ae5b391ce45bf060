"""Laying a composed configuration over the dataclasses."""

from dataclasses import dataclass, fields
from typing import Any

import pytest
from omegaconf import OmegaConf
from support.toys import refuses

from longsumbench.core import (
    SECTIONS,
    RunConfig,
    SystemConfig,
    TrainConfig,
    build_settings,
    registry,
    resolve_config,
)


@dataclass
class ModelConfig(SystemConfig):
    """Settings of a made-up system."""

    name: str = "mine"
    snippet_length: int = 128
    ratio: float = 0.5
    width: int | None = None
    labels: "str" = "exact"  # a quoted type, as `from __future__ import annotations` leaves them


def settled(**composed: Any) -> RunConfig:
    return resolve_config(OmegaConf.create(composed), ModelConfig)


def test_departures_win_over_defaults() -> None:
    """What is given replaces the default, and nothing else changes."""
    assert settled() == RunConfig(model=ModelConfig())
    config = settled(model={"snippet_length": 64}, train={"max_steps": 5}, scale="tiny")
    assert config == RunConfig(
        model=ModelConfig(snippet_length=64), train=TrainConfig(max_steps=5), scale="tiny"
    )


def test_seed_and_device_are_inherited() -> None:
    """The top-level seed and device reach training and decoding, unless a section has its own."""
    config = settled(seed=7, device="cpu", train={"seed": 3})
    assert (config.seed, config.train.seed, config.decode.seed, config.decode.device) == (
        7,
        3,
        7,
        "cpu",
    )


@pytest.mark.parametrize(
    ("composed", "message"),
    [
        ({"model": {"snippet_length": "long"}}, r"model\.snippet_length='long' is not of type int"),
        ({"model": {"labels": [1]}}, r"model\.labels=\[1\] is not of type str"),
        ({"train": {"max_tokens": "many"}}, r"train\.max_tokens='many' is not of type int \| null"),
        ({"model": "seal"}, r"model='seal' is not a group of settings"),
        ({"model": {"snippet_length": "???"}}, r"model\.snippet_length has no default"),
        ({"model": {"name": "${nowhere}"}}, r"nowhere"),
    ],
)
def test_a_wrong_value_names_its_key(composed: dict[str, Any], message: str) -> None:
    """A value of the wrong type fails before any work, with its full key and the type it should have."""
    with refuses(message):
        settled(**composed)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("ratio", 1, 1.0),
        ("snippet_length", "64", 64),
        ("name", 50, "50"),
        ("width", None, None),
    ],
)
def test_values_from_a_command_line_get_their_type(key: str, value: Any, expected: Any) -> None:
    """A whole number is good for a float, digits for a number, a number for text; None where it is allowed."""
    found = vars(build_settings(ModelConfig, {key: value}, "model."))[key]
    assert (found, type(found)) == (expected, type(expected))


def test_settling_does_not_touch_what_it_is_given() -> None:
    """The values handed over are the caller's still, and two results share nothing that can change."""
    composed = OmegaConf.create({"model": {"snippet_length": 64}})
    before = OmegaConf.to_container(composed)
    one, two = resolve_config(composed, ModelConfig), resolve_config(composed, ModelConfig)
    one.train.max_steps = 1
    assert OmegaConf.to_container(composed) == before
    assert two.train.max_steps == TrainConfig().max_steps


@pytest.mark.parametrize("name", [*SECTIONS, *registry.systems.shipped()])
def test_no_value_is_the_word_none(name: str) -> None:
    """Python's None is refused as a value of every setting; null, if advised, is accepted, for "" as an empty text."""
    schema = SECTIONS.get(name) or registry.load_config_class(name)
    for item in fields(schema):
        with refuses(rf"{item.name}=None would be a text: ") as none:
            build_settings(schema, {item.name: "None"}, "")
        if "=null" in str(none.value):
            build_settings(schema, {item.name: None}, "")
        if item.default == "":
            assert build_settings(schema, {item.name: None}, "") == schema()
