"""The rows of a file, whatever its format.

    path --file_rows--> FileRows: where they are, and what loads them

    JSON lines      an object per line
    JSON            an array of objects, or one object
    CSV, TSV        columns separated by commas, semicolons or tabs, below a line of their names
    Parquet
    a folder        `texts/ID.txt` and `references/ID.txt`: a row per id; or texts (.txt, .md) and files of rows

The ending of a name decides; without a known one, the first line does. A file that was divided is read as a whole.
"""

import csv
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

from longsumbench.core import Row
from longsumbench.corpora.loading.fields import (
    BadRow,
    NoExample,
    bad_rows_at,
    describe_names,
    refuse_row,
)
from longsumbench.corpora.loading.text_files import (
    as_object,
    check_is_file,
    decoded_lines,
    describe_unread_file,
    detect_encoding,
    is_hidden,
    lines_of,
    list_shards,
    parse_json_text,
    read_text_file,
    refuse_repeated,
    row_in,
    undivided_name,
    unique_keys,
    visible_files,
    with_names_of,
)
from longsumbench.corpora.loading.usual_keys import (
    describe_keys,
    find_keys,
    rename_keys,
    usual_fields,
)
from longsumbench.errors import DataError
from longsumbench.files import BadFile

_Value = TypeVar("_Value")
_log = logging.getLogger(__name__)

JSON_LINES, JSON, TABLE, PARQUET = "JSON lines", "JSON", "a table", "Parquet"
LINES, FOLDER = "lines of text", "a folder"
_FORMATS = {
    **dict.fromkeys((".jsonl", ".ndjson", ".jsonlines"), JSON_LINES),
    ".json": JSON,
    **dict.fromkeys((".csv", ".tsv", ".tab"), TABLE),
    ".parquet": PARQUET,
}
ROW_ENDINGS = tuple(_FORMATS)
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_PARQUET_ROWS = 1_000  # read together
TEXT_ENDINGS = (".txt", ".md", ".markdown")
_FOLDER_ENDINGS = {"prediction": (".dec",), "summary": (".ref",)}  # of DUC
# In tables of old Macs, line breaks within cells may differ from those of rows.
_OLD_LINE_BREAK = re.compile(r"(?<=\r)(?!\n|\Z)")
csv.field_size_limit(sys.maxsize)  # a value may be a book


class EmptyFile(DataError):
    """A file without a row."""


class FileRow(NamedTuple):
    """A row of a file that is not read yet.

    Attributes:
        path: the file.
        line: where the row begins; of Parquet and of a JSON array its number; None for a text of a folder.
        load: returns the row; raises BadRow.
    """

    path: Path
    line: int | None
    load: Callable[[], Row]


def holds_rows(file: str) -> bool:
    """Return True if the name of a file says that it has a text in each row."""
    return file.lower().removesuffix(".gz").endswith(ROW_ENDINGS)


def unpacked_path(file: Path) -> Path:
    """Return the path of a file without `.gz`."""
    return file.with_suffix("") if file.suffix.lower() == ".gz" else file


def detect_format(path: Path) -> str:
    """Return the format of a file or folder.

    Raises:
        DataError: it does not exist, or cannot be read.
    """
    if path.is_dir():
        return FOLDER
    check_is_file(path)
    suffix_format = _FORMATS.get(Path(undivided_name(path).removesuffix(".gz")).suffix)
    if suffix_format == PARQUET:
        return PARQUET
    line = _first_line(path)
    # a text may begin with a bracket, too
    if suffix_format is None and not _is_row(line):
        return TABLE if _is_header(line) else LINES
    if line.startswith("[") or (suffix_format == JSON and line and not line.endswith("}")):
        return JSON
    return JSON_LINES if suffix_format == JSON or line.startswith("{") else TABLE


def _is_row(line: str) -> bool:
    """Return True if a line of text is a JSON object with an id or a text."""
    try:
        return bool(usual_fields(json.loads(line)))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return False


def _is_header(line: str) -> bool:
    """Return True if a line of text names the columns of a table with ids and texts."""
    names = _split_header(line, _delimiter_in(line))
    fields = usual_fields(names)
    return "id" in fields and bool(fields & {"document", "summary", "prediction"})


def file_rows(path: Path) -> Iterator[FileRow]:
    """Yield the rows of a file or folder; of a file in parts those of all. Lines of text are read as JSON lines.

    Raises:
        DataError: it cannot be read, or a part is missing.
    """
    for part in list_shards(path):
        yield from read_file(part)


def read_file(path: Path) -> Iterator[FileRow]:
    """Yield the rows of a folder or of a single file; blank lines are skipped.

    Raises:
        DataError: it cannot be read, or has no row.
    """
    readers = {JSON: _json_rows, TABLE: _table_rows, PARQUET: _parquet_rows, FOLDER: _folder_rows}
    rows = readers.get(detect_format(path), _line_rows)(path)
    try:
        yield next(rows)
    except StopIteration:
        raise EmptyFile("the file is empty", path) from None
    yield from rows


def describe_file(path: Path, fields: Sequence[str]) -> str:
    """Return what was recognized in a file: encoding, delimiter, names of `fields`; empty if nothing is unusual."""
    file_format = detect_format(path)
    notes: list[str] = []
    if file_format != FOLDER and (encoding := detect_encoding(path)) != "UTF-8":
        notes.append(encoding)
    if file_format == TABLE:
        if not undivided_name(path).endswith((".csv", ".csv.gz")):
            notes.append("a table")
        if (delimiter := _delimiter_in(_first_line(path))) != ",":
            notes.append(f"{_DELIMITERS[delimiter]} between columns")
    with suppress(BadRow):  # raised when the rows are read
        notes.append(describe_keys(next(read_file(path)).load(), fields))
    return "; ".join(filter(None, notes))


def parse_rows(
    path: Path, fields: Sequence[str], parse: Callable[[Row], _Value]
) -> Iterator[tuple[int | None, _Value]]:
    """Yield the line and `parse(row)` of each row; log under which names the fields were recognized.

    Raises:
        DataError: the file cannot be read, or `parse` raises BadRow or BadFile.
    """
    if note := describe_file(path, fields):
        _log.info(f"{path}: {note}")
    for row in file_rows(path):
        try:
            yield row.line, parse(rename_keys(row.load(), fields))
        except (BadRow, BadFile) as problem:
            raise DataError(f"{problem}", row.path, row.line) from problem


def _line_rows(path: Path) -> Iterator[FileRow]:
    for number, line in enumerate(lines_of(path), start=1):
        if line.strip():
            yield FileRow(path, number, partial(row_in, line))


def _json_rows(path: Path) -> Iterator[FileRow]:
    with bad_rows_at(path):
        value = parse_json_text(read_text_file(path), "not JSON")
    for number, row in enumerate(value if isinstance(value, list) else [value], start=1):
        yield FileRow(path, number, partial(as_object, row, "not a JSON object"))


def _first_line(path: Path) -> str:
    """Return the first line with text, but not Excel's `sep=;`."""
    parts = (line.decode("utf-8", "replace").split("\r") for line in lines_of(path))
    lines = (line.strip(" \n") for line in chain.from_iterable(parts))
    return next((line for line in lines if line.strip() and not line.startswith("sep=")), "")


def _delimiter_in(header: str) -> str:
    """Return what separates the columns: the delimiter that gives the most usual names, then the most columns."""

    def rank(delimiter: str) -> tuple[int, int]:
        names = _split_header(header, delimiter)
        return len(usual_fields(names)), len(names)

    return max(_DELIMITERS, key=rank)


def _split_header(header: str, delimiter: str) -> tuple[str, ...]:
    try:
        return tuple(next(csv.reader([header], delimiter=delimiter, skipinitialspace=True), ()))
    except csv.Error:
        return ()


def _table_rows(path: Path) -> Iterator[FileRow]:
    """Yield the rows of a CSV or TSV file, whose values are text."""
    delimiter = _delimiter_in(_first_line(path))
    lines = chain.from_iterable(map(_OLD_LINE_BREAK.split, decoded_lines(path)))
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    names: list[str] = []
    start = 1
    try:
        for values in reader:
            line, start = start, reader.line_num + 1
            if not any(map(str.strip, values)) or (not names and values[0].startswith("sep=")):
                continue
            if names:
                yield FileRow(path, line, partial(_named_values, names, values))
            else:
                names = list(map(str.strip, values))
                with bad_rows_at(path, line):
                    refuse_repeated(list(filter(None, names)), "column")
    except csv.Error as error:
        advice = 'close every quote, and write a quote within quotes twice: ""'
        raise DataError(f"not a row of a table ({error}); {advice}", path, start) from error


def _named_values(names: Sequence[str], values: Sequence[str]) -> Row:
    if len(values) != len(names):
        detail = f"{len(values)} for {describe_names(names)}; put quotes around a value with the delimiter in it"
        raise BadRow("the row has another number of values than the table has columns", detail)
    # Spreadsheets add columns without a name, which are empty.
    columns = [pair for pair in zip(names, values, strict=True) if "".join(pair).strip()]
    return unique_keys(columns, "column")


def _parquet_rows(path: Path) -> Iterator[FileRow]:
    from pyarrow import parquet  # type: ignore[import-untyped] # has no annotations; slow, so imported late

    try:
        file = parquet.ParquetFile(path)
        with bad_rows_at(path):
            refuse_repeated(file.schema_arrow.names, "column")
        batches = (batch.to_pylist() for batch in file.iter_batches(_PARQUET_ROWS))
        for number, row in enumerate(chain.from_iterable(batches), start=1):
            yield FileRow(path, number, partial(dict, row))
    except (ValueError, OSError) as error:  # the library's errors are subclasses
        raise DataError(
            f"not a Parquet file ({' '.join(f'{error}'.split())}); write it again", path
        ) from error


def texts_in_folder(folder: Path, field: str) -> dict[str, Path]:
    """Return name → file of the texts of a field in a folder.

    They are the texts of the subfolder with a usual name of the field ("references"), or the files with DUC's ending
    (.dec for outputs, .ref for references). The result is empty if there are neither.

    Raises:
        DataError: two subfolders could hold the field, or two files have one name.
    """
    subfolders = sorted(place.name for place in folder.iterdir() if place.is_dir())
    with bad_rows_at(folder):
        subfolder = find_keys(tuple(subfolders), (field,)).get(field, "")
    endings = TEXT_ENDINGS if subfolder else _FOLDER_ENDINGS.get(field, ())
    return texts_by_name(folder / subfolder, endings)


def texts_by_name(folder: Path, endings: Sequence[str] = TEXT_ENDINGS) -> dict[str, Path]:
    """Return name → file of the texts in a folder, without its subfolders.

    Raises:
        DataError: two files have one name.
    """
    texts: dict[str, Path] = {}
    for file in visible_files(folder, "*"):
        name = unpacked_path(file)
        if name.suffix.lower() in endings:
            if name.stem in texts:
                raise DataError(f"{texts[name.stem].name} has the same name; remove one", file)
            texts[name.stem] = file
    return texts


def files_in_folder(path: Path) -> list[Path]:
    """Return the files of a folder of texts, summaries and rows, and those next to them; empty for another folder."""
    if not path.is_dir():
        return []
    documents, summaries = _pairs_in_folder(path)
    read = [*documents.values(), *_row_files_in(path)]
    folders = {file.parent for file in (*read, *summaries.values())}
    return list(chain.from_iterable(map(visible_files, sorted(folders)))) if read else []


def _has_subfolder(folder: Path) -> bool:
    return any(place.is_dir() and not is_hidden(place.name) for place in folder.iterdir())


def _row_files_in(folder: Path) -> list[Path]:
    """Return the files of rows of a folder without subfolders."""
    if _has_subfolder(folder):
        return []
    return [file for file in visible_files(folder, "*") if holds_rows(file.name)]


def _pairs_in_folder(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return name → file of texts and of summaries; texts need no subfolder if the folder has none."""
    documents = texts_in_folder(folder, "document")
    if not _has_subfolder(folder):
        documents = texts_by_name(folder)
    return documents, texts_in_folder(folder, "summary")


def _folder_rows(folder: Path) -> Iterator[FileRow]:
    documents, summaries = _pairs_in_folder(folder)
    summaries = with_names_of(documents, summaries)
    if alone := sorted(summaries.keys() - documents.keys()):
        raise DataError(
            "a summary without its text; add the text under the same name", summaries[alone[0]]
        )
    for name, file in documents.items():
        yield FileRow(file, None, partial(_read_texts, name, file, summaries.get(name)))
    rows = _row_files_in(folder)
    for file in rows:
        yield from read_file(file)
    for file in files_in_folder(folder):
        if file not in (*documents.values(), *summaries.values(), *rows):
            yield FileRow(
                file, None, partial(refuse_row, describe_unread_file(file), error=NoExample)
            )


def _read_texts(name: str, document: Path, summary: Path | None) -> Row:
    reference = read_text_file(summary) if summary else None
    return {"id": name, "document": read_text_file(document), "summary": reference}
