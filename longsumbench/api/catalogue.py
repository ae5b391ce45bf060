"""Tables of the registered names and of all settings, for `longsumbench list`."""

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


_FILES = {"scales": "scale", "experiments": "experiment"}  # kinds that exist as YAML files only


def list_names(what: str) -> str:
    """Return a table of the names of a kind, each with a one-line description."""
    if what in _FILES:
        files = sorted((CONF / _FILES[what]).glob("*.yaml"))
        return tabulate([[path.stem, first_comment(path)] for path in files], tablefmt="plain")
    table = _TABLES[what]
    return tabulate([[name, about(table, name)] for name in sorted(table.targets())], tablefmt="plain")


def about(table: registry.Registry, name: str) -> str:
    """Return a one-line description: a corpus's title or a docstring's first line, else where it is defined.

    For a built-in system it is the docstring of its `Config`, so that no network is imported. For a plug-in that
    cannot be imported, it is the reason.
    """
    try:
        found = registry.config_of(name) if table is registry.systems and name in table.built_in else table.load(name)
    except UsageError as problem:
        return str(problem)
    written = getattr(found, "title", None) or (inspect.getdoc(found) or "").partition("\n")[0]
    return written or table.targets()[name]


def first_comment(path: Path) -> str:
    """Return a YAML file's first comment that is not a Hydra directive; empty if there is none."""
    comments = (line[1:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@package")), "")


def list_settings(model: str | None) -> str:
    """Return a table of all settings with defaults and meanings; those of `model`, if given, come first."""
    schemas = {**SECTIONS, "": RunConfig}
    if model:
        schemas = {"model": registry.config_of(model), **schemas}
    rows = []
    for prefix, schema in schemas.items():
        meanings = field_comments(schema)
        for item in fields(schema):
            if item.name not in (*SECTIONS, "model") or prefix:
                key = f"{prefix}.{item.name}" if prefix else item.name
                default = item.default if item.default_factory is MISSING else item.default_factory()
                rows.append([key, "" if default is None else default, meanings.get(item.name, "")])
    return tabulate(rows, headers=["setting", "default", "meaning"], tablefmt="plain", disable_numparse=True)


def field_comments(schema: type) -> dict[str, str]:
    """Return field → the comment on its source line, inherited fields included."""
    found = {}
    for owner in reversed(schema.__mro__[:-1]):
        for line in inspect.getsource(owner).splitlines():
            name, colon, rest = line.strip().partition(":")
            if colon and "  # " in rest:
                found[name] = rest.partition("  # ")[2].strip()
    return found
