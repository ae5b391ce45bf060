"""The cache of finished stages: read corpora, tokenizers, checkpoints.

A stage is stored in `<cache>/<name>/<key>`; the key is a hash of its inputs. It is built in `<key>.partial` and renamed
when it is complete. Its checksums show later damage. A builder finds what a killed one left in the partial folder, and
continues or clears it. The builder holds the lock `<key>.lock`, which ends with its process.

The time of a stage's folder is that of its last use. Users hold no lock: a file that they opened stays readable if the
stage is deleted or built again.
"""

import errno
import hashlib
import json
import logging
import math
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.cache.locks import exclusive_lock
from longsumbench.errors import DataError, EnvironmentProblem, SuiteError, as_suite_error, naming_path
from longsumbench.files import digest, writable_folder

_log = logging.getLogger(__name__)

CACHE_VARIABLE = "LONGSUMBENCH_CACHE"
INPUTS = "inputs.json"  # file name
Build = Callable[[Path], None]


def cache_folder() -> Path:
    """Return the user's cache folder for the suite; the environment variable LONGSUMBENCH_CACHE overrides it."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder)
    from platformdirs import user_cache_path

    return user_cache_path("longsumbench")


def user_cache(**options: Any) -> "ArtifactCache":
    """Return the user's cache; `options` are fields of `ArtifactCache`.

    Raises:
        EnvironmentProblem: nothing can be written there.
    """
    folder = writable_folder(cache_folder(), f"the environment variable {CACHE_VARIABLE}")
    return ArtifactCache(folder, **options)


@dataclass
class ArtifactCache:
    """The stages in one cache folder.

    Attributes:
        root: the folder.
        rebuild: names of stages that are built again and replaced, once each.
        cutoff: seconds since 1970; `rebuild` replaces only what was begun before it.
        folders: stage name → folder, for the stages of this run; the run links to them.
    """

    root: Path
    rebuild: frozenset[str] = frozenset()
    cutoff: float = math.inf
    folders: dict[str, Path] = field(default_factory=dict)

    def get(self, name: str, inputs: Mapping[str, Any], build: Build) -> Path:
        """Return the folder of a finished stage; build it if needed. A damaged stage is renamed and built again.

        Args:
            name: "corpus", "tokenizer", "checkpoint", …; also the name of a folder.
            inputs: JSON values that decide the outcome, with a version number of the building code.
            build: fills a folder, which may contain what a killed build left.

        Raises:
            OSError: the stage cannot be read or written.
        """
        key = digest({"stage": name, **inputs})[:24]
        folder = self.root / name / key
        rebuild = name in self.rebuild and folder not in self.folders.values()
        with suppress(OSError):  # missing, or a cache of another user
            os.utime(folder)  # a use, before the check: `longsumbench cache prune` deletes what was not used
        if not self._is_ready(folder, rebuild):
            with locked_artifact(side_path(folder, "lock"), name):
                os.listdir(folder.parent)  # NFS may remember that the folder was missing
                if not self._is_ready(folder, rebuild):  # another process may have finished it
                    with self._publishing(folder, inputs, rebuild) as partial:
                        build(partial)
        self.folders[name if name not in self.folders or self.folders[name] == folder else f"{name}-{key[:8]}"] = folder
        return folder

    @contextmanager
    def blaming_damage(self) -> Iterator[None]:
        """After a bug, raise DataError if a damaged stage may have caused it."""
        try:
            yield
        except Exception as error:
            if as_suite_error(error) is None:
                refuse_damaged(self.folders.values(), error)
            raise

    def _is_ready(self, folder: Path, rebuild: bool) -> bool:
        if not folder.is_dir() or (rebuild and is_older(folder / INPUTS, self.cutoff)):
            return False
        return not find_damage(folder)

    @contextmanager
    def _publishing(self, folder: Path, inputs: Mapping[str, Any], rebuild: bool) -> Iterator[Path]:
        """Yield the partial folder, and rename it afterwards; the caller holds the stage's lock."""
        _set_damaged_aside(folder)
        partial = side_path(folder, "partial")
        if rebuild and is_older(partial, self.cutoff):
            delete_folder(partial)
        partial.mkdir(exist_ok=True)
        text = json.dumps(dict(inputs), indent=1, sort_keys=True)
        with naming_path(partial):
            (partial / INPUTS).write_text(text, encoding="utf-8")  # for `longsumbench cache`
            yield partial
            (partial / INPUTS).write_text(text, encoding="utf-8")  # a builder may clear the folder
            write_checksums(partial)
            _flush(partial)
        delete_folder(folder, successor=partial)


def _set_damaged_aside(folder: Path) -> None:
    """Rename a damaged stage: hours of training are never just deleted."""
    if folder.is_dir() and (problems := find_damage(folder)):
        folder.rename(aside := _unique_path(folder, "damaged"))
        damage = f"damaged: {folder.parent.name} {folder} ({_summarize_problems(problems)})"
        _log.warning(f"{damage}; it is built again, and the damaged one is kept as {aside.name}")


def _summarize_problems(problems: Sequence[str]) -> str:
    return problems[0] + (f", and {len(problems) - 1} more" if len(problems) > 1 else "")


def side_path(folder: Path, suffix: str) -> Path:
    """Return the path of a stage's "lock" or "partial"."""
    return folder.with_name(f"{folder.name}.{suffix}")


def _unique_path(folder: Path, suffix: str) -> Path:
    """Return a new path for a "damaged" or an "old" folder of a stage."""
    return folder.with_name(f"{folder.name.partition('.')[0]}.{suffix}-{uuid.uuid4().hex[:8]}")


def locked_artifact(path: Path, label: str) -> AbstractContextManager[None]:
    """Hold a lock; report when this process waits for another one."""
    return exclusive_lock(path, lambda holder: _log.info(f"waiting for another process: {label} ({holder})"))


def is_older(path: Path, moment: float) -> bool:
    """Return True if a file or folder was last changed before a moment (seconds since 1970), or is missing."""
    try:
        return path.stat().st_mtime < moment
    except FileNotFoundError:
        return True


def _flush(folder: Path) -> None:
    """Wait until the files of a folder are on the disk, so that a finished stage survives a power cut."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def delete_folder(folder: Path, successor: Path | None = None) -> None:
    """Delete a folder, and rename another one to it. Other processes never see a part of either."""
    old = _unique_path(folder, "old")
    with suppress(FileNotFoundError):
        folder.rename(old)
    if successor is not None:
        successor.rename(folder)
    shutil.rmtree(old, ignore_errors=True)  # NFS keeps open files; `longsumbench cache prune` deletes them later


def clear_partial(folder: Path) -> None:
    """Empty a partial folder whose content cannot be continued."""
    for item in folder.iterdir():
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink()


@contextmanager
def reading_artifact(folder: Path) -> Iterator[None]:
    """Turn errors while reading a finished stage into one line that says how to delete it.

    Raises:
        DataError: a file of the stage is damaged or missing.
    """
    try:
        yield
    except Exception as error:  # the libraries' errors have no common class
        if not folder.is_dir():
            advice = "run the same command again to build it"
            raise DataError(f"this {folder.parent.name} was deleted from the cache; {advice}", folder) from error
        if isinstance(as_suite_error(error), EnvironmentProblem):
            raise
        refuse_damaged([folder], error)
        reason = (f"{error}" if isinstance(error, SuiteError) else f"{type(error).__name__}: {error}").splitlines()[0]
        advice = f"remove it by `longsumbench cache prune {folder.name}` and run the same command again"
        raise DataError(f"this finished {folder.parent.name} cannot be read ({reason}); {advice}", folder) from error


def refuse_damaged(folders: Iterable[Path], cause: Exception) -> None:
    """Read stages in full after an error that a damaged one may have caused.

    Raises:
        DataError: a stage is damaged.
    """
    for folder in folders:
        if problems := find_damage(folder, in_full=True) if folder.is_dir() else []:
            damage = f"this stage is damaged ({_summarize_problems(problems)})"
            raise DataError(f"{damage}; run the same command again to rebuild it", folder) from cause


CHECKSUMS = "checksums"  # file name
_DAMAGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # errors for a file that was deleted or replaced
_UNKNOWN_TIME = -1  # no file has this time, so the next check reads the file


class _Entry(NamedTuple):
    """A file's size in bytes, time of the last change in nanoseconds, and SHA-256 in hexadecimal."""

    size: int
    time: int
    sha256: str


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in a folder and its subfolders."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != CHECKSUMS]
    _write(folder, {path.relative_to(folder).as_posix(): _entry(path) for path in files})


def find_damage(folder: Path, in_full: bool = False) -> list[str]:
    """Return a line for each damaged file of a finished stage.

    With `in_full`, every file is read, even if its size and time are unchanged. New times are stored. The next check
    reads a damaged file again.

    Raises:
        OSError: a file cannot be read, but may be undamaged (no permission).
    """
    if (listed := _read_checksums(folder)) is None:
        return [f"{CHECKSUMS} is missing or damaged"]
    problems, entries = [], {}
    for name, entry in listed.items():
        problem, entries[name] = _compare(folder / name, entry, in_full)
        problems += [f"{name} {problem}"] if problem else []
    if entries != listed:
        with suppress(OSError):  # a read-only folder
            _write(folder, entries)
    return problems


def _compare(path: Path, entry: _Entry, in_full: bool) -> tuple[str, _Entry]:
    """Return the problem of a file, "" if there is none, and the entry for the next check."""
    reread = entry._replace(time=_UNKNOWN_TIME)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "is not a file", reread
        if status.st_size != entry.size:
            return f"has {status.st_size} bytes instead of {entry.size}", reread
        if in_full or status.st_mtime_ns != entry.time:
            new_entry = _entry(path)
            return ("", new_entry) if new_entry.sha256 == entry.sha256 else ("has other content", reread)
    except OSError as error:
        if error.errno not in _DAMAGED:
            raise
        return f"cannot be found ({error.strerror})", reread
    return "", entry


def _entry(path: Path) -> _Entry:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())  # before reading: the next check finds a change that happens meanwhile
        return _Entry(status.st_size, status.st_mtime_ns, hashlib.file_digest(file, "sha256").hexdigest())


def _read_checksums(folder: Path) -> dict[str, _Entry] | None:
    """Return file → entry; None if the checksums are missing or damaged."""
    path = folder / CHECKSUMS
    try:
        listed = json.loads(path.read_text(encoding="ascii")) if path.is_file() else {}
        return {name: _Entry(*entry) for name, entry in listed.items()} or None
    except (ValueError, TypeError, AttributeError):
        return None


def _write(folder: Path, entries: Mapping[str, _Entry]) -> None:
    """Write the file atomically. Another process may delete the folder meanwhile; it is never created again."""
    temporary = folder / f".{CHECKSUMS}-{uuid.uuid4().hex}"
    try:
        temporary.write_text(json.dumps(entries), encoding="ascii")
        temporary.replace(folder / CHECKSUMS)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
