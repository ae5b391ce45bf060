"""The variant of a run: its settings that differ from the recipe."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench.api import SAME_SYSTEM, RunConfig, names_deciding, resolve_config
from longsumbench.formatting import format_plain_value
from longsumbench.runs.compose import compose
from longsumbench.runs.typed_overrides import override_key

_NAMED = ("checkpoint", "revision")  # settings of a model without which its row in a table says nothing


class Variants:
    """Names the variants of points that are planned together, within a session of Hydra."""

    def __init__(self, config_dir: str | None) -> None:
        self._config_dir = config_dir
        self._usual: dict[tuple[tuple[str, ...], type], RunConfig] = {}  # many points differ in the same settings

    def name(self, overrides: Sequence[str], config: RunConfig, decided_by: frozenset[str]) -> str:
        """Return the typed model and decode settings that differ from the recipe and decide summaries, sorted.

        A checkpoint is always named. How summaries are made, and what was trained, is named if it is not the usual.

        Args:
            overrides: of the point, in Hydra's form.
            config: of the point.
            decided_by: the sections that decide its summaries.
        """
        named = {f"{key}={format_setting(value)}" for key in _NAMED if (value := getattr(config.model, key, None))}
        if config.decode.mode != "write" and "decode" in decided_by:
            named.add(f"mode={config.decode.mode}")
        if config.train.only != "all" and "train" in decided_by:
            named.add(f"only={config.train.only}")
        return ",".join(sorted({*named, *self._changed(overrides, config, decided_by)}))

    def _changed(self, overrides: Sequence[str], config: RunConfig, decided_by: frozenset[str]) -> Iterator[str]:
        """Yield the typed settings with other values than the recipe gives, as "key=value"."""
        keys = {word: override_key(word) for word in overrides}
        chooses_card = {f"model.{key}" for key in _NAMED}  # a checkpoint's card has usual settings, too
        kept = {
            word: key
            for word, key in keys.items()
            if key in chooses_card or not (key.startswith(("model.", "decode.")) or key == "decode")
        }
        if len(kept) == len(keys):
            return
        recipe = self._usual_settings(tuple(kept), type(config.model))
        for section in ("model", *({"decode"} & decided_by)):
            chosen = getattr(config, section)
            for key in {item.name for item in fields(chosen)} - names_deciding(chosen, *SAME_SYSTEM):
                name, value, usual = f"{section}.{key}", getattr(chosen, key), recipe
                if name not in keys.values() and not (section == "decode" and section in keys.values()):
                    continue
                if isinstance(value, list):  # its default may follow from other settings, such as all layers
                    others = {f"{section}.{item.name}" for item in fields(chosen)} - {name}
                    words = tuple(word for word in overrides if word in kept or keys[word] in others)
                    usual = self._usual_settings(words, type(config.model))
                if value != getattr(getattr(usual, section), key):
                    yield f"{key}={format_setting(value)}"

    def _usual_settings(self, overrides: tuple[str, ...], model_config: type) -> RunConfig:
        """Return the configuration of some of a point's overrides.

        Mandatory values without default are removed, and settings that an experiment's file has for other models.
        """
        if (overrides, model_config) not in self._usual:
            composed = compose(overrides, self._config_dir)
            for key in [key for key in composed.model if key not in {item.name for item in fields(model_config)}]:
                del composed.model[key]
            for section in ("model", "decode"):
                for key in [key for key in composed[section] if OmegaConf.is_missing(composed[section], key)]:
                    del composed[section][key]
            self._usual[overrides, model_config] = resolve_config(composed, model_config)
        return self._usual[overrides, model_config]


def format_setting(value: Any) -> str:
    """Return a value as it is typed on the command line; of a folder only the last name."""
    if isinstance(value, list):
        return f"[{','.join(map(format_setting, value))}]"
    if isinstance(value, str) and "/" in value and Path(value).expanduser().is_dir():
        return Path(value).name
    return format_plain_value(value)
