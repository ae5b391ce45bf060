"""What can be named on the command line, with a line about each."""

import inspect
from dataclasses import fields
from pathlib import Path

from tabulate import tabulate

from longsumbench import registry
from longsumbench.configuration import SECTIONS, RunConfig

CONF = Path(__file__).parent / "conf"
TABLES = {
    "models": (registry.systems, "model"),
    "datasets": (registry.corpora, "dataset"),
    "metrics": (registry.metrics, None),
    "rankers": (registry.rankers, None),
}


def names(what: str) -> str:
    """Return a table of the registered names of a kind, with the first comment of their YAML file."""
    table, group = TABLES[what]
    rows = []
    for name, target in sorted(table.targets().items()):
        about = first_comment(CONF / group / f"{name}.yaml") if group else ""
        rows.append([name, about or target])
    return tabulate(rows, tablefmt="plain")


def first_comment(path: Path) -> str:
    """Return a YAML file's first comment that is no Hydra directive; empty when there is none."""
    if not path.is_file():
        return ""
    comments = (line[1:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@package")), "")


def settings(model: str | None) -> str:
    """Return all settings with their defaults and what they mean, those of a model first when one is named."""
    schemas = {**SECTIONS, "": RunConfig}
    if model:
        schemas = {"model": registry.systems.load(model).Config, **schemas}
    rows = []
    for prefix, schema in schemas.items():
        about = comments(schema)
        for item in fields(schema):
            if item.name not in (*SECTIONS, "model") or prefix:
                key = f"{prefix}.{item.name}" if prefix else item.name
                rows.append([key, "" if item.default is None else item.default, about.get(item.name, "")])
    return tabulate(rows, headers=["setting", "default", "meaning"], tablefmt="plain", disable_numparse=True)


def comments(schema: type) -> dict[str, str]:
    """Return field → the comment behind its line in the source."""
    found = {}
    for line in inspect.getsource(schema).splitlines():
        name, colon, rest = line.strip().partition(":")
        if colon and "  # " in rest:
            found[name] = rest.partition("  # ")[2].strip()
    return found
