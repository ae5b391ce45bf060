"""Local files as a source of rows: which file is which split, and their lines one by one."""

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

from longsumbench.api.corpus import Entry, FromRow, Row, Source, Thinned
from longsumbench.api.documents import Example
from longsumbench.corpora.reading.fields import BadRow, json_type
from longsumbench.corpora.reading.source import as_examples
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
_NAMED = 5  # files that a message names
_SPLIT_FILE = re.compile(rf"({'|'.join(SPLITS)})\.(jsonl|json|txt)(\.gz)?")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def files_source(path: Path, from_row: FromRow, split_by_hash: bool) -> Source:
    """Return the rows of a folder with a file a split, or of one file.

    Args:
        path: the folder or the file.
        from_row: a JSON object → Example, or several.
        split_by_hash: deal one file into the three splits by the examples' ids, instead of taking it as `test`.

    Raises:
        DataError: there is nothing at the path, or no split, or two files for one split.
        UsageError: a folder was to be dealt by hash.
    """
    files = _find_splits(path)
    if split_by_hash and path.is_dir():
        raise UsageError(
            f"dataset.split_by_hash=true deals one file into splits, but {path} is a folder: name the file"
        )
    stated = [(file.name, file.stat()) for file in files.values()]
    inputs = {
        "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stated],
        "folder": str(path.resolve()),
        "split_by_hash": split_by_hash,
    }
    facts = {"source": "local files", "files": [name for name, _ in stated]}
    named: list[tuple[str | None, Path]] = [(None if split_by_hash else split, file) for split, file in files.items()]
    return Source(inputs, facts, partial(_entries, named, from_row), sum(stat.st_size for _, stat in stated))


def _find_splits(path: Path) -> dict[str, Path]:
    """Return split name → file, in the order train, validation, test; one file is `test`.

    Raises:
        DataError: there is nothing at the path, or no split, or two files for one split.
    """
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
        there = f"it has {', '.join(names[:_NAMED])}{', …' * (len(names) > _NAMED)}"
        advice = f"{there}; rename them, or name one by dataset.path=FILE" if names else "the folder is empty"
        raise DataError(f"{expected}; {advice}", path)
    return {split: found[split] for split in ORDER if split in found}


def is_split_file(file: Path) -> bool:
    """Tell whether a file is a split by its name."""
    return _SPLIT_FILE.fullmatch(file.name) is not None and file.is_file()


def _entries(files: list[tuple[str | None, Path]], from_row: FromRow, full: set[str]) -> Iterator[Entry]:
    done = 0
    for split, path in files:
        empty, so_far = True, 0
        for number, (line, so_far) in enumerate(_placed_lines_of(path), start=1):
            if split in full:
                break
            if line.strip():
                empty = False
                yield Entry(split, partial(_read, line, from_row), path, number, done + so_far)
        if empty and split not in full:
            raise DataError("the file is empty", path)
        done += so_far


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, unpacking it where its name ends in .gz; a byte order mark is no part of the first.

    Raises:
        DataError: the file cannot be read.
    """
    return (line for line, _ in _placed_lines_of(path))


def check_readable(path: Path) -> None:
    """Check that a path is no named pipe and no device, whose reading may never end.

    Raises:
        DataError: it is one. A pipe without a name, as the shell's `<(command)`, is read like a file.
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not (real.is_file() or real.is_dir()):
        raise DataError("a pipe or a device; write what it gives to a file, and name that", path)


def _placed_lines_of(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield each line with the bytes of the file that were read for it and those before it."""
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
        BadRow: it is not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRow("not UTF-8", f"byte {error.start + 1} of the line; convert the file") from error


def row_in(line: bytes) -> Row:
    """Return the JSON object on a line.

    Raises:
        BadRow: it is not UTF-8, no JSON, or no object.
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
    """Return the JSON object that a whole file is, on however many lines.

    Raises:
        BadRow: it is not UTF-8, no JSON, or no object.
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
