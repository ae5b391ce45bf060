"""Text files: lines in UTF-8 whatever the encoding, packed or not; JSON objects; files that were written in parts."""

import codecs
import gzip
import io
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from longsumbench.core import Row
from longsumbench.corpora.loading.fields import BadRow, bad_rows_at, json_type
from longsumbench.errors import DataError
from longsumbench.formatting import format_count

_Named = TypeVar("_Named")
_MAX_NAMES = 5  # files in a message
# Earlier releases of `datasets` add a hash of the part to its name
_PART_NAME = re.compile(r"(.*?)[-_.]?(\d+)[-_]of[-_](\d+)(?:-[0-9a-f]{16})?(.*)")
_NOT_OBJECT = "not a JSON object"
_NOT_ON_LINE = f"{_NOT_OBJECT} on one line"
_NOT_UTF8, _HAS_NUL = "not UTF-8", "the character NUL"
OF_A_CUT_LINE = (_NOT_ON_LINE, _NOT_UTF8, _HAS_NUL)  # why a line that is not whole cannot be read
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # as JSON may write one


def is_hidden(name: str) -> bool:
    """Return True for a hidden file (`.DS_Store`, `._a.txt`), and for the folder that macOS adds to archives."""
    return name.startswith(".") or name == "__MACOSX"


def visible_files(folder: Path, pattern: str = "**/*") -> list[Path]:
    """Return the files in a folder and its subfolders, or those with another pattern, without hidden ones."""
    files = filter(Path.is_file, sorted(folder.glob(pattern)))
    return [file for file in files if not any(map(is_hidden, file.relative_to(folder).parts))]


def describe_unread_file(file: Path) -> str:
    """Return the kind of a file that is not read."""
    return f"files ending in {file.suffix}" if file.suffix else "files without ending"


def describe_unread_files(names: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each kind of files that are not read; `names` has those of each kind."""
    return [
        f"{kind}: {len(files):,} left out ({list_names(files)})" for kind, files in names.items()
    ]


def with_names_of(names: Iterable[str], values: Mapping[str, _Named]) -> dict[str, _Named]:
    """Return values under those of the names that have the same letters: a Mac may write "ü" as two characters."""
    by_letters = {unicodedata.normalize("NFC", name): name for name in names}
    renamed = {}
    for name, value in values.items():
        alike = by_letters.get(unicodedata.normalize("NFC", name), name)
        renamed[name if alike in values else alike] = value
    return renamed


def list_names(names: Sequence[str]) -> str:
    """Format the first names of files for a message."""
    return f"{', '.join(names[:_MAX_NAMES])}{', …' * (len(names) > _MAX_NAMES)}"


def list_shards(path: Path) -> list[Path]:
    """Return the parts of a file that was divided ("test-00000-of-00002.jsonl") in their order, or the one file.

    Raises:
        DataError: a part is missing, or there twice.
    """
    name = _PART_NAME.fullmatch(path.name)
    if name is None:
        return [path]
    parts: dict[int, Path] = {}
    for file in path.parent.iterdir():
        match = _PART_NAME.fullmatch(file.name)
        if match and match.group(1, 3, 4) == name.group(1, 3, 4):
            twin = parts.setdefault(int(match[2]), file)
            if twin != file:
                raise DataError(f"{twin.name} is the same part; remove one", file)
    if len(parts) != int(name[3]):
        problem = f"a part of {name[1]}{name[4]}: of its {int(name[3]):,} parts {len(parts):,} are in this folder"
        raise DataError(f"{problem}; add the others, or rename the file if it is whole", path)
    return [parts[number] for number in sorted(parts)]


def undivided_name(path: Path) -> str:
    """Return the name of a file in lower case, without the number of its part: "test.jsonl"."""
    return _PART_NAME.sub(lambda part: f"{part[1] or 'part'}{part[4]}", path.name).lower()


def check_is_file(path: Path) -> None:
    """Check that a path is a file: a pipe can be read only once, and perhaps never ends.

    Raises:
        DataError: there is nothing, a folder or a pipe.
    """
    if not path.exists():
        raise DataError("no such file or folder; correct the path", path)
    if not path.is_file():
        raise DataError("not a regular file; write the texts into a file first", path)


def detect_encoding(path: Path) -> str:
    """Return the encoding that a byte order mark names, or "UTF-8"."""
    with path.open("rb") as file:
        return _marked_encoding(file.read(4))


def _marked_encoding(start: bytes) -> str:
    return "UTF-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "UTF-8"


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file in UTF-8 without byte order mark, unpacked if its name ends in .gz.

    Raises:
        DataError: the file cannot be read.
    """
    check_is_file(path)
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rb") as file:
            yield from _utf8_lines(file)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"not a whole gzip file ({error}); fetch it again, or drop .gz from its name", path
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"not {error.encoding.upper()}, which its first bytes announce; save it as UTF-8", path
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from error


def _utf8_lines(file: Any) -> Iterator[bytes]:
    first = file.readline()
    encoding = _marked_encoding(first)
    lines: Iterator[bytes] = chain([first.removeprefix(codecs.BOM_UTF8)], file)
    if encoding != "UTF-8":
        file.seek(0)
        lines = _encoded_again(file, encoding)
    first = next(lines, b"")
    second = next(lines, b"")
    if second:
        yield from (first, second)
        yield from lines
    elif first:  # the only line, unless carriage returns end the lines
        first = first.removesuffix(b"\n").removesuffix(b"\r")
        yield from (line + b"\n" for line in first.split(b"\r"))


def _encoded_again(file: Any, encoding: str) -> Iterator[bytes]:
    text = io.TextIOWrapper(file, encoding, newline="\n")
    try:
        for line in text:
            yield line.encode()
    finally:
        # otherwise it would close the file
        text.detach()


def names_in_list(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, name) for the names in a list, one a line; blank lines are skipped.

    Raises:
        DataError: the file cannot be read.
    """
    for number, line in enumerate(lines_of(path), start=1):
        if name := line.strip():
            yield number, name


def decoded(content: bytes, place: str = "the line") -> str:
    """Return the text of a line, or of a file.

    Raises:
        BadRow: it is not UTF-8, or has the character NUL.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRow(
            _NOT_UTF8, f"byte {error.start + 1} of {place}; save the file as UTF-8"
        ) from error
    if (index := text.find("\0")) >= 0:
        raise BadRow(
            _HAS_NUL,
            f"character {index + 1} of {place}; remove it, or save the file as UTF-8",
        )
    return text


def decoded_lines(path: Path) -> Iterator[str]:
    """Yield the text of each line.

    Raises:
        DataError: the file cannot be read, or is not text.
    """
    for number, line in enumerate(lines_of(path), start=1):
        with bad_rows_at(path, number):
            text = decoded(line)
        yield text


def read_text_file(path: Path) -> str:
    """Return the text of a file that holds one example.

    Raises:
        BadRow: the file is not text.
        DataError: the file cannot be read.
    """
    return decoded(b"".join(lines_of(path)), "the file")


def row_in(line: bytes) -> Row:
    """Return the JSON object on a line.

    Raises:
        BadRow: the line is not UTF-8, not JSON, or not an object that can be used.
    """
    return as_object(parse_json_text(decoded(line), _NOT_ON_LINE), _NOT_ON_LINE)


def row_in_file(path: Path) -> Row:
    """Return the JSON object that a whole file holds.

    Raises:
        BadRow: the file is not UTF-8, not JSON, or not an object that can be used.
        DataError: the file cannot be read.
    """
    return as_object(parse_json_text(read_text_file(path), _NOT_OBJECT), _NOT_OBJECT)


def as_object(value: Any, problem: str) -> Row:
    """Return a JSON object.

    Raises:
        BadRow: the value is another one, as `problem` says.
    """
    if not isinstance(value, dict):
        raise BadRow(problem, f"it is {json_type(value)}")
    return value


def parse_json_text(text: str, problem: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        BadRow: it is not JSON, as `problem` says; an object has a key twice; or a text has half a character.
    """
    try:
        value = json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise BadRow(problem, f"{error}") from error
    if _SURROGATE.search(text):
        refuse_half_characters(value)
    return value


def unique_keys(pairs: Sequence[tuple[str, Any]], kind: str = "key") -> dict[str, Any]:
    """Return an object, or a row of a table.

    Raises:
        BadRow: two of its keys, or columns, have the same name.
    """
    refuse_repeated([name for name, _ in pairs], kind)
    return dict(pairs)


def refuse_repeated(names: Sequence[str], kind: str) -> None:
    """Check that the keys of an object, or the columns of a table, have different names.

    Raises:
        BadRow: two have the same name.
    """
    for name, number in Counter(names).items():
        if number > 1:
            count = format_count(number, kind)
            raise BadRow(f"a {kind} is given twice", f"{count} with the name {name!r}; keep one")


def refuse_half_characters(value: Any) -> None:
    """Check that all texts of a JSON value can be written.

    Raises:
        BadRow: a text has half a character: a surrogate of UTF-16 without its other half. The message names the field.
    """
    for field, item in value.items() if isinstance(value, dict) else enumerate([value]):
        try:
            json.dumps([field, item], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            place = f"in the field {field!a}" if isinstance(field, str) else "in the text"
            raise BadRow(
                f"half a character (a lone surrogate) {place}", "correct or remove it"
            ) from None
