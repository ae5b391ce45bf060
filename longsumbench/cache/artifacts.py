"""The cache of finished stages: read corpora, tokenizers, checkpoints.

A stage is stored in `<cache>/<name>/<key>`; the key is a hash of its inputs. It is built in `<key>.partial` and renamed
when it is complete. Its `checksums.json` shows later damage: sizes are compared when a stage is found; weights, texts
and training rows are hashed when they are read (`check_content`). A builder finds what a killed one left in the partial
folder, and continues or clears it. The builder holds the lock `<key>.lock`, which ends with its process.

The time of a stage's folder is that of its last use. Users hold no lock: a file that they opened stays readable if the
stage is deleted or built again.
"""

import json
import logging
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from longsumbench.cache.locks import exclusive_lock
from longsumbench.errors import (
    DataError,
    EnvironmentProblem,
    SuiteError,
    as_suite_error,
    naming_path,
)
from longsumbench.files import BadFile, digest, hash_regular, read_json, writable_folder

_log = logging.getLogger(__name__)

CACHE_VARIABLE = "LONGSUMBENCH_CACHE"
INPUTS, CHECKSUMS = "inputs.json", "checksums.json"  # file names
REPAIR = "delete this folder and run the same command again"
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
        """Return the folder of a finished stage; build it if needed.

        Args:
            name: "corpus", "tokenizer", "checkpoint", …; also the name of a folder.
            inputs: JSON values that decide the outcome, with a version number of the building code.
            build: fills a folder, which may contain what a killed build left.

        Raises:
            DataError: a file of the stage is missing, or has another size.
            OSError: the stage cannot be read or written.
        """
        key = digest({"stage": name, **inputs})[:24]
        folder = self.root / name / key
        rebuild = name in self.rebuild and folder not in self.folders.values()
        with suppress(OSError):  # missing, or a cache of another user
            # A use, before the check: `longsumbench cache prune` deletes what was not used.
            os.utime(folder)
        if not self._is_ready(folder, rebuild):
            with locked_artifact(side_path(folder, "lock"), name):
                os.listdir(folder.parent)  # NFS may remember that the folder was missing
                if not self._is_ready(folder, rebuild):  # another process may have finished it
                    with self._publishing(folder, inputs, rebuild) as partial:
                        build(partial)
        # a run may have two stages of a kind, such as the tokenizers of its system and its ranker
        is_second = self.folders.get(name, folder) != folder
        self.folders[f"{name}-{key[:8]}" if is_second else name] = folder
        return folder

    def _is_ready(self, folder: Path, rebuild: bool) -> bool:
        if not (folder / CHECKSUMS).is_file():
            return False
        if rebuild and is_older(folder / INPUTS, self.cutoff):
            return False
        if problems := find_damage(folder):
            raise _damage(folder, problems[0])
        return True

    @contextmanager
    def _publishing(self, folder: Path, inputs: Mapping[str, Any], rebuild: bool) -> Iterator[Path]:
        """Yield the partial folder, and rename it afterwards; the caller holds the stage's lock."""
        partial = side_path(folder, "partial")
        if rebuild and is_older(partial, self.cutoff):
            delete_folder(partial)
        partial.mkdir(exist_ok=True)
        text = json.dumps(dict(inputs), indent=1, sort_keys=True)
        with naming_path(partial):
            (partial / INPUTS).write_text(text, encoding="utf-8")  # for `longsumbench cache`
            yield partial
            (partial / INPUTS).write_text(text, encoding="utf-8")  # a builder may clear the folder
            _write_checksums(partial)
        delete_folder(folder, successor=partial)


def side_path(folder: Path, suffix: str) -> Path:
    """Return the path of a stage's "lock" or "partial"."""
    return folder.with_name(f"{folder.name}.{suffix}")


def locked_artifact(path: Path, label: str) -> AbstractContextManager[None]:
    """Hold a lock; report when this process waits for another one."""
    return exclusive_lock(
        path, lambda holder: _log.info(f"waiting for another process: {label} ({holder})")
    )


def is_older(path: Path, moment: float) -> bool:
    """Return True if a file or folder was last changed before a moment (seconds since 1970), or is missing."""
    try:
        return path.stat().st_mtime < moment
    except FileNotFoundError:
        return True


def delete_folder(folder: Path, successor: Path | None = None) -> None:
    """Delete a folder, and rename another one to it. Other processes never see a part of either."""
    old = folder.with_name(f"{folder.name.partition('.')[0]}.old-{uuid.uuid4().hex[:8]}")
    with suppress(FileNotFoundError):
        folder.rename(old)
    if successor is not None:
        successor.rename(folder)
    # NFS keeps open files; `longsumbench cache prune` deletes them later.
    shutil.rmtree(old, ignore_errors=True)


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
            raise DataError(
                f"this {folder.parent.name} was deleted from the cache; {advice}", folder
            ) from error
        # a full disk is no damage; an error of `check_content` says already how to repair it
        if isinstance(as_suite_error(error), EnvironmentProblem) or REPAIR in f"{error}":
            raise
        kind = "" if isinstance(error, SuiteError) else f"{type(error).__name__}: "
        reason = f"{kind}{error}".splitlines()[0]
        problem = f"this finished {folder.parent.name} cannot be read ({reason})"
        raise DataError(f"{problem}; {REPAIR}", folder) from error


def _damage(folder: Path, problem: str) -> DataError:
    stage = folder.resolve()  # a run links to its stages
    return DataError(f"this stage is damaged ({problem}); {REPAIR}", stage)


def _write_checksums(folder: Path) -> None:
    """Write the size and the SHA-256 of all files in a folder and its subfolders."""
    entries = {}
    for name in _file_names(folder):
        path = folder / name
        entries[name] = path.stat().st_size, hash_file(path)
    (folder / CHECKSUMS).write_text(json.dumps(entries), encoding="ascii")


def find_damage(folder: Path, in_full: bool = False) -> list[str]:
    """Return a line for each damaged file of a finished stage: its size differs or, with `in_full`, its content.

    With `in_full`, an added file is damage, too.
    """
    try:
        checksums = _read_checksums(folder)
    except BadFile as error:
        return [f"{CHECKSUMS}: {error}"]
    problems = []
    for name, (size, sha256) in checksums.items():
        if not (path := folder / name).is_file():
            problems.append(f"{name} is missing")
        elif path.stat().st_size != size:
            problems.append(f"{name} has {path.stat().st_size} bytes instead of {size}")
        elif in_full and hash_file(path) != sha256:
            problems.append(f"{name} has other content")
    if in_full:
        added = {*_file_names(folder)} - checksums.keys()
        problems += [f"{name} was added" for name in sorted(added)]
    return problems


def _file_names(folder: Path) -> list[str]:
    """Return the files in a folder and its subfolders, sorted; not the checksums."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS]
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def check_content(path: Path) -> None:
    """Check that a file of a finished stage, or the files in one of its folders, have the content they were built with.

    Files that belong to no finished stage are not checked. A file is hashed once in a process (60 ms for 100 MB).

    Raises:
        DataError: a file has other content; the message names it and how to build it again.
    """
    for stage in (path, *path.parents[:2]):
        if not (stage / CHECKSUMS).is_file():
            continue
        try:
            checksums = _read_checksums(stage)
        except BadFile as error:
            raise _damage(stage, str(error)) from error
        for name, (_, sha256) in checksums.items():
            file = stage / name
            if path in (file, file.parent) and file.is_file() and hash_file(file) != sha256:
                raise _damage(stage, f"{name} has other content")
        return


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file, which is read once in a process, until its size or time of change does."""
    state = path.stat()
    return _hash_once(path, state.st_size, state.st_ctime_ns)


@cache
def _hash_once(path: Path, size: int, modified: int) -> str:
    # Size and time are only part of the key: a changed file is hashed again.
    return hash_regular(path)


def _read_checksums(folder: Path) -> dict[str, tuple[int, str]]:
    """Return name → size and SHA-256 of the files of a finished stage; BadFile if this is damaged."""
    return read_json(folder / CHECKSUMS, dict[str, tuple[int, str]])
