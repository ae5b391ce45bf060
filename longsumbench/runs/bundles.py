"""Bundles: the finished runs of a dataset in one compressed file, and an index of them.

    results/bundles/<dataset>.tar.xz   runs/<dataset>/<model>/<run id>/… as in the results folder, without work/
    results/bundles/<dataset>.csv      a line for each run

The same files give the same bundle, byte for byte. A bundle is read from its unpacked copy in the cache.
"""

import csv
import hashlib
import io
import lzma
import tarfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from longsumbench.cache.artifacts import clear_partial, user_cache
from longsumbench.errors import DataError
from longsumbench.files import digest, write_atomically
from longsumbench.runs.record import RunRecord, measured_mean

ENDING = ".tar.xz"
_VERSION = 1  # of the unpacked copy in the cache
_HEADER = ("run_id", "model", "variant", "seed", "n", "ranked_by", "score", "digest")


def write_bundle(bundle: Path, runs: Sequence[tuple[Path, RunRecord]]) -> None:
    """Write folders of runs and their records as a bundle and its index, in their order."""
    content, index = io.BytesIO(), io.StringIO()
    lines = csv.writer(index, lineterminator="\n")
    lines.writerow(_HEADER)
    with tarfile.open(fileobj=content, mode="w:xz") as archive:
        for folder, record in runs:
            hashes = {}
            for path in _run_files(folder):
                name, data = path.relative_to(folder).as_posix(), path.read_bytes()
                member = tarfile.TarInfo("/".join(("runs", *folder.parts[-3:], name)))
                member.size, hashes[name] = len(data), hashlib.sha256(data).hexdigest()
                archive.addfile(member, io.BytesIO(data))
            mean = measured_mean(record, score := record.ranked_by)
            scored = "" if mean is None else f"{mean.mean:.2f}"
            facts = (record.run_id, record.model, record.variant, record.seed, record.n)
            lines.writerow([*facts, score, scored, digest(hashes)[:16]])
    write_atomically(bundle, content.getvalue())
    write_atomically(index_of(bundle), index.getvalue())


def index_of(bundle: Path) -> Path:
    """Return the path of a bundle's index."""
    return bundle.with_name(bundle.name.removesuffix(ENDING) + ".csv")


def _run_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a run, sorted; those in `work` are of this machine, and hidden ones are being written."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and parts[0] != "work" and not any(part.startswith(".") for part in parts):
            yield path


def unpack_bundle(bundle: Path) -> Path:
    """Return the folder in the cache with the content of a bundle.

    Raises:
        FileNotFoundError: the bundle does not exist.
        DataError: it is damaged, or a name in it is not that of a run's file.
    """
    with bundle.open("rb") as file:
        inputs = {"name": bundle.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest(), "version": _VERSION}
    return user_cache().get("runs", inputs, partial(_extract_files, bundle))


def _extract_files(bundle: Path, folder: Path) -> None:
    clear_partial(folder)
    home = ["runs", bundle.name.removesuffix(ENDING)]
    try:
        with lzma.open(bundle) as stream, tarfile.open(fileobj=stream) as archive:
            for member in archive:
                parts = member.name.split("/")
                if not member.isreg() or parts[:2] != home or len(parts) < 5 or {"", ".", ".."} & {*parts}:
                    raise DataError(f"{member.name!r} in this bundle is not a file of a run on {home[1]}", bundle)
                path, content = folder.joinpath(*parts), archive.extractfile(member)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read() if content else b"")
            stream.read()  # the checksums at its end
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise DataError(f"this bundle of runs is damaged ({error}): get the file again", bundle) from error
