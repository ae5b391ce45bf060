"""Overrides as typed: checked, brought into Hydra's form, and expanded into the points of a sweep.

The YAML files hold only departures from the dataclasses. So overrides (`model.page_size=128`) are additions for Hydra.
The dataclasses decide which settings exist. Each error proposes what to write instead.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import product
from pathlib import Path

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser

from longsumbench.core import SECTIONS, RunConfig, registry
from longsumbench.errors import UnknownName, UsageError, did_you_mean

_RUN_HELP = "(see longsumbench run --help)"
_SETTING_ALIASES = {"lr": "train.learning_rate", "steps": "train.max_steps", "beams": "decode.num_beams"}


def not_an_override(word: str) -> UsageError:
    """Return the error for a word that has no "=" or deletes a setting."""
    for group, names in {"model": registry.systems.targets(), "dataset": registry.corpora.targets()}.items():
        if word in names:
            return UsageError(f"'{word}' is not an override: write {group}={word}")
    return UsageError(f"'{word}' is not an override: write key=value {_RUN_HELP}")


def unknown_setting(key: str, choices: Sequence[str]) -> UsageError:
    """Return the error for an unknown setting; it proposes the section if only that is missing."""
    sections = {f"{section}.{item.name}" for section, schema in SECTIONS.items() for item in fields(schema)}
    if key.rpartition(".")[2] in _SETTING_ALIASES:
        suggestion = f" (did you mean '{_SETTING_ALIASES[key.rpartition('.')[2]]}'?)"
    elif matches := sorted(_ending_in(key, sections)) or sorted(_ending_in(key, _settings_of_models())):
        suggestion = f" (did you mean {' or '.join(map(repr, matches))}?)"
    else:
        suggestion = did_you_mean(key.partition(".")[0], choices) or did_you_mean(key, sections)
    return UsageError(f"unknown setting '{key}'{suggestion} {_RUN_HELP}")


def unknown_choice(group: str, name: str, choices: Iterable[str]) -> UsageError:
    """Return the error for an unknown name in a group; for a path it proposes the right setting."""
    with suppress(OSError, RuntimeError, ValueError):  # too long, a loop of links, an unknown home, NUL
        if group == "dataset" and name and Path(name).expanduser().exists():
            return UsageError(f"dataset={name} is a path: write dataset=jsonl dataset.path={name}")
    if group == "model" and "/" in name:
        checkpoint = f"model=seq2seq model.checkpoint={name}, or model=prompt for a language model"
        return UsageError(f"model={name} is a checkpoint: write {checkpoint}")
    return UnknownName(group or "configuration", name, choices)


def _ending_in(key: str, settings: Iterable[str]) -> list[str]:
    return [setting for setting in settings if setting.partition(".")[2] == key and key != "name"]


def _settings_of_models() -> set[str]:
    return {f"model.{item.name}" for name in registry.systems.built_in for item in fields(registry.config_of(name))}


GROUPS = ("model", "dataset", "scale", "train", "decode", "score", "experiment")
_DOTTED_SECTIONS = ("model", *SECTIONS)
TOP_LEVEL_SETTINGS = tuple(item.name for item in fields(RunConfig) if item.name not in (*_DOTTED_SECTIONS, "scale"))

_NEXT_SETTING = re.compile(rf"""^[^'"]*\s({"|".join([*GROUPS, *TOP_LEVEL_SETTINGS])})[\w./]*=""")


def as_hydra(word: str) -> str:
    """Check an override and return it in Hydra's form.

    Raises:
        UsageError: the word is not an override, or the setting is unknown.
    """
    key, sign, value = word.lstrip("+~").partition("=")
    if not sign or word.startswith("~"):  # in Hydra, ~ deletes a setting
        raise not_an_override(word)
    if _NEXT_SETTING.search(value):
        raise UsageError(f"'{word}' has several settings in one pair of quotes: leave the quotes out")
    head = key.partition(".")[0].partition("/")[0].partition("@")[0]
    if head == "hydra":
        raise UsageError(f"'{word}': Hydra's own settings need `longsumbench run -m`")
    if (head in _DOTTED_SECTIONS and "." in key) or key in TOP_LEVEL_SETTINGS:
        return f"++{key}={value}"
    if head not in GROUPS or "." in key:
        raise unknown_setting(key, [*GROUPS, *TOP_LEVEL_SETTINGS])
    return f"{key}={value}"


def expand(overrides: Sequence[str], sweep: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the overrides of every combination of the swept values.

    Raises:
        UsageError: there are several values without a sweep, or a range, which needs a sweeper.
    """
    parsed = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(list(overrides))
    choices, swept = [], []
    for word, override in zip(overrides, parsed, strict=True):
        swept.append(override.is_sweep_override())
        if swept[-1] and not sweep:
            raise UsageError(
                f"'{format_override(word)}' has several values: sweep over them with -m, or quote them as one value"
            )
        if override.is_interval_sweep():
            raise UsageError(
                f"'{format_override(word)}' is a range without values: use hydra/sweeper=optuna to search it"
            )
        if isinstance(names := override.value(), list) and not sets_value(word):
            together = f"-m {override.get_key_element()}={','.join(map(str, names))}"
            raise UsageError(f"'{word}' has several names: choose one, or sweep over them with {together}")
        values = override.sweep_string_iterator() if swept[-1] else ()
        choices.append([f"{override.get_key_element()}={value}" for value in values] if swept[-1] else [word])
    for combination in product(*choices):
        varying = (format_override(word) for word, varies in zip(combination, swept, strict=True) if varies)
        yield " ".join(varying), list(combination)


def swept_settings(swept: Sequence[str]) -> list[str]:
    """Return the settings of swept overrides ("model.page_size"), without seeds and without groups."""
    return [key for key in dict.fromkeys(map(override_key, swept)) if "." in key and not key.endswith(".seed")]


def override_key(override: str) -> str:
    """Return the setting or the group of an override ("model.page_size")."""
    return override.lstrip("+").partition("=")[0]


def format_override(override: str) -> str:
    """Return an override without Hydra's plus signs."""
    return override.lstrip("+")


def sets_value(word: str) -> bool:
    """Return True if an override sets a value, False if it chooses a file."""
    return word.startswith("++")
