"""Folders of reports, one JSON file each, and lists that assign the reports to the splits.

This is the layout of GovReport (Huang et al. 2021): `crs/ID.json`, `gao/ID.json`, and the ids, one per line, in
`split_ids/crs_train.ids`, `crs_valid.ids`, `crs_test.ids`, and the same for `gao`.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

from longsumbench.core import Entry, FromRow, Read, Source
from longsumbench.corpora.reading.fields import LEAVE_OUT, refuse_row
from longsumbench.corpora.reading.files import (
    has_split_files,
    local_source,
    names_in_list,
    one_per_split,
    row_in_file,
)
from longsumbench.errors import DataError

_AGENCIES = ("crs", "gao")
_SPLIT_IDS = "split_ids"
_RELEASE_FOLDER = "gov-report"  # the folder in the packed release


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
    root = next((folder for folder in (path, path / _RELEASE_FOLDER) if (folder / _SPLIT_IDS).is_dir()), None)
    if root is None:
        if has_split_files(path):
            return None
        raise DataError(f"no folder {_SPLIT_IDS} with crs and gao, and no train, validation or test .jsonl in it", path)
    lists = _lists(root / _SPLIT_IDS)
    reports = [file for agency in _AGENCIES for file in sorted((root / agency).glob("*.json"))]
    entries = partial(_report_entries, root, lists, frozenset(reports), from_row)
    return local_source(root, list(chain.from_iterable(lists.values())), entries, reports)


def _lists(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Return split → the lists of both agencies."""
    crs, gao = (
        one_per_split((file.stem.removeprefix(f"{agency}_"), file) for file in folder.glob(f"{agency}_*.ids"))
        for agency in _AGENCIES
    )
    if not crs and not gao:
        raise DataError("none of the lists crs_train.ids, gao_train.ids …; fetch the release again", folder)
    for split, file in {**crs, **gao}.items():
        if not (split in crs and split in gao):
            problem = f"{file.name}, but no such list of the other agency; add it, empty if there are no such reports"
            raise DataError(problem, folder)
    return {split: (crs[split], gao[split]) for split in crs}


def _report_entries(
    root: Path, lists: dict[str, tuple[Path, Path]], reports: frozenset[Path], from_row: FromRow, full: set[str]
) -> Iterator[Entry]:
    for split, files in lists.items():
        empty = True
        for listed, number, identity in filter(None, chain.from_iterable(zip_longest(*map(_listed_reports, files)))):
            if split in full:
                break
            empty = False
            report = root / listed.stem.partition("_")[0] / f"{identity}.json"
            if report in reports:
                yield Entry(split, partial(_read_report, report, identity, from_row), report)
            else:
                problem = f"no {report.parent.name}/{report.name}; {LEAVE_OUT}"
                yield Entry(split, partial(refuse_row, "the report is missing", problem), listed, number)
        if empty and split not in full:
            raise DataError("the lists of this split are empty", files[0])


def _listed_reports(path: Path) -> Iterator[tuple[Path, int, str]]:
    return ((path, number, name.decode("utf-8", "replace")) for number, name in names_in_list(path))


def _read_report(path: Path, identity: str, from_row: FromRow) -> Read:
    return from_row({**row_in_file(path), "id": identity})
