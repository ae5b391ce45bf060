"""Errors for invalid overrides. Each error proposes what to write instead."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from longsumbench.api import SECTIONS, registry
from longsumbench.conf import CONF
from longsumbench.errors import UnknownName, UsageError, did_you_mean

_OTHER_NAMES = {
    "lr": "train.learning_rate",
    "bs": "train.batch_size",
    "steps": "train.max_steps",
    "beams": "decode.num_beams",
}
_LOADS_CHECKPOINTS = "pagesum"  # loads BART checkpoints by hub name or folder
_RUN_HELP = "(see longsumbench run --help)"


def not_an_override(word: str) -> UsageError:
    """Return the error for a word that has no "=" or deletes a setting."""
    tables = {"model": registry.systems.targets(), "dataset": registry.corpora.targets()}
    files = {group: [path.stem for path in (CONF / group).glob("*.yaml")] for group in ("scale", "experiment")}
    for group, names in {**tables, **files}.items():
        if word in names:
            return UsageError(f"'{word}' is not an override: write {group}={word}")
    if _is_path(word):
        return UsageError(f"'{word}' is not an override: write dataset=jsonl dataset.path={word}")
    return UsageError(f"'{word}' is not an override: write key=value {_RUN_HELP}")


def unknown_setting(key: str, known: Sequence[str]) -> UsageError:
    """Return the error for an unknown setting; it proposes the section if only that is missing."""
    sections = {f"{section}.{item.name}" for section, schema in SECTIONS.items() for item in fields(schema)}
    found = [_OTHER_NAMES[key]] if key in _OTHER_NAMES else sorted(_ending_in(key, sections))
    if found or (found := sorted(_ending_in(key, _settings_of_models()))):
        near = f" (did you mean {' or '.join(map(repr, found))}?)"
    else:
        near = did_you_mean(key.partition(".")[0], known) or did_you_mean(key, sections)
    return UsageError(f"unknown setting '{key}'{near} {_RUN_HELP}")


def unknown_choice(group: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown name in a group; for a path it proposes the right setting."""
    if group == "dataset" and _is_path(name):
        return UsageError(f"dataset={name} is a path: write dataset=jsonl dataset.path={name}")
    if group == "model" and _is_path(name) and (Path(name) / "system.json").is_file():
        what = "a checkpoint of this suite: write model=NAME, the system that wrote it,"
        return UsageError(f"model={name} is {what} model.init={name}")
    if group == "model" and ("/" in name or _is_path(name)):
        what = f"not a system; model={_LOADS_CHECKPOINTS} loads BART checkpoints"
        return UsageError(f"model={name} is {what}: write model={_LOADS_CHECKPOINTS} model.init={name}")
    return UnknownName(group or "configuration", name, known)


def _is_path(word: str) -> bool:
    with suppress(OSError, RuntimeError, ValueError):  # too long, a loop of links, an unknown home, NUL
        return bool(word) and Path(word).expanduser().exists()
    return False


def _ending_in(key: str, settings: Iterable[str]) -> list[str]:
    return [setting for setting in settings if setting.partition(".")[2] == key and key != "name"]


def _settings_of_models() -> set[str]:
    return {f"model.{item.name}" for name in registry.systems.built_in for item in fields(registry.config_of(name))}
