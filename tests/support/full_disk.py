"""A disk that fills up: writes below some folders fail as they do when there is no space left."""

import builtins
import errno
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


class Patches(Protocol):
    """What puts something in the place of a function: pytest's monkeypatch, or Python's own `setattr`."""

    def setattr(self, target: object, name: str, value: object) -> None:
        """Do so."""


@dataclass
class Disk:
    """Counts what is begun to be written below some folders, and has no space for some of it.

    New folders, new names and low-level files fail at once; what Python opens for writing fails when it is written, as
    it does on a disk: it goes to `/dev/full`. What libraries write from outside Python is not seen.

    Attributes:
        folders: below which it is full.
        first: the number of the write that is the first to fail, from 1.
        last: that of the last one; None: it stays full.
        writes: how many there were.
        failed: the paths of those that failed.
    """

    folders: Sequence[Path]
    first: int
    last: int | None = None
    writes: int = 0
    failed: list[str] = field(default_factory=list)
    _cut_off: set[int] = field(default_factory=set)  # descriptors

    def fill(self, patches: Patches) -> None:
        """Let it be full from now on, in this process."""
        for name in ("mkdir", "replace", "rename", "symlink"):
            patches.setattr(os, name, self._at_once(getattr(os, name)))
        patches.setattr(os, "open", self._low_level(os.open))
        patches.setattr(os, "fsync", self._flushed(os.fsync))
        patches.setattr(io, "open", self._written(io.open))
        patches.setattr(builtins, "open", io.open)

    def _has_space(self, path: str | bytes | int | Path) -> bool:
        name = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fsdecode(path)
        if not any(name.startswith(str(folder)) for folder in self.folders):
            return True
        self.writes += 1
        if self.writes < self.first or (self.last is not None and self.writes > self.last):
            return True
        self.failed.append(name)
        return False

    def _at_once(self, call: Callable[..., None]) -> Callable[..., None]:
        def act(path: Any, *others: Any, **named: Any) -> None:
            target = others[0] if others and isinstance(others[0], str | Path) else path
            if not self._has_space(target):
                raise no_space(target)
            call(path, *others, **named)

        return act

    def _low_level(self, call: Callable[..., int]) -> Callable[..., int]:
        def act(path: Any, flags: int, *others: Any, **named: Any) -> int:
            if flags & os.O_CREAT and not os.path.exists(path) and not self._has_space(path):
                raise no_space(path)
            return call(path, flags, *others, **named)

        return act

    def _written(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def act(path: Any, mode: str = "r", *others: Any, **named: Any) -> Any:
            file = call(path, mode, *others, **named)
            self._cut_off.discard(file.fileno())
            if set(mode) & set("wax+") and not self._has_space(path):
                device = os.open("/dev/full", os.O_WRONLY)
                os.dup2(device, file.fileno())
                os.close(device)
                self._cut_off.add(file.fileno())
            return file

        return act

    def _flushed(self, call: Callable[[int], None]) -> Callable[[int], None]:
        def act(descriptor: int) -> None:
            if descriptor in self._cut_off:  # nothing was written to it so far
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            call(descriptor)

        return act


def no_space(path: str | Path) -> OSError:
    """Return what the system says of a path."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
