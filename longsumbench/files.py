"""Read and write files; JSON from a file is checked against a type: a dataclass, a TypedDict, `dict[str, int]`."""

import errno
import hashlib
import io
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from longsumbench.errors import IMPOSSIBLE, DataError, EnvironmentProblem, naming_path
from longsumbench.formatting import escape_line, guard_cell

_T = TypeVar("_T")
# levels of folders that are checked; a deeper tree is refused
_DEEPEST = 20


class BadFile(ValueError):
    """A file cannot be read or has the wrong content; the message says why."""


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading, unless it is a pipe, a device or a socket: reading these may never begin or end.

    Raises:
        OSError: it is not a regular file, or cannot be opened.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.open("rb")


def hash_regular(path: Path) -> str:
    """Return the SHA-256 of a regular file, 64 hexadecimal digits; OSError as from `open_regular`."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_contained(folder: Path, path: Path) -> None:
    """Check that a path in a folder is a regular file and, if it is a link, that its target is in the folder.

    Raises:
        BadFile: it is something else, or the link leaves the folder.
    """
    try:
        if not path.resolve(strict=True).is_relative_to(folder.resolve()):
            raise BadFile("a link that leaves its folder, which is not followed")
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise BadFile("a link that leads nowhere") from error
    if not path.is_file():
        raise BadFile("not a regular file")


def check_tree(folder: Path, skipped: str) -> None:
    """Check that a folder has only folders, regular files and links to files in it.

    Hidden entries are ignored; so is the entry `skipped` of the folder itself.

    Raises:
        DataError: it has something else, or cannot be listed.
        FileNotFoundError: the folder does not exist.
    """
    folders = [folder]
    while folders:
        parent = folders.pop()
        try:
            paths = list(parent.iterdir())
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DataError(f"cannot be listed ({error.strerror})", parent) from error
        for path in paths:
            if path.name.startswith(".") or path == folder / skipped:
                continue
            if path.is_dir() and not path.is_symlink():
                folders.append(path)
                if len(path.relative_to(folder).parts) > _DEEPEST:
                    problem = f"folders inside each other, more than {_DEEPEST}: delete them"
                    raise DataError(problem, parent)
                continue
            try:
                check_contained(folder, path)
            except BadFile as error:
                advice = "delete it, or put a copy of the file in its place"
                raise DataError(f"{error}: {advice}", path) from error


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, without its byte order mark.

    Raises:
        FileNotFoundError: the file does not exist.
        BadFile: the path is a folder or a pipe, or the file cannot be read or has another encoding.
    """
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            return file.read()
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise BadFile(f"not UTF-8: byte {error.start + 1}") from error
    except OSError as error:
        raise BadFile(error.strerror) from error


def parse_json(text: str | bytes, kind: type[_T]) -> _T:
    """Parse JSON of a type. Keys that the type does not have are ignored; its defaults replace missing ones.

    Raises:
        BadFile: the text is not JSON or does not fit the type.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError as error:
        raise BadFile("nested too deeply") from error
    except msgspec.DecodeError as error:
        raise BadFile(escape_line(error)) from error


def as_type(value: Any, kind: type[_T], strict: bool = True) -> _T:
    """Convert JSON values to a type; without `strict`, text becomes a number where the type has one.

    Raises:
        BadFile: the value does not fit the type.
    """
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise BadFile(escape_line(error)) from error


def read_json(path: Path, kind: type[_T]) -> _T:
    """Read a JSON file of a type.

    Raises:
        FileNotFoundError: the file does not exist.
        BadFile: the file cannot be read, is not JSON, or does not fit the type.
    """
    return parse_json(read_text(path), kind)


def writable_folder(folder: Path, chosen_by: str) -> Path:
    """Create a folder, if needed, and check that files can be written there; `chosen_by` says how to choose another.

    Raises:
        EnvironmentProblem: no file can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, *IMPOSSIBLE):
            raise
        reason = f"cannot write to {folder} ({error.strerror})"
        raise EnvironmentProblem(f"{reason}; choose another folder by {chosen_by}") from error
    return folder


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file (text in UTF-8) as `replaced_file` does."""
    with replaced_file(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces another one atomically at the end.

    Readers see the old content or the new. After an error, or with a full disk, the old content stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with naming_path(path), os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def format_csv(table: Any, **options: Any) -> str:
    """Return a table of pandas as CSV without its index; texts that look like formulas are guarded for spreadsheets."""
    table = table.copy(deep=False)
    for name, column in table.items():
        if any(isinstance(cell, str) for cell in column):  # others keep their types
            table[name] = list(map(guard_cell, column))
    return str(table.to_csv(index=False, lineterminator="\n", **options))


def digest(value: Any) -> str:
    """Hash a JSON value, independent of the order of its keys; 64 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
