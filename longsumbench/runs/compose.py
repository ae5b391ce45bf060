"""Compose the YAML files and overrides with Hydra; systems and corpora without a file are offered to it by name."""

import copy
import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.conf import CONF, user_config_folder
from longsumbench.core import catalogue, dataset_files, read_dataset_file, registry
from longsumbench.errors import SuiteError, UnknownName, UsageError
from longsumbench.runs.overrides import (
    first_error_line,
    format_override,
    parse_overrides,
    sets_value,
    unknown_choice,
)

_MODELS = "models"  # in a scale's file: system → its settings
_ALL_SYSTEMS = "all"  # the settings of all systems that have them
_RECIPES = "model/recipe"  # a group: settings of a model for a dataset
# In an experiment's file: a list of lines, each with overrides as typed after -m
OWN_SWEEP = "sweep"


@contextmanager
def hydra_session(config_dir: str | None = None) -> Iterator[None]:
    """Let Hydra compose the suite's YAML files, and those of a folder, inside; its errors become errors of one line.

    Raises:
        UsageError: an override is invalid, or the folder does not exist.
    """
    if config_dir is not None and not Path(config_dir).is_dir():
        raise UsageError(f"--config-dir {config_dir}: no such folder")
    offer_plugins(config_dir)
    try:
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            yield
    except (HydraException, OmegaConfBaseException) as error:
        raise translate_hydra_error(error) from error


def search_path(config_dir: str | None) -> list[str]:
    """Return the override that adds the user's folder of YAML files and `config_dir`, as far as they exist."""
    quoted = []
    for folder in _added_folders(config_dir):
        path = str(folder.resolve()).replace("\\", "\\\\").replace("'", "\\'")
        quoted.append(f"'file://{path}'")
    return [f"hydra.searchpath=[{','.join(quoted)}]"] if quoted else []


def with_recipe(overrides: Sequence[str], config_dir: str | None) -> list[str]:
    """Return overrides, with the model and the dataset of a recipe that is chosen by name and names them.

    `model/recipe=NAME` of such a recipe needs no `model=` and no `dataset=`; a dataset that is typed wins.

    Raises:
        UnknownName: there is no such recipe.
        UsageError: the recipe is for another model; or it names none, and none is typed.
    """
    values = dict(word.partition("=")[::2] for word in overrides)
    if _RECIPES not in values:
        return list(overrides)
    name = values[_RECIPES]
    files = {path.stem: path for path in _config_files(config_dir, f"{_RECIPES}/*.yaml")}
    if name not in files:
        raise UnknownName("recipe", name, files)
    content = OmegaConf.load(files[name])
    own_model = OmegaConf.select(content, "model.name")
    own_dataset = OmegaConf.select(content, "dataset.name")
    model = values.get("model", own_model)
    if model is None:
        raise UsageError(f"model/recipe={name} names no model: add model= and dataset=")
    if own_model and model != own_model:
        raise UsageError(
            f"model/recipe={name} is for model={own_model}, not model={model}: leave one out"
        )
    words = list(overrides)
    for group, choice in (("model", own_model), ("dataset", own_dataset)):
        if choice and group not in values:
            words.append(f"{group}={choice}")
    return words


def compose(overrides: Sequence[str], config_dir: str | None) -> DictConfig:
    """Merge overrides into the YAML files, as Hydra does after reading all files, but without an experiment's sweep."""
    composed = compose_files(overrides, config_dir)
    composed.pop(OWN_SWEEP, None)
    for override in parse_overrides(list(filter(sets_value, overrides))):
        try:
            OmegaConf.update(
                composed, override.key_or_group, override.value(), merge=True, force_add=True
            )
        except OmegaConfBaseException as error:
            word = format_override(override.input_line or override.key_or_group)
            problem = f"'{word}' is invalid: {first_error_line(error)}"
            raise UsageError(f"{problem} (see longsumbench run --help)") from error
    return composed


def compose_files(overrides: Sequence[str], config_dir: str | None) -> DictConfig:
    """Return what the files set that some overrides choose, without the settings among them."""
    choices = tuple(word for word in overrides if not sets_value(word))
    return copy.deepcopy(_compose_choices(choices, config_dir))


@lru_cache(maxsize=64)  # runs with the same choices share the files
def _compose_choices(choices: tuple[str, ...], config_dir: str | None) -> DictConfig:
    for name, path in dataset_files().items():
        if f"dataset={name}" in choices:
            read_dataset_file(path)  # its errors name the file
    try:
        composed: DictConfig = hydra.compose("run", [*choices, *search_path(config_dir)])
    except ValueError as error:  # from Hydra: the value of a group is not a name
        raise UsageError(f"{error} (see longsumbench run --help)") from error
    except YAMLError as error:
        raise UsageError(f"a file is not valid YAML: {' '.join(str(error).split())}") from error
    OmegaConf.set_struct(composed, False)
    # A scale's file may have this key; in another file it is an unknown setting.
    if composed.get(_MODELS) in scale_models(config_dir).values():
        del composed[_MODELS]
    return composed


def offer_plugins(config_dir: str | None) -> None:
    """Offer all systems and corpora to Hydra, including plug-ins and names without a YAML file.

    This also clears the cache of YAML files.
    """
    _compose_choices.cache_clear()
    files = [path for path in _config_files(config_dir, "*/*.yaml") if path.is_file()]
    names = (tuple(registry.systems.targets()), tuple(registry.corpora.targets()))
    _offer(config_dir, *names, tuple((path, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=1)
def _offer(
    config_dir: str | None,
    models: tuple[str, ...],
    datasets: tuple[str, ...],
    files: tuple[tuple[Path, int], ...],
) -> None:
    scale_models.cache_clear()
    nodes: dict[str, dict[str, Any]] = {
        "model": {name: {"model": {"name": name}} for name in models},
        "dataset": {name: {"dataset": {"name": name, "reader": name}} for name in datasets},
        "scale/model": _scale_options(config_dir),
    }
    for group in ("train", "decode", "score"):
        nodes[group] = {"default": {group: {}}}
    store = ConfigStore.instance()
    for group, group_nodes in nodes.items():
        store.repo.pop(group.partition("/")[0], None)  # names of an earlier folder
        for name, node in group_nodes.items():
            files_of_node = _config_files(config_dir, f"{group}/{glob.escape(name)}.yaml")
            if not any(path.is_file() for path in files_of_node):
                store.store(group=group, name=name, node=node, package="_global_")


def _scale_options(config_dir: str | None) -> dict[str, Any]:
    """Return "scale-system" → settings.

    A system of the suite gets the common settings (`all`) that it has. Other systems get only their own settings. Of
    these, `decode` has settings of the search, and `train` of the recipe.
    """
    options, shipped = {}, registry.systems.shipped()
    for scale, blocks in scale_models(config_dir).items():
        common = blocks.get(_ALL_SYSTEMS, {})
        for name in {*shipped, *blocks} - {_ALL_SYSTEMS}:
            settings = {}
            if name in shipped:
                with suppress(Exception):  # import errors appear when the system is chosen
                    names = {item.name for item in fields(registry.load_config_class(name))}
                    settings = {key: value for key, value in common.items() if key in names}
            settings |= blocks.get(name, {})
            sections = settings.keys() & {"train", "decode"}
            node = {section: settings.pop(section) for section in sections}
            options[f"{scale}-{name}"] = {"model": settings, **node}
    return options


@lru_cache(maxsize=1)
def scale_models(config_dir: str | None) -> dict[str, dict[str, dict[str, Any]]]:
    """Return scale → system → settings, from `models` in the files of the scales."""
    scales: dict[str, dict[str, dict[str, Any]]] = {}
    for path in _config_files(config_dir, "scale/*.yaml"):
        with suppress(YAMLError, OmegaConfBaseException, OSError, ValueError):  # Hydra reports it
            content: Any = OmegaConf.to_container(OmegaConf.load(path))
            blocks = content.get(_MODELS) if isinstance(content, dict) else None
            if isinstance(blocks, dict) and all(isinstance(item, dict) for item in blocks.values()):
                scales.setdefault(path.stem, blocks)
    return scales


def _config_files(config_dir: str | None, pattern: str) -> list[Path]:
    """Return the YAML files of a pattern ("scale/*.yaml"), those of the suite first."""
    files: list[Path] = []
    for folder in (CONF, *_added_folders(config_dir)):
        files += folder.glob(pattern)
    return files


def _added_folders(config_dir: str | None) -> list[Path]:
    """Return the folders of YAML files after the suite's: those of plug-ins, the user's folder, then `config_dir`."""
    user_folder = user_config_folder()
    folders = catalogue.suite_folders()[1:]
    folders += [user_folder] if user_folder.is_dir() else []
    return [*folders, Path(config_dir)] if config_dir else folders


def translate_hydra_error(error: Exception) -> SuiteError:
    """Turn an error of Hydra into an error of one line."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = str(error.missing_cfg_file).partition("/")
        inner, slash, choice = name.partition("/")
        if slash and (CONF / group / inner).is_dir():  # a nested group: hydra/launcher
            group, name = f"{group}/{inner}", choice
        return unknown_choice(group, name, error.options or [])
    if isinstance(error, OverrideParseException):
        word = format_override(error.override)
        return UsageError(
            f"cannot read '{word}': quote its value twice, \"{word.partition('=')[0]}='…'\""
        )
    first = first_error_line(error)
    if first.startswith("Error merging override") and error.__cause__ is not None:
        first += f": {first_error_line(error.__cause__)}"  # the reason
    return UsageError(f"{first} (see longsumbench run --help)")
