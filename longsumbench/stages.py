"""Finished pieces of work (a read corpus, a tokenizer, a checkpoint), found again by what decided them.

A stage lives in `<cache>/<name>/<key>`, the key being the hash of its inputs. It is built in `<key>.partial` and
renamed when done, so a folder without that suffix is always whole. A builder finds in the partial folder what a killed
one left there, and continues it or clears it. An operating-system lock, which dies with its holder, keeps builders
apart.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longsumbench.locks import held

CACHE_VARIABLE = "LONGSUMBENCH_CACHE"


def cache_folder() -> Path:
    """Return the user's cache folder for the suite; the environment variable LONGSUMBENCH_CACHE overrides it."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("longsumbench")


def digest(value: Any) -> str:
    """Hash a JSON value, whatever the order of its keys; 64 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class MissingStage(Exception):
    """A stage is not there, and was not to be built."""


@dataclass
class StageStore:
    """The stages under one folder.

    Attributes:
        root: where they live.
        rebuild: names of stages that are thrown away and built again, once each.
        finished_only: whether a stage that is not there is an error, instead of being built.
        used: stage name → folder, of those this run asked for; the run links to them.
        say: told when another process holds a stage that this one waits for.
    """

    root: Path
    rebuild: frozenset[str] = frozenset()
    used: dict[str, Path] = field(default_factory=dict)
    say: Callable[[str], None] = print
    finished_only: bool = False

    def get(self, name: str, inputs: Mapping[str, Any], build: Callable[[Path], None]) -> Path:
        """Return the finished stage's folder, building it first where there is none.

        Args:
            name: what it is ("corpus", "tokenizer", "checkpoint"), in letters that a folder's name can have.
            inputs: everything that decides the outcome, JSON values; put a version number of the building code in.
            build: fills a folder, which may hold what a killed build left.

        Raises:
            MissingStage: it is not there, and nothing is to be built.
        """
        key = digest({"stage": name, **inputs})[:24]
        folder = self.root / name / key
        afresh = name in self.rebuild and folder not in self.used.values()
        if self.finished_only and not folder.is_dir():
            raise MissingStage(name)
        if afresh or not folder.is_dir():
            self._build(folder, inputs, build, afresh)
        self.used[name if name not in self.used or self.used[name] == folder else f"{name}-{key[:8]}"] = folder
        return folder

    def _build(self, folder: Path, inputs: Mapping[str, Any], build: Callable[[Path], None], afresh: bool) -> None:
        partial, name = folder.with_name(folder.name + ".partial"), folder.parent.name
        partial.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(folder.name + ".lock"), name, self.say):
            if afresh:
                discard(folder)
                discard(partial)
            elif folder.is_dir():  # the process waited for has finished it
                return
            partial.mkdir(exist_ok=True)
            build(partial)
            (partial / "inputs.json").write_text(json.dumps(dict(inputs), indent=1, sort_keys=True), encoding="utf-8")
            partial.rename(folder)


@contextmanager
def locked(path: Path, what: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock, saying for whom this process waits, and whose work it takes over.

    Args:
        path: the lock's file.
        what: is done under it, for people.
        say: shows a line.
    """
    with held(
        path,
        lambda other: say(f"waiting for another process: {what} ({other})"),
        lambda killed: say(f"taking over from {killed.name}, which ended before it was done: {what}"),
    ):
        yield


def discard(folder: Path) -> None:
    """Delete a folder; others see it whole or not at all."""
    if folder.is_dir():
        folder.rename(old := folder.with_name(f"{folder.name}.old-{os.getpid()}"))
        shutil.rmtree(old)


def clear(folder: Path) -> None:
    """Empty a partial folder whose builder cannot continue what is there."""
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink()
