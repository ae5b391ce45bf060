"""Bundles: the finished runs of a dataset in one compressed file, and an index of them.

    results/bundles/<dataset>.tar.xz   runs/<dataset>/<model>/<run id>/… as in the results folder, without work/
    results/bundles/<dataset>.csv      a line for each run

The same files give the same bundle, byte for byte. A bundle is for others: of a path in settings, commands and facts it
has the last name. A bundle is read from its unpacked copy in the cache.
"""

import csv
import errno
import hashlib
import io
import lzma
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench.cache.artifacts import REPAIR, clear_partial, find_damage, hash_file, user_cache
from longsumbench.errors import DataError, shorten_path
from longsumbench.files import digest, hash_regular, replaced_file, write_atomically
from longsumbench.formatting import format_bytes
from longsumbench.runs.record import VERIFIED_FILE, WORK_FOLDER, RunRecord, measured_mean
from longsumbench.runs.run_names import shorten_paths, shorten_values

ENDING = ".tar.xz"
_RUN_PARTS = 4  # names in the path of a run's folder in a bundle
_MOST_PARTS = 12  # the path of a file has fewer names
_SMALL_CONTENT = 2**28  # bytes that a bundle of any size may hold
_MOST_CONTENT = 200  # bytes that a byte of a larger bundle may hold; published bundles: 5 to 22
_MOST_AT_ONCE = 2**20  # bytes that are read at once
_IMPOSSIBLE_NAMES = (
    errno.ENAMETOOLONG,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EINVAL,
    errno.EILSEQ,
)
_HEADER = ("run_id", "model", "variant", "seed", "n", "ranked_by", "score", "digest")


def write_bundle(bundle: Path, folders: Iterable[Path]) -> None:
    """Write sorted folders of runs as a bundle and its index; each replaces an old one."""
    with replaced_file(bundle) as file, tarfile.open(fileobj=file, mode="w:xz") as archive:
        for folder in folders:
            for name in files_to_pack(folder):
                data = _read_for_others(folder, name)
                member = tarfile.TarInfo("/".join(("runs", *folder.parts[-3:], name)))
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        # A bundle that would be refused when it is read is not written.
        archive.close()
        _check_content(bundle, file.tell(), archive.offset)
    copies = unpack_bundle(bundle).glob("runs/*/*/*")
    write_atomically(index_file(bundle), format_index(sorted(copies)))


def _read_for_others(folder: Path, name: str) -> bytes:
    """Read a file of a run; of a path in its record, its settings or its origin only the last name stays."""
    path = folder / name
    data = path.read_bytes()
    if name in ("record.json", "origin.json"):
        return shorten_paths(data.decode()).encode()
    if name == "config.yaml":
        from longsumbench.runs.overrides import read_config_file  # loads Hydra

        config = OmegaConf.create()
        for key, value in shorten_values(read_config_file(path)).items():
            OmegaConf.update(config, key, value)
        return OmegaConf.to_yaml(config).encode()
    if name == VERIFIED_FILE:  # it has the hash of the record
        packed_hash = hashlib.sha256(_read_for_others(folder, "record.json")).hexdigest()
        return data.replace(hash_file(folder / "record.json").encode(), packed_hash.encode())
    return data


def format_index(folders: Iterable[Path]) -> str:
    """Return the index of a bundle: CSV with a line for each run."""
    index = io.StringIO()
    lines = csv.writer(index, lineterminator="\n")
    lines.writerow(_HEADER)
    for folder in folders:
        record = RunRecord.read(folder)
        hashes = {name: hash_file(folder / name) for name in files_to_pack(folder)}
        ranked_by = record.evaluation.ranked_by
        mean = measured_mean(record, ranked_by)
        lines.writerow(
            (
                record.run_id,
                record.key.model,
                record.variant,
                record.key.seed,
                record.evaluation.n,
                ranked_by,
                "" if mean is None else f"{mean.mean:.2f}",
                digest(hashes)[:16],
            )
        )
    return index.getvalue()


def index_file(bundle: Path) -> Path:
    """Return the path of a bundle's index."""
    return bundle.with_name(bundle.name.removesuffix(ENDING) + ".csv")


def files_to_pack(folder: Path) -> list[str]:
    """Return the names of a run's files, sorted; those in `work` are of this machine, hidden ones are being written."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths if _is_packed(path.parts))


def _is_packed(parts: Sequence[str]) -> bool:
    return parts[0] != WORK_FOLDER and not any(part.startswith(".") for part in parts)


def unpack_bundle(bundle: Path) -> Path:
    """Return the folder in the cache with the content of a bundle, which somebody else may have written.

    Raises:
        FileNotFoundError: the bundle does not exist.
        DataError: it is damaged, a name in it is not that of a run's file, its content is far too large, or the copy in
            the cache was changed.
    """
    try:
        sha256 = hash_regular(bundle)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", bundle) from error
    inputs = {"name": bundle.name, "sha256": sha256}
    folder = user_cache().get("runs", inputs, partial(_extract_files, bundle))
    if problems := find_damage(folder, in_full=True):
        raise DataError(f"this copy of packed runs is damaged ({problems[0]}); {REPAIR}", folder)
    return folder


class _Content:
    """The decompressed content of a bundle. It is a file for `tarfile`, which reads no more than a limit from it."""

    def __init__(self, bundle: Path, stream: lzma.LZMAFile) -> None:
        self.bundle, self.size = bundle, bundle.stat().st_size
        self.stream, self.tell = stream, stream.tell

    def read(self, size: int) -> bytes:
        """Read some bytes; a damaged header may ask for too many at once."""
        if size > _MOST_AT_ONCE:
            raise tarfile.ReadError(f"a header of {format_bytes(size)}")
        content = self.stream.read(size)
        _check_content(self.bundle, self.size, self.tell())
        return content

    def seek(self, position: int) -> int:
        """Skip forward to a position."""
        _check_content(self.bundle, self.size, position)
        return self.stream.seek(position)

    def read_to_end(self) -> None:
        """Read the rest: only then are the checksums compared."""
        while self.read(_MOST_AT_ONCE):
            pass


def _check_content(bundle: Path, size: int, content: int) -> None:
    limit = max(_SMALL_CONTENT, _MOST_CONTENT * size)
    if content > limit:
        problem = f"the {format_bytes(size)} of this bundle hold more than {format_bytes(limit)}"
        raise DataError(f"{problem}: runs cannot be packed so tightly", bundle)


def _extract_files(bundle: Path, folder: Path) -> None:
    clear_partial(folder)
    try:
        with lzma.open(bundle) as stream:
            content: Any = _Content(bundle, stream)
            with tarfile.open(fileobj=content, mode="r:") as archive:
                while (member := archive.next()) is not None:
                    archive.members.clear()  # type: ignore[attr-defined] # it would keep them all in memory
                    _extract_member(archive, member, bundle, folder)
            content.read_to_end()
    except DataError:
        clear_partial(folder)
        raise
    except (tarfile.TarError, lzma.LZMAError, EOFError, ValueError, RecursionError) as error:
        clear_partial(folder)
        raise DataError(
            f"this bundle of runs is damaged ({error}): get the file again", bundle
        ) from error


def _extract_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, bundle: Path, folder: Path
) -> None:
    dataset = bundle.name.removesuffix(ENDING)
    parts = member.name.split("/")
    is_file = member.isreg() and not member.issparse() and member.size >= 0
    is_inside = parts[:2] == ["runs", dataset] and not {"", ".", ".."} & {*parts}
    is_of_run = _RUN_PARTS < len(parts) < _MOST_PARTS and _is_packed(parts[_RUN_PARTS:])
    if not (is_file and is_inside and is_of_run):
        raise DataError(
            f"{_quote_name(member)} in this bundle is not a file of a run on {dataset}", bundle
        )
    path = folder.joinpath(*parts)
    # "xb": no file of the bundle replaces another.
    content = archive.extractfile(member)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            if content is not None:
                shutil.copyfileobj(content, file)
    except OSError as error:
        if error.errno not in _IMPOSSIBLE_NAMES:
            raise
        reason = (
            f"cannot be unpacked ({error.strerror}): the name is too long, or another file has it"
        )
        raise DataError(f"{_quote_name(member)} in this bundle {reason}", bundle) from error


def _quote_name(member: tarfile.TarInfo) -> str:
    return repr(shorten_path(member.name))
