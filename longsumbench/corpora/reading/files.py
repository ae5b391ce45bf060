"""Local files as a source of rows: the files of the splits, and their lines."""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from longsumbench.api import Entry, Example, FromRow, Row, Source, Thinned
from longsumbench.corpora.reading.fields import BadRow, json_type
from longsumbench.corpora.reading.rows import as_examples
from longsumbench.errors import DataError, UsageError

ORDER = ("train", "validation", "test")
SPLITS = {
    "train": "train",
    "validation": "validation",
    "val": "validation",
    "dev": "validation",
    "valid": "validation",
    "test": "test",
}
_MAX_NAMES = 5  # files in a message
_SPLIT_FILE = re.compile(rf"({'|'.join(SPLITS)})\.(jsonl|json|txt)(\.gz)?")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def files_source(path: Path, from_row: FromRow, split_by_hash: bool) -> Source:
    """Return the rows of one file, or of a folder with one file per split.

    Args:
        path: the folder or the file.
        from_row: a JSON object → Example, or several.
        split_by_hash: divide one file into the three splits by the examples' ids; otherwise it is `test`.

    Raises:
        DataError: the path does not exist, has no split, or has two files for one split.
        UsageError: `split_by_hash` is set for a folder.
    """
    files = _find_splits(path)
    if split_by_hash and path.is_dir():
        raise UsageError(f"dataset.split_by_hash=true divides one file, but {path} is a folder: name the file")
    stats = [(file.name, file.stat()) for file in files.values()]
    inputs = {
        "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats],
        "folder": str(path.resolve()),
        "split_by_hash": split_by_hash,
    }
    facts = {"source": "local files", "files": [name for name, _ in stats]}
    named: list[tuple[str | None, Path]] = [(None if split_by_hash else split, file) for split, file in files.items()]
    return Source(inputs, facts, partial(_entries, named, from_row), sum(stat.st_size for _, stat in stats))


def _find_splits(path: Path) -> dict[str, Path]:
    """Return split name → file, in the order train, validation, test; one file is `test`."""
    if path.is_file():
        return {"test": path}
    check_readable(path)
    if not path.is_dir():
        raise DataError("no such file or folder; correct dataset.path", path)
    found: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        if not is_split_file(file):
            continue
        split = SPLITS[file.name.partition(".")[0]]
        if split in found:
            raise DataError(f"two files for the split '{split}', {found[split].name} and {file.name}; remove one", path)
        found[split] = file
    if not found:
        expected = "no split files; expected train, validation or test .jsonl, .json or .txt (or .gz of it)"
        names = [file.name for file in sorted(path.iterdir())]
        there = f"it has {', '.join(names[:_MAX_NAMES])}{', …' * (len(names) > _MAX_NAMES)}"
        advice = f"{there}; rename them, or name one by dataset.path=FILE" if names else "the folder is empty"
        raise DataError(f"{expected}; {advice}", path)
    return {split: found[split] for split in ORDER if split in found}


def is_split_file(file: Path) -> bool:
    """Return True if the file exists and has the name of a split."""
    return _SPLIT_FILE.fullmatch(file.name) is not None and file.is_file()


def _entries(files: list[tuple[str | None, Path]], from_row: FromRow, full: set[str]) -> Iterator[Entry]:
    done = 0
    for split, path in files:
        empty, so_far = True, 0
        for number, (line, so_far) in enumerate(_lines_with_position(path), start=1):
            if split in full:
                break
            if line.strip():
                empty = False
                yield Entry(split, partial(_read, line, from_row), path, number, done + so_far)
        if empty and split not in full:
            raise DataError("the file is empty", path)
        done += so_far


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file without byte order mark, unpacked if its name ends in .gz.

    Raises:
        DataError: the file cannot be read.
    """
    return (line for line, _ in _lines_with_position(path))


def check_readable(path: Path) -> None:
    """Check that a path is not a named pipe or a device, whose reading may never end.

    Raises:
        DataError: it is one. An unnamed pipe, as the shell's `<(command)`, is read like a file.
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not (real.is_file() or real.is_dir()):
        raise DataError("a pipe or a device; write its content to a file, and name that file", path)


def _lines_with_position(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield each line with the number of bytes of the file that were read up to its end."""
    try:
        check_readable(path)
        with path.open("rb") as stored, gzip.open(stored) if path.suffix == ".gz" else nullcontext(stored) as file:
            if first := file.readline().removeprefix(_BYTE_ORDER_MARK):
                yield first, stored.tell()
            for line in file:
                yield line, stored.tell()
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"not a whole gzip file ({error}); fetch it again, or drop .gz from its name", path) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from error


def decoded(line: bytes) -> str:
    """Return the text of a line.

    Raises:
        BadRow: the line is not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRow("not UTF-8", f"byte {error.start + 1} of the line; convert the file") from error


def row_in(line: bytes) -> Row:
    """Return the JSON object on a line.

    Raises:
        BadRow: the line is not UTF-8, not JSON, or not an object.
    """
    text = decoded(line)
    try:
        row: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow("not a JSON object on one line", f"{error}") from error
    if not isinstance(row, dict):
        raise BadRow("not a JSON object on one line", f"it is {json_type(row)}")
    return row


def row_in_file(path: Path) -> Row:
    """Return the JSON object that a whole file holds.

    Raises:
        BadRow: the file is not UTF-8, not JSON, or not an object.
        DataError: the file cannot be read.
    """
    try:
        check_readable(path)
        row: Any = json.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadRow("not UTF-8", f"byte {error.start + 1}; convert the file") from error
    except (ValueError, RecursionError) as error:
        raise BadRow("not a JSON object", f"{error}") from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from error
    if not isinstance(row, dict):
        raise BadRow("not a JSON object", f"it is {json_type(row)}")
    return row


def _read(line: bytes, from_row: FromRow) -> tuple[Example | Thinned, ...]:
    return as_examples(from_row(row_in(line)))
