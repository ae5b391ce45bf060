"""The configuration of a run: the settings of a system and those that all systems share, checked.

`resolve_config` is the door. It merges what Hydra composed into the dataclasses, and raises an error for unknown keys,
wrong types and invalid values.
"""

import math
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from longsumbench.core.bounds import (
    Between,
    Device,
    Seed,
    Text,
    check_value,
    collect_bounds,
    shorten,
)
from longsumbench.core.run_settings import DatasetSettings, Decoding, Scoring, TrainConfig
from longsumbench.core.settings import collect_defaults, setting
from longsumbench.core.system_config import SystemConfig
from longsumbench.errors import UsageError, did_you_mean

_OUTPUT_LENGTHS = ("min_length", "max_length")
_ON_CARDS = (
    "max_length",
    "num_beams",
    "length_penalty",
    "no_repeat_ngram",
)
Timeout = Annotated[float, Between(0, 10**7, open_low=True)]


@dataclass
class RunConfig:
    """The complete configuration of a run; `model` is an instance of the system's `Config`."""

    # OmegaConf checks the other fields; the sections are checked one by one.
    model: SystemConfig = field(metadata={"omegaconf_ignore": True})
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    train: TrainConfig = field(default_factory=TrainConfig)
    decode: Decoding = field(default_factory=Decoding)
    score: Scoring = field(default_factory=Scoring)
    name: Text | None = setting(
        None, "name of the run in tables; no part of its id", decides="nothing"
    )
    scale: Text = setting("paper", "name of the sizes and budgets (longsumbench list scales)")
    seed: Seed = setting(1, "seed of all random draws", decides="seed")
    device: Device = setting(
        "auto", "auto (cuda if there is one) | cpu | cuda | mps (a Mac's GPU)", decides="nothing"
    )
    results_dir: Text = setting("results", "folder of runs and tables", decides="nothing")
    overwrite: bool = setting(False, "delete a finished run and repeat it", decides="nothing")
    baselines: bool = setting(
        True,
        "with a run, score lead, random, oracle and, for queries, ranker rank=bm25",
        decides="nothing",
    )
    timeout_minutes: Timeout | None = setting(
        None, "minutes a run of a sweep may take; null: any", decides="nothing"
    )


SECTIONS = {"dataset": DatasetSettings, "train": TrainConfig, "decode": Decoding, "score": Scoring}


def resolve_config(composed: DictConfig, model_config: type) -> RunConfig:
    """Merge what Hydra composed from YAML files and the command line into the dataclasses.

    `decode` has one more layer, between the dataclass and the YAML files: the card of the model's checkpoint.

    Raises:
        UsageError: a key is unknown, or a value has the wrong type or is invalid; the message has the full key.
    """
    try:
        plain = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise UsageError(f"{error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(plain, dict)
    sections = {"model": model_config, **SECTIONS}
    scalars = {item.name for item in fields(RunConfig)} - set(sections)
    for key in plain:
        if key not in sections and key not in scalars:
            raise UsageError(
                f"unknown setting '{key!s}'{did_you_mean(str(key), [*sections, *scalars])}"
            )
    top = {str(key): value for key, value in plain.items() if key in scalars}
    # Check what the sections inherit.
    build_settings(RunConfig, top, prefix="", groups=dict.fromkeys(sections))
    settled: dict[str, Any] = {}
    for name, schema in sections.items():
        section = plain.get(name) or {}
        if not isinstance(section, dict):
            raise UsageError(
                f"{name}={section!r} is not a group of settings; set {name}.<setting>=<value>"
            )
        overrides = {str(key): value for key, value in section.items()}
        # A system's settings of these names are its own.
        if name != "model":
            names = {item.name for item in fields(schema)}
            overrides = {key: top[key] for key in top.keys() & names - {"name"}} | overrides
        if name == "decode":
            overrides = _card_decoding(settled["model"]) | overrides
        settled[name] = build_settings(schema, overrides, prefix=f"{name}.")
    config: RunConfig = build_settings(RunConfig, top, prefix="", groups=settled)
    return config


def _card_decoding(model: SystemConfig) -> dict[str, Any]:
    """Return the settings of a checkpoint's card, with lengths that the system can write."""
    decoding = dict(model.usual_decoding() or {})
    for name in decoding.keys() & _OUTPUT_LENGTHS:
        if model.decode_length:
            decoding[name] = min(decoding[name], model.decode_length)
    return decoding


def describe_generation_defaults(config: RunConfig, overrides: Collection[str]) -> str:
    """Return a warning if a checkpoint's card lacks settings or has longer outputs than the system; else an empty text.

    `overrides` are the names of the settings of `decode` that YAML files or the command line set.
    """
    model, notes = config.model, []
    card, limit = model.usual_decoding(), model.decode_length
    if card is None:
        return ""
    used = {**vars(config.decode), "max_length": limit}
    absent = [name for name in _ON_CARDS if name not in card and name not in overrides]
    if absent:
        values = " ".join(f"decode.{name}={used[name]}" for name in absent)
        notes.append(f"lacks {', '.join(absent)}: used {values}")
    for name in _OUTPUT_LENGTHS:
        if limit and name not in overrides and card.get(name, 0) > limit:
            notes.append(
                f"has {name}={card[name]}: used decode.{name}={limit}, model.decode_length"
            )
    if (prefix := model.usual_prefix()) and not model.prefix:
        notes.append(f"begins inputs with '{prefix}': add \"model.prefix='{prefix}'\" for that")
    return f"the card of {model.checkpoint or model.name} {'; it '.join(notes)}" if notes else ""


def settings_without_effect(config: RunConfig) -> set[str]:
    """Return the settings that change nothing, given the others ("decode.length_penalty")."""
    of_decoding = {f"decode.{name}" for name in config.decode.without_effect()}
    of_model = config.model.without_effect(config.train, config.decode)
    return of_decoding | {f"model.{name}" for name in of_model}


def build_settings(
    schema: type, values: Mapping[str, Any], prefix: str, groups: Mapping[str, Any] | None = None
) -> Any:
    """Build the dataclass `schema` from plain values, checking names, types and bounds.

    Args:
        schema: a dataclass.
        values: field name → plain value, for the fields that depart from their defaults.
        prefix: of a field's name on the command line ("train.").
        groups: fields that are built already and not checked again.

    Raises:
        UsageError: a name is unknown, or a value has the wrong type, is out of its bounds or is not finite.
    """
    groups = groups or {}
    checked, text = _checked_before(schema, prefix, frozenset(groups)), repr(values)
    if text not in checked:
        checked[text] = _check_values(schema, values, prefix, groups)
    return schema(**deepcopy(checked[text]), **groups)


@cache  # the points of a sweep share most of their settings
def _checked_before(schema: type, prefix: str, groups: frozenset[str]) -> dict[str, dict[str, Any]]:
    return {}


def _check_values(
    schema: type, values: Mapping[str, Any], prefix: str, groups: Mapping[str, Any]
) -> dict[str, Any]:
    hints, bounds = get_type_hints(schema), collect_bounds(schema)
    defaults = collect_defaults(schema)
    types = {item.name: hints[item.name] for item in fields(schema) if item.name not in groups}
    for key in values:
        if key not in types:
            if issubclass(schema, SystemConfig) and key in schema.former_settings:
                raise UsageError(
                    f"there is no {prefix}{key} any more: choose {schema.former_settings[key]}"
                )
            suggestion = did_you_mean(key, types)
            place = prefix.rstrip(".") or "the top level"
            raise UsageError(
                f"unknown setting '{prefix}{key}'{suggestion}; {place} has: {', '.join(types)}"
            )
        if values[key] == "???":
            raise UsageError(f"{prefix}{key} has no default: set it")
        if values[key] == "None":
            has_null = type(None) in get_args(types[key]) or defaults.get(key) == ""
            advice = f"write {prefix}{key}=null, or leave it out" if has_null else "leave it out"
            raise UsageError(f"{prefix}{key}=None would be a text: {advice}")
    checked = OmegaConf.structured(schema)
    # The dataclass may be frozen.
    OmegaConf.set_readonly(checked, False)
    for key, value in values.items():
        # Null is also an empty text, where that is the default.
        is_empty = value is None and defaults.get(key) == ""
        try:
            checked[key] = "" if is_empty else value
        except OmegaConfBaseException as error:
            kind = _type_name(types[key])
            form = ": write a list in brackets, without quotes" if "list" in kind else ""
            form = ": write {name: value}" if "dict" in kind else form
            typed = "null" if value is None else shorten(repr(value))
            raise UsageError(f"{prefix}{key}={typed} is not of type {kind}{form}") from error
    plain: Any = OmegaConf.to_container(checked)
    checked_values = {key: plain[key] for key in values}
    for key, value in checked_values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{prefix}{key}={value} is not a finite number")
        check_value(f"{prefix}{key}", value, bounds[key])
    return checked_values


def _type_name(kind: Any) -> str:
    if type(None) in get_args(kind):
        return " | ".join(_type_name(part) for part in get_args(kind))
    return {type(None): "null"}.get(kind) or (str(kind) if get_args(kind) else kind.__name__)
