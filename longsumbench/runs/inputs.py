"""Inputs on disk: the texts of the first examples as the system read them (`decode.keep_inputs`).

`inputs.jsonl` has a line for each example: {"id", "input"}. The input is null if the system does not tell what it read.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

from longsumbench.api import Summary
from longsumbench.errors import naming_path
from longsumbench.files import BadFile, parse_json, write_atomically


class _InputLine(TypedDict):
    """A line of inputs.jsonl."""

    id: str
    input: str | None


def append_inputs(path: Path, summaries: Iterable[Summary]) -> None:
    """Append the texts that were read for some summaries."""
    with naming_path(path), path.open("a", encoding="utf-8") as file:
        file.write("".join(_line(summary.id, summary.read) for summary in summaries))


def read_kept_inputs(path: Path) -> dict[str, str | None]:
    """Return id → the text as the system read it; incomplete lines are skipped."""
    kept = {}
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else ():
        try:
            found = parse_json(line, _InputLine)
        except BadFile:
            continue
        kept[found["id"]] = found["input"]
    return kept


def merge_kept_inputs(path: Path, ids: Sequence[str]) -> None:
    """Merge the files of all processes and sort them by `ids`, each id once; do nothing if there are none."""
    parts = [*path.parent.glob(f"{path.stem}.part*{path.suffix}")]
    if path.is_file() or parts:
        kept = {name: text for file in (path, *parts) for name, text in read_kept_inputs(file).items()}
        write_atomically(path, "".join(_line(name, kept[name]) for name in ids if name in kept))
    for file in parts:
        file.unlink()


def _line(name: str, text: str | None) -> str:
    return json.dumps({"id": name, "input": text}, ensure_ascii=False) + "\n"
