"""The variant of a run: the settings that the user typed and that differ from the recipe; `name_variant` is the door."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from longsumbench import core
from longsumbench.formatting import format_plain_value
from longsumbench.runs.compose import compose
from longsumbench.runs.overrides import override_key

# They choose a checkpoint, whose card has default settings, too.
_CHOOSE_CARD = ("model.checkpoint", "model.revision")


def name_variant(
    overrides: Sequence[str], config: core.RunConfig, config_dir: str | None = None
) -> str:
    """Return the typed model and decode settings that differ from the recipe and decide summaries, sorted.

    A checkpoint is always named. How summaries are made, and what was trained, is named if it is not the default.

    Args:
        overrides: in Hydra's form.
        config: what they give.
        config_dir: has more YAML files.
    """
    model, decided_by = config.model, config.model.decided_by
    changed = _changed_settings(overrides, config, config_dir)
    for name, value in (("checkpoint", model.checkpoint), ("revision", model.revision)):
        if value:
            changed[name] = value
    if config.decode.mode != "write" and "decode" in decided_by:
        changed["mode"] = config.decode.mode
    if config.train.only != "all" and "train" in decided_by:
        changed["only"] = config.train.only
    return ",".join(sorted(f"{name}={format_setting(value)}" for name, value in changed.items()))


def _changed_settings(
    overrides: Sequence[str], config: core.RunConfig, config_dir: str | None
) -> dict[str, Any]:
    """Return name → value of the typed settings that have another value than the recipe gives."""
    departing = [key for key in map(override_key, overrides) if _departs(key)]
    if not departing:
        return {}

    def config_without(keys: Collection[str]) -> core.RunConfig:
        words = [word for word in overrides if override_key(word) not in keys]
        return _resolve_known(compose(words, config_dir), type(config.model))

    recipe_config = config_without(departing)
    unused_settings = core.settings_without_effect(config)
    changed = {}
    for section in ("model", *({"decode"} & config.model.decided_by)):
        settings = vars(config)[section]
        neutral = core.names_deciding(settings, *core.SAME_SYSTEM)
        for item in fields(settings):
            key, value = f"{section}.{item.name}", vars(settings)[item.name]
            is_typed = key in departing or section in departing
            if not is_typed or key in unused_settings or item.name in neutral:
                continue
            default = recipe_config
            if isinstance(value, list):  # its default may follow from others, such as all layers
                default = config_without([key])
            if value != vars(vars(default)[section])[item.name]:
                changed[item.name] = value
    return changed


def _resolve_known(composed: DictConfig, model_config: type) -> core.RunConfig:
    """Resolve what the dataclasses know: without values to be typed, and settings of other models in a sweep."""
    for section, schema in (("model", model_config), ("decode", core.Decoding)):
        node = composed[section]
        names = [item.name for item in fields(schema)]
        present = [name for name in names if not OmegaConf.is_missing(node, name)]
        composed[section] = OmegaConf.masked_copy(node, present)
    return core.resolve_config(composed, model_config)


def _departs(key: str) -> bool:
    """Return True for a setting of the model or the decoding, which departs from a recipe."""
    return (key not in _CHOOSE_CARD and key.startswith(("model.", "decode."))) or key == "decode"


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
