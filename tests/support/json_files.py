"""JSON files and files of JSON lines."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """Return the value of a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, value: object) -> None:
    """Write a value into a file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def change_json(path: Path, **entries: object) -> None:
    """Change or add entries of an object in a file, which may not be there yet."""
    write_json(path, (read_json(path) if path.exists() else {}) | entries)


def read_rows(path: Path) -> list[Any]:
    """Return the values of a file with one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_rows(path: Path, rows: Iterable[object]) -> Path:
    """Write values into a file, one a line; return the file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
