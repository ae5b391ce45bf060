"""What a shell offers for an unfinished command line, by the library argcomplete.

The shell starts the command with `_ARGCOMPLETE` in its environment. The answer needs neither Hydra nor torch.
"""

import argparse
import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import argcomplete
from argcomplete.completers import FilesCompleter

from longsumbench.cli.lists import FILTERS, STATES
from longsumbench.cli.parser import Parser
from longsumbench.conf import CONF, user_config_folder
from longsumbench.core import SECTIONS, OneOf, RunConfig, bounds_of, dataset_files, registry

_Found = Iterable[str]


def complete_line(top: Parser) -> None:
    """Print what can follow the line that the shell has in COMP_LINE, and end the process."""
    for commands in (action for action in top._actions if isinstance(action, argparse._SubParsersAction)):
        for argument in (argument for command in commands.choices.values() for argument in command._actions):
            if argument.dest in _COMPLETERS:  # other arguments offer files, or their choices
                argument.completer = _COMPLETERS[argument.dest]  # where argcomplete looks for it
    argcomplete.autocomplete(top, always_complete_options=False)


def complete_override(prefix: str, **context: Any) -> _Found:
    """Return groups and settings ("model=", "train.max_steps="), or the values of one after its "="."""
    key, sign, value = prefix.partition("=")
    if sign:
        start, comma, _ = value.rpartition(",")  # values to sweep over
        return [f"{key}={start}{comma}{name}" for name in _setting_values(key)]
    names = [f"{name}=" for name in _GROUPS]
    names += [f"{item.name}=" for item in fields(RunConfig) if item.name not in (*_GROUPS, *SECTIONS)]
    if prefix:  # without a beginning there are too many
        names += [f"{section}.{item.name}=" for section, schema in _schemas() for item in fields(schema)]
    return names


def _setting_values(key: str) -> _Found:
    """Return the names that a group or a setting can have; empty if any value is possible."""
    if key in _GROUPS:
        return _GROUPS[key]()
    section, _, name = key.rpartition(".")
    schemas = [schema for head, schema in (*_schemas(), ("", RunConfig)) if head == section]
    for schema in schemas:
        bound = bounds_of(schema).get(name)
        if isinstance(bound, OneOf):
            return [*bound.names, *(bound.more() if bound.more else ())]
        if get_type_hints(schema).get(name) is bool:
            return ["true", "false"]
    return []


def _schemas() -> Iterator[tuple[str, type]]:
    """Yield section → settings, for all systems and for those that the line names."""
    yield from SECTIONS.items()
    for names in re.findall(r"\smodel=([\w,]+)", os.environ.get("COMP_LINE", "")):
        for name in names.split(","):
            if name in registry.systems.built_in:  # a plug-in may import anything
                yield "model", registry.config_of(name)


def _config_names(group: str) -> _Found:
    return [path.stem for folder in (CONF, user_config_folder()) for path in (folder / group).glob("*.yaml")]


_GROUPS: dict[str, Callable[[], _Found]] = {
    "model": lambda: registry.systems.targets(),
    "model/recipe": lambda: _config_names("model/recipe"),
    "dataset": lambda: [*registry.corpora.targets(), *dataset_files()],
    "scale": lambda: _config_names("scale"),
    "experiment": lambda: _config_names("experiment"),
}


def complete_run(prefix: str, parsed_args: argparse.Namespace, **context: Any) -> dict[str, str]:
    """Return the ids of finished runs with their model and dataset, and files and folders."""
    labels = {run_id: f"{model} on {dataset}" for dataset, model, run_id in _runs(parsed_args, "/record.json")}
    return labels | dict.fromkeys(FilesCompleter()(prefix), "")


def complete_filter(prefix: str, parsed_args: argparse.Namespace, **context: Any) -> _Found:
    """Return models for `list settings`, and filters for `list runs`."""
    if parsed_args.what == "settings":
        return registry.systems.targets()
    key, sign, _ = prefix.partition("=")
    if parsed_args.what != "runs" or not sign:
        return [f"{name}=" for name in FILTERS if parsed_args.what == "runs"]
    runs = _runs(parsed_args)
    names = {
        "dataset": {dataset for dataset, _, _ in runs},
        "model": {model for _, model, _ in runs},
        "state": set(STATES),
    }
    return sorted(f"{key}={name}" for name in names.get(key, ()))


def complete_listed_dataset(parsed_args: argparse.Namespace, **context: Any) -> _Found:
    """Return the datasets with runs."""
    return {dataset for dataset, _, _ in _runs(parsed_args)}


def complete_sweep(parsed_args: argparse.Namespace, **context: Any) -> _Found:
    """Return the ids of sweeps."""
    return [path.name for path in _results(parsed_args).glob("sweeps/*")]


def complete_paper_table(**context: Any) -> _Found:
    """Return the names of the papers' tables and figures, and `list`."""
    from longsumbench.papers.paper_tables import read_paper_tables

    return ["list", *read_paper_tables()]


def complete_own_dataset(parsed_args: argparse.Namespace, **context: Any) -> _Found:
    """Return the user's datasets for `dataset remove`."""
    return dataset_files() if parsed_args.action == "remove" else ()


def _runs(parsed_args: argparse.Namespace, file: str = "") -> set[tuple[str, str, str]]:
    """Return dataset, model and id of all runs, or of those with a file; of packed runs, from the indices."""
    folders = {path: path.parent if file else path for path in _results(parsed_args).glob(f"runs/*/*/*{file}")}
    runs = {(folder.parents[1].name, folder.parent.name, folder.name) for folder in folders.values()}
    for index in _results(parsed_args).glob("bundles/*.csv"):
        with index.open(encoding="utf-8", newline="") as lines:
            runs |= {(index.stem, row["model"], row["run_id"]) for row in csv.DictReader(lines)}
    return runs


def _results(parsed_args: argparse.Namespace) -> Path:
    return Path(parsed_args.results_dir).expanduser()


_COMPLETERS: dict[str, Callable[..., Any]] = {
    "overrides": complete_override,
    **dict.fromkeys(("run", "runs", "system", "texts"), complete_run),
    "filters": complete_filter,
    "dataset": complete_listed_dataset,
    "sweep": complete_sweep,
    "paper_table": complete_paper_table,
    "name": complete_own_dataset,
}
