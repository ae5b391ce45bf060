"""Local files as a source of rows: the files of the splits."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from longsumbench.core import Entry, FromRow, Read, Row, Source
from longsumbench.corpora.loading.row_files import (
    ROW_ENDINGS,
    FileRow,
    describe_file,
    files_in_folder,
    holds_rows,
    read_file,
)
from longsumbench.corpora.loading.text_files import (
    check_is_file,
    list_names,
    list_shards,
    undivided_name,
    visible_files,
)
from longsumbench.corpora.loading.usual_keys import usual_fields
from longsumbench.errors import DataError, UsageError

ORDER = ("train", "validation", "test")
SPLITS = {
    "train": "train",
    **dict.fromkeys(("validation", "val", "dev", "valid"), "validation"),
    "test": "test",
}
_SPLIT_FILE = re.compile(rf"({'|'.join(SPLITS)})({'|'.join((*ROW_ENDINGS, '.txt'))})(\.gz)?")
# "xsum_test.jsonl"
_NAMED_SPLIT = re.compile(rf".+[-_.]({'|'.join(SPLITS)})({'|'.join(ROW_ENDINGS)})(\.gz)?")


def files_source(
    path: Path, from_row: FromRow, split_by_hash: bool, fields: Sequence[str] = ()
) -> Source:
    """Return the rows of one file or folder of texts, or of a folder with one for each split.

    With `split_by_hash`, one file is divided into the three splits by the ids of examples; otherwise it is `test`.
    `fields` are looked for under their usual names.

    Raises:
        DataError: the path does not exist, has no split, or has two files for one split; or a part is missing.
        UsageError: `split_by_hash` is set for a folder.
    """
    splits = _find_splits(path)
    if split_by_hash and path not in splits.values():
        raise UsageError(
            f"dataset.split_by_hash=true divides one file, but {path} is a folder: name the file"
        )
    pairs: list[tuple[str | None, Path]] = []
    for split, first in splits.items():
        pairs += [(None if split_by_hash else split, part) for part in list_shards(first)]
    places = [place for _, place in pairs]
    texts: list[Path] = []
    for place in places:
        texts += files_in_folder(place)
    entries = partial(_file_entries, pairs, from_row, "id" in fields)
    source = local_source(path, places, entries, texts)
    inputs = {**source.inputs, "split_by_hash": split_by_hash}
    # note → the first file that it is about
    notes: dict[str, str] = {}
    for place in reversed(places):
        note = describe_file(place, fields)
        if note:
            notes[note] = place.name
    metadata = dict(source.metadata)
    if notes:
        metadata["read_as"] = [f"{name}: {note}" for note, name in notes.items()]
    return replace(source, inputs=inputs, metadata=metadata)


def local_source(
    path: Path,
    files: list[Path],
    entries: Callable[[set[str]], Iterator[Entry]],
    extra_files: Iterable[Path] = (),
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
        content.update(
            os.fsencode(f"{file.parent.name}/{file.name} {stat.st_size} {stat.st_mtime_ns}\n")
        )
    root = path.parent if path in files else path
    names = [file.relative_to(root).as_posix() for file in files]
    inputs = {"path": str(path.resolve()), "files": names, "content": content.hexdigest()}
    return Source(inputs, {"source": "local files", "files": names}, entries)


def _find_splits(path: Path) -> dict[str, Path]:
    """Return split name → file or folder of texts, in the order train, validation, test; one alone is `test`."""
    if not path.is_dir():
        check_is_file(path)
        return {"test": path}
    places = [(_split_name(place), place) for place in path.iterdir() if _is_split(place)]
    splits = one_per_split(places) or _find_named_splits(path)
    if not splits and files_in_folder(path):
        return {"test": path}
    if not splits:
        expected = "no split files; expected train, validation or test .jsonl, .json, .txt, .csv, .tsv (or .gz) or"
        expected = f"{expected} .parquet, or texts/ID.txt and references/ID.txt"
        names = [file.name for file in sorted(path.iterdir())]
        advice = (
            f"it has {list_names(names)}; rename them, or name one by dataset.path=FILE"
            if names
            else "the folder is empty"
        )
        raise DataError(f"{expected}; {advice}", path)
    return splits


def _find_named_splits(folder: Path) -> dict[str, Path]:
    """Return split → file of rows, if the names of all such files end in one, and not all in the same.

    There is none in a folder with texts, which are of no split.
    """
    files = [file for file in visible_files(folder) if file.stem.lower() != "readme"]
    if any(file.parent != folder or not holds_rows(file.name) for file in files):
        return {}
    names = [_NAMED_SPLIT.fullmatch(undivided_name(file)) for file in files]
    pairs = [(name[1], file) for name, file in zip(names, files, strict=True) if name]
    if len(pairs) < len(files) or len({SPLITS[name] for name, _ in pairs}) < 2:
        return {}
    return one_per_split(pairs)


def _split_name(place: Path) -> str:
    return undivided_name(place).partition(".")[0]


def _is_split(place: Path) -> bool:
    if place.is_dir():
        return place.name in SPLITS and bool(files_in_folder(place))
    return _is_split_file(place)


def one_per_split(candidates: Iterable[tuple[str, Path]]) -> dict[str, Path]:
    """Return split → file or folder, in the order train, validation, test; of a file in parts the first.

    Names of no split are ignored.

    Raises:
        DataError: a split has two.
    """
    paths: dict[str, Path] = {}
    for name, path in sorted(candidates, key=lambda pair: pair[1]):
        split = SPLITS.get(name)
        first = paths.setdefault(split, path) if split else path
        if first not in (path, *list_shards(path)):
            problem = f"two {'folders' if path.is_dir() else 'files'} for the split '{split}'"
            raise DataError(f"{problem}, {first.name} and {path.name}; remove one", path.parent)
    return {split: paths[split] for split in ORDER if split in paths}


def pair_splits(
    first: Mapping[str, Path], second: Mapping[str, Path], problem: str
) -> dict[str, tuple[Path, Path]]:
    """Return split → its two files.

    Raises:
        DataError: a file has no other one, as `problem` says.
    """
    for split, file in {**first, **second}.items():
        if split not in first or split not in second:
            raise DataError(problem, file)
    return {split: (first[split], second[split]) for split in first}


def has_split_files(folder: Path) -> bool:
    """Return True if a file in the folder has the name of a split ("test.jsonl.gz")."""
    return any(map(_is_split_file, folder.iterdir()))


def _is_split_file(file: Path) -> bool:
    return _SPLIT_FILE.fullmatch(undivided_name(file)) is not None and file.is_file()


def _file_entries(
    files: list[tuple[str | None, Path]], from_row: FromRow, gives_ids: bool, full: set[str]
) -> Iterator[Entry]:
    for split, path in files:
        for row in read_file(path) if split not in full else ():
            if split in full:
                break
            load = partial(_read_row, row, from_row, gives_ids)
            yield Entry(split, load, row.path, row.line)


def _read_row(file_row: FileRow, from_row: FromRow, gives_ids: bool) -> Read:
    return from_row(load_row(file_row) if gives_ids else file_row.load())


def load_row(file_row: FileRow) -> Row:
    """Return a row; the id of one without is its file and line ("test-12").

    Raises:
        BadRow: it cannot be read.
    """
    row = file_row.load()
    if file_row.line is not None and "id" not in usual_fields(row):
        row = {**row, "id": f"{file_row.path.name.partition('.')[0]}-{file_row.line}"}
    return row
