"""Texts and records for use in Python, and the user's own datasets: added under a name, and removed again."""

import os
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench.arguments import public_function
from longsumbench.cache.artifacts import user_cache
from longsumbench.conf import CONFIG_VARIABLE, user_config_folder
from longsumbench.core import dataset_files, registry
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import UnknownName, UsageError
from longsumbench.files import writable_folder, write_atomically
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.plan import plan_dataset
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results


def add_dataset(name: str, path: str, words: Sequence[str] = ()) -> tuple[Texts, Path]:
    """Read texts, and write a YAML file with their settings, so that `dataset=NAME` chooses them.

    Args:
        name: the name in records, tables and folders.
        path: a file or folder, whose absolute path the YAML file has; of `dataset=hub` a name there.
        words: overrides: `dataset=FORMAT` (default: jsonl) and `dataset.*`.

    Returns:
        The texts, and the file.

    Raises:
        UsageError: the name is taken or cannot be used, or an override is invalid.
        DataError: a file or a row cannot be used.
        EnvironmentProblem: the file cannot be written.
    """
    for word in words:
        if not word.startswith(("dataset=", "dataset.")):
            raise UsageError(
                f"'{word}' is not a setting of a dataset: write dataset.<setting>=<value>"
            )
    if name in registry.corpora.targets():
        raise UsageError(f"'{name}' is a dataset of the suite or of a plug-in: choose another name")
    if name in dataset_files():
        existing_file = dataset_files()[name]
        raise UsageError(
            f"dataset '{name}' exists ({existing_file}): choose another name, or remove it"
        )
    if not any(word.startswith("dataset=") for word in words):
        words = ["dataset=jsonl", *words]
    place = path if "dataset=hub" in words else os.path.abspath(Path(path).expanduser())
    overrides = format_overrides({"dataset.name": name, "dataset.path": place})
    settings = plan_dataset([*words, *overrides])
    if settings.tokenizer is not None:
        tokenizer = os.path.abspath(Path(settings.tokenizer).expanduser())
        settings = replace(settings, tokenizer=tokenizer)
    # Checked before the texts are read, which may take minutes
    folder = writable_folder(
        user_config_folder() / "dataset", f"the environment variable {CONFIG_VARIABLE}"
    )
    texts = load_texts(settings, user_cache())
    changed = {}
    for item in fields(settings):
        value = vars(settings)[item.name]
        if value != item.default:
            # OmegaConf would look up what "${" names.
            is_text = isinstance(value, str)
            changed[item.name] = value.replace("${", r"\${") if is_text else value
    file = folder / f"{name}.yaml"
    comment = f"# own texts, {describe_sizes(texts)}\n"
    write_atomically(file, comment + OmegaConf.to_yaml(OmegaConf.create(changed)))
    return texts, file


def remove_dataset(name: str) -> Path:
    """Delete the YAML file of the user's dataset, and return its path. Texts, cache and runs stay.

    Raises:
        UnknownName: the user has no such dataset.
    """
    files = dataset_files()
    if name not in files:
        raise UnknownName("dataset of your own", name, files)
    files[name].unlink()
    return files[name]


def describe_sizes(texts: Texts) -> str:
    """Return the number of examples of each split: "800 train, 100 test examples"."""
    return ", ".join(f"{len(split):,} {name}" for name, split in texts.splits.items()) + " examples"


@public_function
def load_dataset(name: str, **settings: Any) -> Texts:
    """Read a dataset, or find it in the cache.

        texts = load_dataset("mine", reader="jsonl", path="my_texts", limit=100)
        example = texts.splits["test"][0]

    Args:
        name: a dataset of `longsumbench list datasets`; with `reader`, any name.
        settings: settings of the dataset, without `dataset.` before them.

    Returns:
        The texts. `splits` has a sequence of `Example`s for each split.

    Raises:
        UsageError: the name or a setting is unknown or invalid.
        DataError: a file or a row cannot be used.
        EnvironmentProblem: the dataset is on the hub, which cannot be reached.
    """
    overrides = format_overrides({"dataset": {"name": name, **settings}})
    return load_texts(plan_dataset(overrides), user_cache())


@public_function
def load_run(run: str | Path | RunRecord, results_dir: str | Path = "results") -> RunRecord:
    """Read the record of a finished run.

    Args:
        run: the run's folder, its id, the beginning of its id, or its record.
        results_dir: where ids are looked for.

    Raises:
        UsageError: no run, or several, match.
        DataError: the record is damaged.
    """
    return RunRecord.read(Results.at(results_dir).find(run))
