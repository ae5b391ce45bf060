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
from typing import Any

import argcomplete
from argcomplete.completers import FilesCompleter

from longsumbench.cli.parser import Parser
from longsumbench.conf import CONF, user_config_folder
from longsumbench.core import SECTIONS, RunConfig, dataset_files, registry

_Found = Iterable[str]


def complete_line(top: Parser) -> None:
    """Print what can follow the line that the shell has in COMP_LINE, and end the process."""
    for commands in (
        action for action in top._actions if isinstance(action, argparse._SubParsersAction)
    ):
        for argument in (
            argument for command in commands.choices.values() for argument in command._actions
        ):
            if argument.dest in _COMPLETERS:  # other arguments offer files, or their choices
                argument.completer = _COMPLETERS[argument.dest]  # where argcomplete looks for it
    argcomplete.autocomplete(top, always_complete_options=False)


def complete_override(prefix: str, **context: Any) -> _Found:
    """Return groups and settings ("model=", "train.max_steps="), or the names of a group after its "="."""
    key, sign, value = prefix.partition("=")
    if sign:
        start, comma, _ = value.rpartition(",")  # names to sweep over
        return [
            f"{key}={start}{comma}{name}" for name in (_GROUPS[key]() if key in _GROUPS else ())
        ]
    names = [f"{name}=" for name in _GROUPS]
    names += [
        f"{item.name}=" for item in fields(RunConfig) if item.name not in (*_GROUPS, *SECTIONS)
    ]
    if prefix:  # without a beginning there are too many
        names += [
            f"{section}.{item.name}=" for section, schema in _schemas() for item in fields(schema)
        ]
    return names


def _schemas() -> Iterator[tuple[str, type]]:
    """Yield section → settings, for all systems and for those that the line names."""
    yield from SECTIONS.items()
    for names in re.findall(r"\smodel=([\w,]+)", os.environ.get("COMP_LINE", "")):
        for name in names.split(","):
            if name in registry.systems.built_in:  # a plug-in may import anything
                yield "model", registry.config_of(name)


def _config_names(group: str) -> _Found:
    return [
        path.stem
        for folder in (CONF, user_config_folder())
        for path in (folder / group).glob("*.yaml")
    ]


_GROUPS: dict[str, Callable[[], _Found]] = {
    "model": lambda: registry.systems.targets(),
    "model/recipe": lambda: _config_names("model/recipe"),
    "dataset": lambda: [*registry.corpora.targets(), *dataset_files()],
    "scale": lambda: _config_names("scale"),
    "experiment": lambda: _config_names("experiment"),
}


def complete_run(prefix: str, parsed_args: argparse.Namespace, **context: Any) -> dict[str, str]:
    """Return the ids of finished runs with their model and dataset, and files and folders."""
    labels = {
        run_id: f"{model} on {dataset}"
        for dataset, model, run_id in _runs(parsed_args, "/record.json")
    }
    return labels | dict.fromkeys(FilesCompleter()(prefix), "")


def _runs(parsed_args: argparse.Namespace, file: str = "") -> set[tuple[str, str, str]]:
    """Return dataset, model and id of all runs, or of those with a file; of packed runs, from the indices."""
    folders = {
        path: path.parent if file else path
        for path in _results(parsed_args).glob(f"runs/*/*/*{file}")
    }
    runs = {
        (folder.parents[1].name, folder.parent.name, folder.name) for folder in folders.values()
    }
    for index in _results(parsed_args).glob("bundles/*.csv"):
        with index.open(encoding="utf-8", newline="") as lines:
            runs |= {(index.stem, row["model"], row["run_id"]) for row in csv.DictReader(lines)}
    return runs


def _results(parsed_args: argparse.Namespace) -> Path:
    return Path(parsed_args.results_dir).expanduser()


_COMPLETERS: dict[str, Callable[..., Any]] = {
    "overrides": complete_override,
    **dict.fromkeys(("run", "runs", "system", "texts"), complete_run),
}
