"""Folders of reports, one JSON file each, and lists that assign the reports to the splits.

This is the layout of GovReport (Huang et al. 2021): `crs/ID.json`, `gao/ID.json`, and the ids, one per line, in
`split_ids/crs_train.ids`, `crs_valid.ids`, `crs_test.ids`, and the same for `gao`.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.api import Entry, Example, FromRow, Source, Thinned
from longsumbench.corpora.reading.fields import LEAVE_OUT, BadRow
from longsumbench.corpora.reading.files import ORDER, SPLITS, is_split_file, lines_of, row_in_file
from longsumbench.corpora.reading.rows import as_examples
from longsumbench.errors import DataError

_AGENCIES = ("crs", "gao")
_LISTS = "split_ids"
_RELEASE_FOLDER = "gov-report"  # the folder in the packed release
_LIST = re.compile(rf"({'|'.join(_AGENCIES)})_({'|'.join(SPLITS)})\.ids")


class _ListedReport(NamedTuple):
    """A report that a list names, at `line` of the list `path`; `folder` has the agency's reports."""

    identity: str
    path: Path
    line: int
    folder: Path


def reports_source(path: Path, from_row: FromRow) -> Source | None:
    """Return the reports that the lists name; others are ignored.

    They come in the order of the lists, alternating between the agencies, so a limit takes equally many of both.

    Args:
        path: the folder with `crs`, `gao` and `split_ids`, or one that contains it as `gov-report`.
        from_row: a report's JSON object → Example.

    Returns:
        None for a file, and for a folder that has only JSON lines.

    Raises:
        DataError: there are no lists, one is missing or there twice, or a folder cannot be read.
    """
    if not path.is_dir():
        return None
    root = next((folder for folder in (path, path / _RELEASE_FOLDER) if (folder / _LISTS).is_dir()), None)
    if root is None:
        if any(map(is_split_file, path.iterdir())):
            return None
        raise DataError(f"no folder {_LISTS} with crs and gao, and no train, validation or test .jsonl in it", path)
    lists = _lists(root / _LISTS)
    names = [f"{_LISTS}/{file.name}" for split in lists.values() for file in split.values()]
    reports = {agency: _report_files(root / agency) for agency in _AGENCIES}
    inputs = {"folder": str(root.resolve()), "lists": _file_stats(lists), "content": _digest(reports)}
    facts = {"source": "local files", "files": names}
    known = {agency: frozenset(files) for agency, files in reports.items()}
    return Source(inputs, facts, partial(_entries, lists, known, from_row))


def _lists(folder: Path) -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.iterdir()):
        if match := _LIST.fullmatch(file.name):
            split = found.setdefault(SPLITS[match[2]], {})
            if before := split.get(match[1]):
                raise DataError(f"two lists for one split, {before.name} and {file.name}; remove one", folder)
            split[match[1]] = file
    if not found:
        raise DataError("none of the lists crs_train.ids, gao_train.ids …; fetch the release again", folder)
    for files in found.values():
        for agency in _AGENCIES:
            if agency not in files:
                (other,) = files.values()
                name = agency + other.name.removeprefix(other.name.partition("_")[0])
                raise DataError(f"{other.name}, but no {name}; add it, empty if there are no such reports", folder)
    return {split: {agency: found[split][agency] for agency in _AGENCIES} for split in ORDER if split in found}


def _report_files(folder: Path) -> dict[str, tuple[int, int]]:
    """Return file name → (size, time of change) of the reports in a folder; empty if it does not exist."""
    if not folder.is_dir():
        return {}
    try:
        with os.scandir(folder) as entries:
            files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".json")]
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", folder) from error
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in sorted(files)}


def _file_stats(lists: dict[str, dict[str, Path]]) -> list[list[Any]]:
    files = chain.from_iterable(split.values() for split in lists.values())
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]


def _digest(reports: dict[str, dict[str, tuple[int, int]]]) -> str:
    return hashlib.sha256(json.dumps(reports).encode("utf-8", "surrogatepass")).hexdigest()


def _entries(
    lists: dict[str, dict[str, Path]], known: dict[str, frozenset[str]], from_row: FromRow, full: set[str]
) -> Iterator[Entry]:
    for split, files in lists.items():
        in_turn = chain.from_iterable(zip_longest(*(_listed_reports(file, agency) for agency, file in files.items())))
        empty = True
        for named in filter(None, in_turn):
            if split in full:
                break
            empty = False
            report = named.folder / f"{named.identity}.json"
            if report.name in known[named.folder.name]:
                yield Entry(split, partial(_read, report, named.identity, from_row), report)
            else:
                yield Entry(split, partial(_raise_missing, report), named.path, named.line)
        if empty and split not in full:
            raise DataError("the lists of this split are empty", files[_AGENCIES[0]])


def _listed_reports(path: Path, agency: str) -> Iterator[_ListedReport]:
    folder = path.parent.parent / agency
    for number, line in enumerate(lines_of(path), start=1):
        if identity := line.decode("utf-8", "replace").strip():
            yield _ListedReport(identity, path, number, folder)


def _read(path: Path, identity: str, from_row: FromRow) -> tuple[Example | Thinned, ...]:
    return as_examples(from_row({**row_in_file(path), "id": identity}))


def _raise_missing(report: Path) -> tuple[Example, ...]:
    raise BadRow("the report is missing", f"no {report.parent.name}/{report.name}; {LEAVE_OUT}")
