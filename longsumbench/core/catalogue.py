"""Tables of the registered names and of all settings, for `longsumbench list`; the user's own datasets.

An own dataset is a YAML file in `dataset/` of the user's configuration folder:

    # Articles of the SciSumm workshop
    name: scisumm
    reader: jsonl
    path: /data/scisumm

`dataset=scisumm` chooses the file `scisumm.yaml`, whose `name` is the same. It holds settings of `DatasetSettings`;
with the line `# @package _global_`, they are under `dataset`, and the file may also set others, as the suite's do.
"""

import inspect
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.conf import CONF, user_config_folder
from longsumbench.core import registry
from longsumbench.core.config import SECTIONS, RunConfig, build_settings
from longsumbench.core.corpus import Corpus
from longsumbench.core.run_settings import DatasetSettings
from longsumbench.errors import UsageError
from longsumbench.files import read_text

_TABLES = {
    "models": registry.systems,
    "datasets": registry.corpora,
    "metrics": registry.metrics,
    "rankers": registry.rankers,
}


# Kinds that exist as YAML files only
_FOLDERS = {"scales": "scale", "experiments": "experiment", "recipes": "model/recipe"}


def name_rows(kind: str) -> list[list[str]]:
    """Return a row for each name of a kind: the name, and a line about it."""
    if kind in _FOLDERS:
        rows = []
        for folder in suite_folders():
            for path in (folder / _FOLDERS[kind]).glob("*.yaml"):
                rows.append([path.stem, first_comment(path)])
        return sorted(rows)
    return [[name, about(_TABLES[kind], name)] for name in sorted(_TABLES[kind].targets())]


def suite_folders() -> list[Path]:
    """Return the folders of YAML files of the suite and of plug-ins."""
    names = registry.config_folders.targets()
    return [CONF, *map(registry.config_folders.load, names)]


def own_dataset_rows() -> list[list[str]]:
    """Return a row for each of the user's own datasets: its name; its first comment and path, or why it is invalid."""
    rows = []
    for name, path in dataset_files().items():
        try:
            texts = read_dataset_file(path).path
            rows.append(
                [name, ": ".join(filter(None, [first_comment(path) or "own texts", texts]))]
            )
        except UsageError as problem:
            rows.append([name, str(problem)])
    return rows


def about(table: registry.Registry, name: str) -> str:
    """Return a one-line description: a corpus's title or a docstring's first line, else where it is defined.

    For a system of the suite it is the docstring of its `Config`, so that no network is imported. For a plug-in that
    cannot be imported, it is the reason.
    """
    try:
        target = (
            registry.load_config_class(name)
            if table is registry.systems and name in table.shipped()
            else table.load(name)
        )
    except UsageError as problem:
        return str(problem)
    if isinstance(target, Corpus):
        return target.title
    return (inspect.getdoc(target) or "").partition("\n")[0] or table.targets()[name]


def first_comment(path: Path) -> str:
    """Return a YAML file's first comment that is not a Hydra directive; empty if there is none."""
    comments = (
        line[1:].strip()
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    )
    return next((comment for comment in comments if not comment.startswith("@package")), "")


def setting_rows(schema: type, prefix: str) -> list[list[str]]:
    """Return a row for each setting of a dataclass: its full key, default and meaning.

    The meaning is its unit, its help and the source of its default, as far as the field has them.
    """
    rows = []
    for item in fields(schema):
        if item.name in (*SECTIONS, "model") and schema is RunConfig:
            continue
        default = item.default if item.default_factory is MISSING else item.default_factory()
        unit, about_it, source = (item.metadata.get(key, "") for key in ("unit", "help", "source"))
        meaning = ": ".join(filter(None, [unit, about_it])) + (f" ({source})" if source else "")
        rows.append([f"{prefix}{item.name}", "" if default is None else str(default), meaning])
    return rows


def all_setting_rows() -> list[list[str]]:
    """Return the rows of the settings that all systems share."""
    rows = []
    for name, schema in SECTIONS.items():
        rows += setting_rows(schema, f"{name}.")
    return rows + setting_rows(RunConfig, "")


def dataset_files() -> dict[str, Path]:
    """Return the names and files of the user's own datasets."""
    return {
        path.stem: path
        for path in sorted((user_config_folder() / "dataset").glob("*.yaml"))
        if path.is_file()
    }


def read_dataset_file(path: Path) -> DatasetSettings:
    """Read and check the settings in a file.

    Raises:
        UsageError: the file cannot be read, or a setting is invalid; the message names the file.
    """
    try:
        text = read_text(path)
        content: Any = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
        if "@package _global_" in text and isinstance(content, dict):
            content = content.get("dataset")
        if not isinstance(content, dict) or "name" not in content:
            raise UsageError(
                "a dataset needs a name and mostly a path, as in 'name: mine' and 'path: /data/mine'"
            )
        settings = {str(key): value for key, value in content.items() if key != "defaults"}
        dataset: DatasetSettings = build_settings(DatasetSettings, settings, "dataset.")
        if dataset.name != path.stem:
            raise UsageError(
                f"'name: {dataset.name}' is not the name of the file, '{path.stem}': make them equal"
            )
    except (ValueError, YAMLError, OmegaConfBaseException, UsageError) as error:
        problem = " ".join(str(error).split())
        raise UsageError(f"{path}: {problem}; correct the file or remove it") from error
    return dataset
