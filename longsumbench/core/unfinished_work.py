"""What is finished of a batch of texts, in a file of the run: a killed run does not do it again."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

from longsumbench.errors import naming_path
from longsumbench.files import BadFile, parse_json


class _Line(TypedDict):
    """A line of the file."""

    key: str
    value: Any
    seconds: float


class UnfinishedWork:
    """JSON values by the hash of what decides them, kept until the batch is finished.

    Attributes:
        seconds: what the values that were reused had taken.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.seconds = path, 0.0
        self._kept: dict[str, _Line] = {}
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        for row in text.splitlines():
            with suppress(BadFile):  # an incomplete line
                line = parse_json(row, _Line)
                self._kept[line["key"]] = line

    def reuse(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value of a key; it is made and kept if an earlier process has not."""
        if key in self._kept:
            self.seconds += self._kept[key]["seconds"]
            return self._kept[key]["value"]
        started = time.monotonic()
        value = make()
        line = _Line(key=key, value=value, seconds=time.monotonic() - started)
        with naming_path(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return value

    def clear(self) -> None:
        """Forget all: the batch is finished."""
        self.path.unlink(missing_ok=True)
