"""Errors for invalid overrides. Each error proposes what to write instead."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from longsumbench.api import SECTIONS, registry
from longsumbench.errors import UnknownName, UsageError, did_you_mean

_RUN_HELP = "(see longsumbench run --help)"
_ALSO_CALLED = {"lr": "train.learning_rate", "steps": "train.max_steps", "beams": "decode.num_beams"}


def not_an_override(word: str) -> UsageError:
    """Return the error for a word that has no "=" or deletes a setting."""
    for group, names in {"model": registry.systems.targets(), "dataset": registry.corpora.targets()}.items():
        if word in names:
            return UsageError(f"'{word}' is not an override: write {group}={word}")
    return UsageError(f"'{word}' is not an override: write key=value {_RUN_HELP}")


def unknown_setting(key: str, known: Sequence[str]) -> UsageError:
    """Return the error for an unknown setting; it proposes the section if only that is missing."""
    sections = {f"{section}.{item.name}" for section, schema in SECTIONS.items() for item in fields(schema)}
    if key.rpartition(".")[2] in _ALSO_CALLED:
        near = f" (did you mean '{_ALSO_CALLED[key.rpartition('.')[2]]}'?)"
    elif found := sorted(_ending_in(key, sections)) or sorted(_ending_in(key, _settings_of_models())):
        near = f" (did you mean {' or '.join(map(repr, found))}?)"
    else:
        near = did_you_mean(key.partition(".")[0], known) or did_you_mean(key, sections)
    return UsageError(f"unknown setting '{key}'{near} {_RUN_HELP}")


def unknown_choice(group: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown name in a group; for a path it proposes the right setting."""
    with suppress(OSError, RuntimeError, ValueError):  # too long, a loop of links, an unknown home, NUL
        if group == "dataset" and name and Path(name).expanduser().exists():
            return UsageError(f"dataset={name} is a path: write dataset=jsonl dataset.path={name}")
    if group == "model" and "/" in name:
        checkpoint = f"model=seq2seq model.checkpoint={name}, or model=prompt for a language model"
        return UsageError(f"model={name} is a checkpoint: write {checkpoint}")
    return UnknownName(group or "configuration", name, known)


def _ending_in(key: str, settings: Iterable[str]) -> list[str]:
    return [setting for setting in settings if setting.partition(".")[2] == key and key != "name"]


def _settings_of_models() -> set[str]:
    return {f"model.{item.name}" for name in registry.systems.built_in for item in fields(registry.config_of(name))}
