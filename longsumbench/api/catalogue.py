"""What can be named on the command line, with a line about each."""

import inspect
from dataclasses import MISSING, fields
from pathlib import Path

from tabulate import tabulate

from longsumbench.api import registry
from longsumbench.api.config import SECTIONS, RunConfig
from longsumbench.conf import CONF
from longsumbench.errors import UsageError

_TABLES = {
    "models": registry.systems,
    "datasets": registry.corpora,
    "metrics": registry.metrics,
    "rankers": registry.rankers,
}


_FILES = {"scales": "scale", "experiments": "experiment"}  # kinds that are YAML files and nothing else


def list_names(what: str) -> str:
    """Return a table of the names of a kind, with a line about each."""
    if what in _FILES:
        files = sorted((CONF / _FILES[what]).glob("*.yaml"))
        return tabulate([[path.stem, first_comment(path)] for path in files], tablefmt="plain")
    table = _TABLES[what]
    return tabulate([[name, about(table, name)] for name in sorted(table.targets())], tablefmt="plain")


def about(table: registry.Registry, name: str) -> str:
    """Return what a thing says of itself: a corpus's title, or the first line of a docstring; else where it is defined.

    A built-in system's settings speak for it, so that no network is imported. A plug-in that cannot be imported is
    listed with the reason.
    """
    try:
        found = registry.config_of(name) if table is registry.systems and name in table.built_in else table.load(name)
    except UsageError as problem:
        return str(problem)
    written = getattr(found, "title", None) or (inspect.getdoc(found) or "").partition("\n")[0]
    return written or table.targets()[name]


def first_comment(path: Path) -> str:
    """Return a YAML file's first comment that is no Hydra directive; empty when there is none."""
    comments = (line[1:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@package")), "")


def list_settings(model: str | None) -> str:
    """Return all settings with their defaults and what they mean, those of a model first when one is named."""
    schemas = {**SECTIONS, "": RunConfig}
    if model:
        schemas = {"model": registry.config_of(model), **schemas}
    rows = []
    for prefix, schema in schemas.items():
        meanings = comments(schema)
        for item in fields(schema):
            if item.name not in (*SECTIONS, "model") or prefix:
                key = f"{prefix}.{item.name}" if prefix else item.name
                default = item.default if item.default_factory is MISSING else item.default_factory()
                rows.append([key, "" if default is None else default, meanings.get(item.name, "")])
    return tabulate(rows, headers=["setting", "default", "meaning"], tablefmt="plain", disable_numparse=True)


def comments(schema: type) -> dict[str, str]:
    """Return field → the comment behind its line in the source, those that a dataclass inherits included."""
    found = {}
    for owner in reversed(schema.__mro__[:-1]):
        for line in inspect.getsource(owner).splitlines():
            name, colon, rest = line.strip().partition(":")
            if colon and "  # " in rest:
                found[name] = rest.partition("  # ")[2].strip()
    return found
