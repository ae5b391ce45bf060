"""Checksums of a finished stage: a file in its folder lists the other files with size, time and SHA-256.

Sizes and times are compared whenever the stage is used. A file is read only if its time differs, or on request.
"""

import errno
import hashlib
import json
import os
import stat
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

CHECKSUMS = "checksums"  # the file's name
_DAMAGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # what the system says of a file that is gone or replaced
_UNKNOWN_TIME = -1  # no file has it, so the next check reads the file


class _Entry(NamedTuple):
    """What is known of one file: bytes, time of the last change in nanoseconds, SHA-256 in hexadecimal."""

    size: int
    time: int
    sha256: str


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in a folder, however deep."""
    own = (CHECKSUMS, f".{CHECKSUMS}-*")  # also those that another process is writing
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not any(map(path.match, own))]
    _write(folder, {path.relative_to(folder).as_posix(): _entry(path) for path in files})


def find_damage(folder: Path, in_full: bool = False) -> list[str]:
    """Return a line for each damaged file of a finished stage; none if the stage is whole.

    A folder without readable checksums is taken as it is, and gets them. New times are stored; a damaged file is marked
    to be read again.

    Args:
        folder: of the stage.
        in_full: read every file, also those whose size and time are as they were.

    Raises:
        OSError: a file cannot be read, but it may be whole (no permission).
    """
    if not folder.is_dir():
        return [f"{folder.name} is no folder"] if os.path.lexists(folder) else []
    if not any(folder.iterdir()):
        return [f"{folder.name} is empty"]
    if (listed := _read(folder)) is None:
        if os.access(folder, os.W_OK):
            with suppress(OSError):
                write_checksums(folder)
        return []
    problems, found = [], {}
    for name, entry in listed.items():
        problem, found[name] = _compare(folder / name, entry, in_full)
        problems += [f"{name} {problem}"] if problem else []
    if found != listed:
        with suppress(OSError):  # a folder that this process may only read
            _write(folder, found)
    return problems


def _compare(path: Path, entry: _Entry, in_full: bool) -> tuple[str, _Entry]:
    """Return what is wrong with a file, if anything, and what the next check shall compare it with."""
    again = entry._replace(time=_UNKNOWN_TIME)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "is no file", again
        if status.st_size != entry.size:
            return f"has {status.st_size} bytes instead of {entry.size}", again
        if in_full or status.st_mtime_ns != entry.time:
            found = _entry(path)
            return ("", found) if found.sha256 == entry.sha256 else ("has other content", again)
    except OSError as error:
        if error.errno not in _DAMAGED:
            raise
        return f"cannot be found ({error.strerror})", again
    return "", entry


def _entry(path: Path) -> _Entry:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())  # before the content: a change during reading is found by the next check
        return _Entry(status.st_size, status.st_mtime_ns, hashlib.file_digest(file, "sha256").hexdigest())


def _read(folder: Path) -> dict[str, _Entry] | None:
    """Return file → entry; None where the checksums are missing or damaged themselves."""
    path = folder / CHECKSUMS
    try:
        own, text = path.read_text(encoding="ascii").splitlines() if path.is_file() else ("", "")
        if own == _digest(text):
            return {name: _Entry(*entry) for name, entry in json.loads(text).items()}
    except ValueError:
        pass
    return None


def _write(folder: Path, entries: Mapping[str, _Entry]) -> None:
    text = json.dumps(entries)
    replace_text(folder / CHECKSUMS, f"{_digest(text)}\n{text}\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def replace_text(path: Path, text: str) -> None:
    """Write a text file in one step: other processes see the old one or the new one."""
    written = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        written.write_text(text, encoding="utf-8")
        written.replace(path)
    except OSError:
        written.unlink(missing_ok=True)
        raise
