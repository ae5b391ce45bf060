"""Read, check and write files; JSON from a file is checked against an expected shape.

A shape is written like the values:

    str, bool, None     a text, true or false, null
    int, float          a finite number below 2⁶³; for a float, an int is accepted
    range(1, 10)        an int in that range
    slice(0, 9.5)       a number from 0 to 9.5
    re.compile("a|b")   a text that the pattern matches as a whole
    object              any single value: not a list, not an object
    (A, B)              one of several shapes
    [A]                 a list of A
    {"x": A, "y?": B}   an object with x and perhaps y; other keys are ignored
    {str: A}            an object in which the values of all other keys are A
"""

import errno
import glob
import hashlib
import json
import os
import re
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from longsumbench.errors import IMPOSSIBLE, EnvironmentProblem, naming_path

_LARGEST = 2**63
COUNTS = range(_LARGEST)
TIMES = slice(0, 1e11)  # seconds since 1970
LONGEST_SHOWN = 40  # characters of a value in a message
_CONTAINERS: dict[type, str] = {dict: "an object", list: "a list"}
_NAMES: dict[object, str] = {
    str: "text",
    bool: "true or false",
    None: "null",
    int: "a whole number",
    float: "a finite number",
}
_LEFT_FOR = 86_400.0  # seconds after which no process still writes a temporary file


def value_of_depth(depth: int) -> Any:
    """Return the shape of a value with lists and objects nested up to a depth."""
    inner: Any = object
    for _ in range(depth):
        inner = (object, [inner], {str: inner})
    return inner


class BadFile(ValueError):
    """A file cannot be read or has the wrong content; the message says why."""


def read_text(path: Path) -> str:
    """Read a text file in UTF-8.

    Raises:
        FileNotFoundError: the file does not exist.
        BadFile: the path is a folder or a pipe, or the file cannot be read or has another encoding.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            raise BadFile("not a regular file")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise BadFile(f"not UTF-8: byte {error.start + 1}") from error
    except OSError as error:
        raise BadFile(error.strerror) from error


def parse_json(text: str, shape: Any) -> Any:
    """Parse JSON of a shape.

    Raises:
        BadFile: the text is not JSON or has another shape.
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise BadFile("nested too deeply") from error
    except ValueError as error:
        raise BadFile(f"not JSON: {error}") from error
    if wrong := describe_misfit(content, shape):
        raise BadFile(wrong)
    return content


def read_json(path: Path, shape: Any) -> Any:
    """Read a JSON file of a shape.

    Raises:
        FileNotFoundError: the file does not exist.
        BadFile: the file cannot be read, is not JSON, or has another shape.
    """
    return parse_json(read_text(path), shape)


def describe_misfit(value: Any, shape: Any, where: str = "") -> str:
    """Return where and how a value departs from a shape ("n is null, not a whole number"); "" if it fits."""
    if type(shape) is tuple:
        inside = ""
        for choice in shape:
            if not (problem := describe_misfit(value, choice, where)):
                return ""
            inside = problem if type(choice) is type(value) else inside
        return inside or _message(value, shape, where)
    if type(shape) is dict and type(value) is dict:
        return _misfit_of_object(value, shape, where)
    if type(shape) is list and type(value) is list:
        found = (describe_misfit(item, shape[0], f"{where}[{place}]") for place, item in enumerate(value))
        return next(filter(None, found), "")
    return "" if _fits(value, shape) else _message(value, shape, where)


def _misfit_of_object(value: dict[str, Any], shape: dict[Any, Any], where: str) -> str:
    inside = f"{where}." if where else ""
    named = {}
    for key, expected in shape.items():
        name = key if key is str else key.removesuffix("?")
        named[name] = expected
        if name in value:
            if problem := describe_misfit(value[name], expected, f"{inside}{name}"):
                return problem
        elif name == key and key is not str:
            return f"{inside}{name} is missing"
    for key in value.keys() - named.keys() if str in shape else ():
        if not _is_writable(key):
            return f"{inside}{key!a} is not a text"
        if problem := describe_misfit(value[key], shape[str], f"{inside}{key}"):
            return problem
    return ""


def _fits(value: Any, shape: Any) -> bool:
    """Check a single value against a shape that is neither a list nor an object."""
    kind = type(value)
    if kind is str and not _is_writable(value):
        return False
    if shape is object:
        return kind is not dict and kind is not list
    if shape is int or shape is float:
        return (kind is int or kind is shape) and abs(value) < _LARGEST  # false for NaN
    if type(shape) is slice:
        return (kind is int or kind is float) and shape.start <= value <= shape.stop
    if type(shape) is range:
        return kind is int and value in shape
    if type(shape) is re.Pattern:
        return kind is str and shape.fullmatch(value) is not None
    return value is None if shape is None else kind is shape


def _is_writable(text: str) -> bool:
    """Return True if a text can be written in UTF-8: JSON can contain lone surrogates."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _message(value: Any, shape: Any, where: str) -> str:
    shown = "null" if value is None else _CONTAINERS.get(type(value))
    expected = " or ".join(map(_name, shape if type(shape) is tuple else (shape,)))
    return f"{where or 'it'} is {shown or repr(value)[:LONGEST_SHOWN]}, not {expected}"


def _name(shape: Any) -> str:
    if type(shape) is slice:
        return f"a number from {shape.start} to {shape.stop:g}"
    if type(shape) is range:
        return f"a whole number from {shape.start}" + ("" if shape.stop == _LARGEST else f" to {shape.stop - 1}")
    if type(shape) is re.Pattern:
        return f"text like {shape.pattern}"
    if type(shape) in _CONTAINERS:
        return _CONTAINERS[type(shape)]
    return _NAMES.get(shape, "a single value")


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
    """Write a file (text in UTF-8) atomically: readers see the old content or the new; a full disk keeps the old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with naming_path(path), os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@cache  # once per process
def _remove_leftovers(path: Path) -> None:
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}"):  # as `tempfile` names it
        with suppress(OSError):  # another process or user may own or delete it
            if time.time() - leftover.stat().st_mtime > _LEFT_FOR:
                leftover.unlink()


def digest(value: Any) -> str:
    """Hash a JSON value, independent of the order of its keys; 64 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
