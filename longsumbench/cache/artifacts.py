"""The cache of finished stages: read corpora, tokenizers, checkpoints.

A stage is stored in `<cache>/<name>/<key>`; the key is a hash of its inputs. It is built in `<key>.partial` and renamed
when it is complete. Its checksums show later damage. A builder finds what a killed one left in the partial folder, and
continues or clears it.

Each stage has two lock files, held by the operating system until their process ends. The builder holds `<key>.lock`
exclusively. Every user shares `<key>.used`, so that no process deletes the stage; its time is that of the last use.
`<cache>/layout` contains the version of this layout.
"""

import errno
import json
import logging
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longsumbench.cache.checksums import find_damage, replace_text, write_checksums
from longsumbench.cache.locks import exclusive_lock, hold_shared_lock, release_shared_lock
from longsumbench.errors import DataError, EnvironmentProblem, SuiteError, as_suite_error, naming_path
from longsumbench.files import digest, writable_folder

_log = logging.getLogger(__name__)

CACHE_VARIABLE = "LONGSUMBENCH_CACHE"
LAYOUT = 1  # of a cache folder; increases when older versions cannot read the stages
LAYOUT_FILE = "layout"
Build = Callable[[Path], None]


def cache_folder() -> Path:
    """Return the user's cache folder for the suite; the environment variable LONGSUMBENCH_CACHE overrides it."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
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
        rebuild: names of stages that are deleted and built again, once each.
        before: seconds since 1970; `rebuild` deletes only what was begun before.
        used: stage name → folder, for the stages of this run; the run links to them.
        in_use: paths of the shared locks that protect returned stages from deletion.
    """

    root: Path
    rebuild: frozenset[str] = frozenset()
    before: float = math.inf
    used: dict[str, Path] = field(default_factory=dict)
    in_use: set[Path] = field(default_factory=set)

    def get(self, name: str, inputs: Mapping[str, Any], build: Build) -> Path:
        """Return the folder of a finished stage; build it if needed.

        Other processes cannot delete it until `release` or the end of this process. A damaged stage is renamed and
        built again.

        Args:
            name: "corpus", "tokenizer", "checkpoint", …; also the name of a folder.
            inputs: JSON values that decide the outcome, with a version number of the building code.
            build: fills a folder, which may contain what a killed build left.

        Raises:
            EnvironmentProblem: another version of the suite wrote the cache in another layout.
        """
        key = digest({"stage": name, **inputs})[:24]
        folder = self.root / name / key
        rebuild = name in self.rebuild and folder not in self.used.values()
        check_layout(self.root)
        hold_shared_lock(used := side_path(folder, "used"))
        self.in_use.add(used)
        intact = folder.is_dir() and not find_damage(folder)
        if not intact or (rebuild and is_older(folder / "inputs.json", self.before)):
            with self._building(folder, inputs, rebuild) as partial:
                if partial is not None:
                    build(partial)
        self.used[name if name not in self.used or self.used[name] == folder else f"{name}-{key[:8]}"] = folder
        return folder

    def release(self) -> None:
        """Allow other processes to delete or rebuild the stages that this cache returned."""
        while self.in_use:
            release_shared_lock(self.in_use.pop())

    @contextmanager
    def _building(self, folder: Path, inputs: Mapping[str, Any], rebuild: bool) -> Iterator[Path | None]:
        """Yield a folder to fill, and publish it afterwards; yield None if another process has finished the stage."""
        partial, used, name = side_path(folder, "partial"), side_path(folder, "used"), folder.parent.name
        release_shared_lock(used)  # the builder may wait until nobody shares it
        with locked_artifact(side_path(folder, "lock"), name):
            if rebuild and is_older(folder / "inputs.json", self.before):
                self._discard_unused(folder)
            self._set_damaged_aside(folder)
            hold_shared_lock(used)
            if _exists(folder):
                yield None
                return
            if rebuild and is_older(partial, self.before):
                discard_folder(partial)
            partial.mkdir(exist_ok=True)
            text = json.dumps(dict(inputs), indent=1, sort_keys=True)
            with naming_path(partial):
                (partial / "inputs.json").write_text(text, encoding="utf-8")  # for `longsumbench cache`
                yield partial
                (partial / "inputs.json").write_text(text, encoding="utf-8")  # a builder may clear the folder
                write_checksums(partial)
                _flush(partial)
            _publish(partial, folder)

    def _discard_unused(self, folder: Path) -> None:
        with self._unused(folder):
            discard_folder(folder)

    def _set_damaged_aside(self, folder: Path) -> None:
        """Rename a damaged stage as soon as no other process uses it; hours of training are never just deleted."""
        if problems := find_damage(folder):
            aside = side_path(folder, f"damaged-{uuid.uuid4().hex[:8]}")
            with self._unused(folder):
                folder.rename(aside)
            damage = f"damaged: {folder.parent.name} {folder} ({_summary(problems)})"
            _log.info(f"{damage}; it is built again, and the damaged one is kept as {aside.name}")

    def _unused(self, folder: Path) -> AbstractContextManager[None]:
        message = f"waiting for other processes that use the {folder.parent.name}"
        return exclusive_lock(side_path(folder, "used"), lambda other: _log.info(message))


def check_layout(root: Path) -> None:
    """Check the layout of a cache folder; write the layout file if it is missing.

    Raises:
        EnvironmentProblem: the folder has another layout.
    """
    marker = root / LAYOUT_FILE
    found = marker.read_bytes().strip().decode("ascii", "replace") if marker.is_file() else ""
    if marker.is_dir() or (found and not found.isdecimal()):
        raise EnvironmentProblem(f"{marker} is damaged: delete it and run the same command again; the stages stay")
    if found and found != str(LAYOUT):
        problem = f"the cache {root} was written by another version of longsumbench (layout {found}, here {LAYOUT})"
        advice = f"empty it with `longsumbench cache prune --all`, or choose another folder by {CACHE_VARIABLE}"
        raise EnvironmentProblem(f"{problem}: {advice}")
    if not found:
        with suppress(OSError):  # read-only folder or full disk: a later process writes it
            mark_layout(root)


def mark_layout(root: Path) -> None:
    """Write the layout file of a cache folder."""
    root.mkdir(parents=True, exist_ok=True)
    replace_text(root / LAYOUT_FILE, f"{LAYOUT}\n")


def _summary(problems: Sequence[str]) -> str:
    return problems[0] + (f", and {len(problems) - 1} more" if len(problems) > 1 else "")


def side_path(folder: Path, what: str) -> Path:
    """Return the path of a stage's "lock", "used" or "partial"."""
    return folder.with_name(f"{folder.name}.{what}")


@contextmanager
def locked_artifact(path: Path, what: str) -> Iterator[None]:
    """Hold a lock; report when this process waits for another one or continues the work of a killed one."""
    with exclusive_lock(
        path,
        lambda other: _log.info(f"waiting for another process: {what} ({other})"),
        lambda killed: _log.info(f"taking over from {killed.name}, which ended before it was done: {what}"),
    ):
        yield


def is_older(path: Path, moment: float) -> bool:
    """Return True if a file or folder was last changed before a moment (seconds since 1970), or is missing."""
    try:
        return path.stat().st_mtime < moment
    except FileNotFoundError:
        return True


def _exists(folder: Path) -> bool:
    return folder.name in os.listdir(folder.parent)  # NFS may cache that the folder was missing


def _flush(folder: Path) -> None:
    """Wait until the files of a folder are on the disk, so that a finished stage survives a power cut."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _publish(partial: Path, folder: Path) -> None:
    """Rename a finished folder; if another process was faster, keep its folder, which has the same content."""
    try:
        partial.rename(folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        discard_folder(partial)


def discard_folder(folder: Path) -> None:
    """Delete a folder; other processes never see a part of it."""
    if folder.is_dir():
        folder.rename(old := side_path(folder, f"old-{uuid.uuid4().hex[:8]}"))
        shutil.rmtree(old, ignore_errors=True)  # NFS keeps open files; `longsumbench cache prune` deletes them later


def clear_partial(folder: Path) -> None:
    """Empty a partial folder whose content cannot be continued."""
    for item in folder.iterdir():
        remove_path(item)


def remove_path(path: Path, ignore_errors: bool = False) -> None:
    """Delete a file, a link or a folder; with `ignore_errors`, as much of a folder as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors)
    else:
        path.unlink()  # rmtree would block at a FIFO


@contextmanager
def reading_artifact(folder: Path) -> Iterator[None]:
    """Turn errors while reading a finished stage into one line that says how to delete it.

    Raises:
        DataError: a file of the stage is damaged or missing.
    """
    try:
        yield
    except Exception as error:  # the libraries' errors have no common class
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
        if problems := find_damage(folder, in_full=True):
            damage = f"this stage is damaged ({_summary(problems)})"
            raise DataError(f"{damage}; run the same command again to rebuild it", folder) from cause
