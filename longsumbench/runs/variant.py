"""The variant of a run: the settings that the user typed and that differ from the recipe; `name_variant` is the door."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench import core
from longsumbench.formatting import format_plain_value
from longsumbench.runs.compose import compose
from longsumbench.runs.overrides import override_key

# They choose a checkpoint, whose card has usual settings, too.
_CHOOSE_CARD = ("model.checkpoint", "model.revision")
UsualConfig = Callable[[tuple[str, ...], type], core.RunConfig]


def name_variant(overrides: Sequence[str], config: core.RunConfig, usual_of: UsualConfig) -> str:
    """Return the typed model and decode settings that differ from the recipe and decide summaries, sorted.

    A checkpoint is always named. How summaries are made, and what was trained, is named if it is not the usual.

    Args:
        overrides: in Hydra's form.
        config: what they give.
        usual_of: `usual_config`, with a cache if many points differ in the same settings.
    """
    model, decided_by = config.model, config.model.decided_by
    changed = _changed_settings(overrides, config, usual_of)
    for name, value in (("checkpoint", model.checkpoint), ("revision", model.revision)):
        if value:
            changed[name] = value
    if config.decode.mode != "write" and "decode" in decided_by:
        changed["mode"] = config.decode.mode
    if config.train.only != "all" and "train" in decided_by:
        changed["only"] = config.train.only
    return ",".join(sorted(f"{name}={format_setting(value)}" for name, value in changed.items()))


def _changed_settings(
    overrides: Sequence[str], config: core.RunConfig, usual_of: UsualConfig
) -> dict[str, Any]:
    """Return name → value of the typed settings that have another value than the recipe gives."""
    keys = {word: override_key(word) for word in overrides}
    recipe_words = tuple(word for word in overrides if not _departs(keys[word]))
    if len(recipe_words) == len(overrides):
        return {}
    usual = usual_of(recipe_words, type(config.model))
    idle = core.settings_without_effect(config)
    changed = {}
    for section in ("model", *({"decode"} & config.model.decided_by)):
        settings = getattr(config, section)
        for item in fields(settings):
            key = f"{section}.{item.name}"
            is_typed = key in keys.values() or (section == "decode" and section in keys.values())
            if not is_typed or key in idle:
                continue
            if item.name in core.names_deciding(settings, *core.SAME_SYSTEM):
                continue
            value, usual_settings = getattr(settings, item.name), getattr(usual, section)
            if isinstance(value, list):  # its default may follow from others, such as all layers
                other_words = tuple(word for word in overrides if keys[word] != key)
                usual_settings = getattr(usual_of(other_words, type(config.model)), section)
            if value != getattr(usual_settings, item.name):
                changed[item.name] = value
    return changed


def _departs(key: str) -> bool:
    """Return True for a setting of the model or the decoding, which departs from a recipe."""
    return (key not in _CHOOSE_CARD and key.startswith(("model.", "decode."))) or key == "decode"


def usual_config(
    overrides: tuple[str, ...], model_config: type, config_dir: str | None = None
) -> core.RunConfig:
    """Return the configuration of some of a point's overrides, within a session of Hydra.

    Mandatory values without default are removed, and settings that an experiment's file has for other models.
    """
    composed = compose(overrides, config_dir)
    names = {item.name for item in fields(model_config)}
    for section in ("model", "decode"):
        for key in list(composed[section]):
            is_foreign = section == "model" and key not in names
            if is_foreign or OmegaConf.is_missing(composed[section], key):
                del composed[section][key]
    return core.resolve_config(composed, model_config)


def format_setting(value: Any) -> str:
    """Return a value as it is typed on the command line; of a folder only the last name."""
    if isinstance(value, list):
        return f"[{','.join(map(format_setting, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{format_setting(item)}' for key, item in value.items())}}}"
    if isinstance(value, str) and "/" in value and Path(value).expanduser().is_dir():
        return Path(value).name
    if isinstance(value, str) and "," in value:  # which separates settings
        return '"' + value.replace('"', "'") + '"'
    return format_plain_value(value)
