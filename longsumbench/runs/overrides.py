"""Settings given in Python or in a file, as overrides: `model={"name": "seal"}` becomes `model=seal`."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Real
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.core import SECTIONS, RunConfig, registry
from longsumbench.errors import UsageError
from longsumbench.files import read_text
from longsumbench.runs.compose import first_error_line
from longsumbench.runs.typed_overrides import GROUPS, override_key

_log = logging.getLogger(__name__)

_READER = "reader"  # of a dataset
_NEEDS_NO_QUOTES = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_/][\w./-]*", re.ASCII | re.IGNORECASE)


def format_overrides(settings: Mapping[str, Any], swept: bool = False) -> list[str]:
    """Return settings as overrides.

    Args:
        settings: setting → value. A dictionary as a value holds the settings of a group; `name` chooses in the group.
        swept: whether a list, tuple or range holds values to sweep over.

    Raises:
        UsageError: a value is of a type that no setting has.
    """
    words = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            chooser = _READER if value.get(_READER) else "name"  # own texts: the format chooses, and the name is set
            inner = {key if name == chooser and key in GROUPS else f"{key}.{name}": value[name] for name in value}
            words += format_overrides(inner, swept)
        elif swept and isinstance(value, list | tuple | range):
            if not value:
                raise UsageError(f"{key}={value!r} has no values to sweep over")
            words.append(f"{key}={','.join(_format_value(key, item) for item in value)}")
        else:
            words.append(f"{key}={_format_value(key, value)}")
    return words


def add_config_file(path: str | Path | None, words: Sequence[str]) -> list[str]:
    """Return the overrides that make the configuration of a run again (its `config.yaml`), followed by `words`.

    Single settings among `words` replace those of the file. Settings of the file that no longer exist are left out, and
    newer settings have their defaults; a line names them. `overwrite` is not taken from the file. Without a file, only
    `words` are returned.

    Raises:
        UsageError: the file is not the configuration of a run, or `words` choose another model, dataset or recipe.
    """
    if path is None:
        return list(words)
    keys = set(map(override_key, words))
    if groups_typed := sorted(keys & set(GROUPS)):
        raise UsageError(f"{groups_typed[0]}= cannot be combined with --config, which chooses it; single settings can")
    values = _read_config_file(Path(path))
    if values.get("model.imported"):
        problem = f"--config {path} is that of imported outputs of {values['model.name']}, which cannot be run"
        raise UsageError(f"{problem}: name the config.yaml of another run")
    sections = {"model": registry.config_of(values["model.name"]), **SECTIONS}
    current_keys = [f"{section}.{item.name}" for section, kind in sections.items() for item in fields(kind)]
    current_keys += [item.name for item in fields(RunConfig) if item.name not in sections]
    if gone := [key for key in values if key not in current_keys]:
        _log.info(f"{path}: left out, because these settings no longer exist: {', '.join(gone)}")
    if new_keys := [key for key in current_keys if key not in values]:
        _log.info(f"{path}: newer settings have their defaults: {', '.join(new_keys)}")
    shared = {f"{section}.{key}": key for section in SECTIONS for key in ("seed", "device")}
    left_out = {*gone, *keys, "overwrite", *(key for key, top in shared.items() if values.get(key) == values.get(top))}
    chooser = f"dataset.{_READER}" if values.get(f"dataset.{_READER}") else "dataset.name"
    groups = {"model.name": "model", chooser: "dataset"}
    settings = {groups.get(key, key): value for key, value in values.items() if key not in left_out}
    return [*format_overrides(settings), *words]


def _read_config_file(path: Path) -> dict[str, Any]:
    """Return full key ("train.seed") → value."""
    try:
        content = OmegaConf.to_container(OmegaConf.create(read_text(path)))
    except (OSError, ValueError, YAMLError, OmegaConfBaseException) as error:
        reason = getattr(error, "strerror", None) or first_error_line(error)
        raise UsageError(f"--config {path} cannot be read: {reason}") from error
    values: dict[str, Any] = {}
    for section, inner in content.items() if isinstance(content, dict) else ():
        group = isinstance(inner, dict)
        values |= {f"{section!s}.{key}": value for key, value in inner.items()} if group else {str(section): inner}
    if not isinstance(values.get("model.name"), str) or not isinstance(values.get("dataset.name"), str):
        raise UsageError(f"--config {path} is not the config.yaml of a run: model.name and dataset.name are missing")
    return values


def _format_value(key: str, value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Real():
            return f"{value}"
        case str() | Path():
            text = str(value)
            if _NEEDS_NO_QUOTES.fullmatch(text):
                return text
            return str(QuotedString(text.replace("${", r"\${"), Quote.single).with_quotes())
        case list() | tuple() | range():
            return f"[{','.join(_format_value(key, item) for item in value)}]"
    raise UsageError(f"{key}={value!r} is a {type(value).__name__}: give text, a number, True, False, None or a list")
