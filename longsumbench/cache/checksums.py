"""Checksums of a finished stage: a file in its folder lists the other files with size, time and SHA-256.

Each use of the stage compares sizes and times. A file is read only if its time differs, or on request.
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

CHECKSUMS = "checksums"  # file name
_DAMAGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # errors for a file that was deleted or replaced
_UNKNOWN_TIME = -1  # no file has this time, so the next check reads the file


class _Entry(NamedTuple):
    """A file's size in bytes, time of the last change in nanoseconds, and SHA-256 in hexadecimal."""

    size: int
    time: int
    sha256: str


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in a folder and its subfolders."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != CHECKSUMS]
    _write(folder, {path.relative_to(folder).as_posix(): _entry(path) for path in files})


def find_damage(folder: Path, in_full: bool = False) -> list[str]:
    """Return a line for each damaged file of a finished stage.

    With `in_full`, every file is read, even if its size and time are unchanged. New times are stored. The next check
    reads a damaged file again.

    Raises:
        OSError: a file cannot be read, but may be undamaged (no permission).
    """
    if (listed := _read_checksums(folder)) is None:
        return [f"{CHECKSUMS} is missing or damaged"]
    problems, entries = [], {}
    for name, entry in listed.items():
        problem, entries[name] = _compare(folder / name, entry, in_full)
        problems += [f"{name} {problem}"] if problem else []
    if entries != listed:
        with suppress(OSError):  # a read-only folder
            _write(folder, entries)
    return problems


def _compare(path: Path, entry: _Entry, in_full: bool) -> tuple[str, _Entry]:
    """Return the problem of a file, "" if there is none, and the entry for the next check."""
    reread = entry._replace(time=_UNKNOWN_TIME)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "is not a file", reread
        if status.st_size != entry.size:
            return f"has {status.st_size} bytes instead of {entry.size}", reread
        if in_full or status.st_mtime_ns != entry.time:
            new_entry = _entry(path)
            return ("", new_entry) if new_entry.sha256 == entry.sha256 else ("has other content", reread)
    except OSError as error:
        if error.errno not in _DAMAGED:
            raise
        return f"cannot be found ({error.strerror})", reread
    return "", entry


def _entry(path: Path) -> _Entry:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())  # before reading: the next check finds a change that happens meanwhile
        return _Entry(status.st_size, status.st_mtime_ns, hashlib.file_digest(file, "sha256").hexdigest())


def _read_checksums(folder: Path) -> dict[str, _Entry] | None:
    """Return file → entry; None if the checksums are missing or damaged."""
    path = folder / CHECKSUMS
    try:
        listed = json.loads(path.read_text(encoding="ascii")) if path.is_file() else {}
        return {name: _Entry(*entry) for name, entry in listed.items()} or None
    except (ValueError, TypeError, AttributeError):
        return None


def _write(folder: Path, entries: Mapping[str, _Entry]) -> None:
    """Write the file atomically. Another process may delete the folder meanwhile; it is never created again."""
    temporary = folder / f".{CHECKSUMS}-{uuid.uuid4().hex}"
    try:
        temporary.write_text(json.dumps(entries), encoding="ascii")
        temporary.replace(folder / CHECKSUMS)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
