"""Local files as a source of rows: the files of the splits, and their lines."""

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from longsumbench.core import Entry, FromRow, Read, Row, Source
from longsumbench.corpora.reading.fields import BadRow, json_type
from longsumbench.errors import DataError, UsageError
from longsumbench.files import open_regular, read_bytes

ORDER = ("train", "validation", "test")
SPLITS = {"train": "train", **dict.fromkeys(("validation", "val", "dev", "valid"), "validation"), "test": "test"}
_MAX_NAMES = 5  # files in a message
_SPLIT_FILE = re.compile(rf"({'|'.join(SPLITS)})\.((jsonl|json|txt)(\.gz)?|csv|parquet)")
_TABLE_ROWS = 1_000  # of a table, read together
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def files_source(path: Path, from_row: FromRow, split_by_hash: bool) -> Source:
    """Return the rows of one file, or of a folder with one file per split.

    With `split_by_hash`, one file is divided into the three splits by the ids of examples; otherwise it is `test`.

    Raises:
        DataError: the path does not exist, has no split, or has two files for one split.
        UsageError: `split_by_hash` is set for a folder.
    """
    files = _find_splits(path)
    if split_by_hash and path.is_dir():
        raise UsageError(f"dataset.split_by_hash=true divides one file, but {path} is a folder: name the file")
    pairs: list[tuple[str | None, Path]] = [(None if split_by_hash else split, file) for split, file in files.items()]
    source = local_source(path, list(files.values()), partial(_file_entries, pairs, from_row))
    inputs = {**source.inputs, "split_by_hash": split_by_hash}
    return replace(source, inputs=inputs, size=sum(file.stat().st_size for file in files.values()))


def local_source(
    path: Path, files: list[Path], entries: Callable[[set[str]], Iterator[Entry]], extra_files: Iterable[Path] = ()
) -> Source:
    """Return the source of rows in local files. Its inputs change with the size or the time of any file.

    The record names `files`; `extra_files` are read, too.

    Raises:
        DataError: a file cannot be read.
    """
    content = hashlib.sha256()
    for file in (*files, *extra_files):
        try:
            stat = file.stat()
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", file) from error
        content.update(os.fsencode(f"{file.parent.name}/{file.name} {stat.st_size} {stat.st_mtime_ns}\n"))
    names = [file.relative_to(path if path.is_dir() else path.parent).as_posix() for file in files]
    inputs = {"path": str(path.resolve()), "files": names, "content": content.hexdigest()}
    return Source(inputs, {"source": "local files", "files": names}, entries)


def _find_splits(path: Path) -> dict[str, Path]:
    """Return split name → file, in the order train, validation, test; one file is `test`."""
    if path.is_file():
        return {"test": path}
    if not path.is_dir():
        raise DataError("no such file or folder; correct dataset.path", path)
    splits = one_per_split((file.name.partition(".")[0], file) for file in path.iterdir() if _is_split_file(file))
    if not splits:
        expected = "no split files; expected train, validation or test .jsonl, .json, .txt (or .gz), .csv or .parquet"
        names = [file.name for file in sorted(path.iterdir())]
        contents = f"it has {', '.join(names[:_MAX_NAMES])}{', …' * (len(names) > _MAX_NAMES)}"
        advice = f"{contents}; rename them, or name one by dataset.path=FILE" if names else "the folder is empty"
        raise DataError(f"{expected}; {advice}", path)
    return splits


def one_per_split(candidates: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    """Return split → file or folder, in the order train, validation, test.

    Names of no split are ignored.

    Raises:
        DataError: a split has two.
    """
    paths: dict[str, Path] = {}
    for name, path in sorted(candidates, key=lambda pair: pair[1]):
        if (split := SPLITS.get(name)) and (first := paths.setdefault(split, path)) != path:
            problem = f"two {'folders' if path.is_dir() else 'files'} for the split '{split}'"
            raise DataError(f"{problem}, {first.name} and {path.name}; remove one", path.parent)
    return {split: paths[split] for split in ORDER if split in paths}


def has_split_files(folder: Path) -> bool:
    """Return True if a file in the folder has the name of a split ("test.jsonl.gz")."""
    return any(map(_is_split_file, folder.iterdir()))


def _is_split_file(file: Path) -> bool:
    return _SPLIT_FILE.fullmatch(file.name) is not None and file.is_file()


def _file_entries(files: list[tuple[str | None, Path]], from_row: FromRow, full: set[str]) -> Iterator[Entry]:
    bytes_before = 0
    for split, path in files:
        empty = True
        for number, (load_row, so_far) in enumerate(_reads_with_position(path, from_row), start=1):
            if split in full:
                break
            if load_row is not None:
                empty = False
                yield Entry(split, load_row, path, number, bytes_before + so_far)
        if empty and split not in full:
            raise DataError("the file is empty", path)
        bytes_before += path.stat().st_size


def _reads_with_position(path: Path, from_row: FromRow) -> Iterator[tuple[Callable[[], Read] | None, int]]:
    """Yield what reads each row, None for a blank line, with the bytes read so far; they are unknown for a table."""
    if path.suffix.lower() in (".csv", ".parquet"):
        yield from ((partial(from_row, row), 0) for row in _table_rows(path))
    else:
        lines = _lines_with_position(path)
        yield from ((partial(_read_line, line, from_row) if line.strip() else None, so_far) for line, so_far in lines)


def _table_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a CSV file, whose values are text, or of a Parquet file."""
    try:
        if path.suffix.lower() == ".csv":
            from pandas import RangeIndex, read_csv  # slow, as pyarrow: imported late

            options: Any = {"dtype": str, "na_filter": False, "encoding": "utf-8-sig", "chunksize": _TABLE_ROWS}
            with open_regular(path) as file, read_csv(file, **options) as tables:
                for table in tables:
                    if not isinstance(table.index, RangeIndex):  # pandas takes the first values for names of rows
                        raise ValueError("a row has more values than there are names")
                    yield from table.to_dict("records")
        else:
            from pyarrow import parquet  # type: ignore[import-untyped] # has no annotations

            with open_regular(path) as file:
                for batch in parquet.ParquetFile(file).iter_batches(_TABLE_ROWS):
                    yield from batch.to_pylist()
    except (ValueError, OSError) as error:  # the libraries' errors are subclasses
        problem = " ".join(f"{error}".split())
        raise DataError(f"not a table in {path.suffix[1:]} with a line of names, in UTF-8 ({problem})", path) from error


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file without byte order mark, unpacked if its name ends in .gz.

    Raises:
        DataError: the file cannot be read.
    """
    return (line for line, _ in _lines_with_position(path))


def names_in_list(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, name) for the names in a list, one a line; blank lines are skipped.

    Raises:
        DataError: the file cannot be read.
    """
    return ((number, line.strip()) for number, line in enumerate(lines_of(path), start=1) if line.strip())


def _lines_with_position(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield each line with the number of bytes of the file that were read up to its end."""
    try:
        with open_regular(path) as stored, gzip.open(stored) if path.suffix == ".gz" else nullcontext(stored) as file:
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
    return _json_object(decoded(line), "not a JSON object on one line")


def _json_object(text: str, problem: str) -> Row:
    try:
        row: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(problem, f"{error}") from error
    if not isinstance(row, dict):
        raise BadRow(problem, f"it is {json_type(row)}")
    return row


def row_in_file(path: Path) -> Row:
    """Return the JSON object that a whole file holds.

    Raises:
        BadRow: the file is not UTF-8, not JSON, or not an object.
        DataError: the file cannot be read.
    """
    return _json_object(text_of_file(path), "not a JSON object")


def text_of_file(path: Path) -> str:
    """Return the text of a file that holds one example.

    Raises:
        BadRow: the file is not UTF-8.
        DataError: the file cannot be read.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRow("not UTF-8", f"byte {error.start + 1}; convert the file") from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from error


def _read_line(line: bytes, from_row: FromRow) -> Read:
    return from_row(row_in(line))
