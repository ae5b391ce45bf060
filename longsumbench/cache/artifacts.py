"""Finished pieces of work (a read corpus, a tokenizer, a checkpoint), found again by what decided them.

A stage lives in `<cache>/<name>/<key>`, the key being the hash of its inputs. It is built in `<key>.partial` and
renamed when done, so a folder without that suffix was whole once; its checksums tell whether it still is. A builder
finds in the partial folder what a killed one left there, and continues it or clears it. Beside it stand two files:
`<key>.lock` keeps builders apart, and `<key>.used` is held, together with others, by whoever uses the stage, so that
nobody deletes it; its time is that of the last use. Both are operating-system locks, which die with their holder.
`<cache>/layout` says that all this is so.
"""

import errno
import json
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longsumbench.cache.checksums import find_damage, replace_text, write_checksums
from longsumbench.cache.locks import exclusive_lock, hold_shared_lock, release_shared_lock
from longsumbench.errors import DataError, EnvironmentProblem, SuiteError, as_suite_error, naming_path
from longsumbench.files import digest, writable_folder
from longsumbench.progress import print_line

CACHE_VARIABLE = "LONGSUMBENCH_CACHE"
LAYOUT = 1  # of a cache folder; rises when an older version could not use what a newer one keeps there
LAYOUT_FILE = "layout"  # the file that says which it is
Build = Callable[[Path], None]


def cache_folder() -> Path:
    """Return the user's cache folder for the suite; the environment variable LONGSUMBENCH_CACHE overrides it."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("longsumbench")


def user_cache() -> "ArtifactCache":
    """Return the user's cache.

    Raises:
        EnvironmentProblem: nothing can be written there.
    """
    folder = writable_folder(cache_folder(), f"the environment variable {CACHE_VARIABLE}")
    return ArtifactCache(folder, say=print_line)


class MissingArtifact(Exception):
    """A stage is not there, and was not to be built.

    Args:
        name: its.
        folder: where it would be built.
        build: fills that folder.
    """

    def __init__(self, name: str, folder: Path, build: Build) -> None:
        super().__init__(name)
        self.folder, self.build = folder, build


@dataclass
class ArtifactCache:
    """The stages under one folder.

    Attributes:
        root: where they live.
        rebuild: names of stages that are thrown away and built again, once each.
        before: seconds since 1970; of those, only what was built, or begun, before then is thrown away.
        finished_only: whether a stage that is not there is an error, instead of being built.
        used: stage name → folder, of those this run asked for; the run links to them.
        say: told when another process holds a stage that this one waits for.
        in_use: the locks that keep what this store returned from being deleted.
        together: entered for what the builder of a stage in some folder lets other processes do with it.
    """

    root: Path
    rebuild: frozenset[str] = frozenset()
    before: float = math.inf
    used: dict[str, Path] = field(default_factory=dict)
    say: Callable[[str], None] = print
    finished_only: bool = False
    in_use: set[Path] = field(default_factory=set)
    together: Callable[[Path], AbstractContextManager[object]] = nullcontext

    def get(self, name: str, inputs: Mapping[str, Any], build: Build) -> Path:
        """Return the finished stage's folder, building it first where there is none.

        Args:
            name: what it is ("corpus", "tokenizer", "checkpoint"), in letters that a folder's name can have.
            inputs: everything that decides the outcome, JSON values; put a version number of the building code in.
            build: fills a folder, which may hold what a killed build left.

        It is not deleted by others until `release`, or until this process ends. A damaged one is set aside, which is
        said in one line, and built anew.

        Raises:
            MissingStage: it is not there, or damaged, and nothing is to be built.
            EnvironmentProblem: the cache folder was written by a version that keeps stages in another way.
        """
        key = digest({"stage": name, **inputs})[:24]
        folder = self.root / name / key
        afresh = name in self.rebuild and folder not in self.used.values()
        check_layout(self.root)
        if folder.is_dir() or not self.finished_only:
            hold_shared_lock(used := side_path(folder, "used"))
            self.in_use.add(used)
        whole = folder.is_dir() and not find_damage(folder)
        if self.finished_only and not whole:
            raise MissingArtifact(name, side_path(folder, "partial"), build)
        if not whole or (afresh and is_older(folder / "inputs.json", self.before)):
            self._build(folder, inputs, build, afresh)
        self.used[name if name not in self.used or self.used[name] == folder else f"{name}-{key[:8]}"] = folder
        return folder

    def release(self) -> None:
        """Let others delete, or build anew, what this store has returned."""
        while self.in_use:
            release_shared_lock(self.in_use.pop())

    def _build(self, folder: Path, inputs: Mapping[str, Any], build: Build, afresh: bool) -> None:
        partial, used, name = side_path(folder, "partial"), side_path(folder, "used"), folder.parent.name
        release_shared_lock(used)  # whoever has the lock may wait for all that hold it
        with locked_artifact(side_path(folder, "lock"), name, self.say):
            if afresh and is_older(folder / "inputs.json", self.before):
                self._discard_unused(folder)
            self._set_damaged_aside(folder)
            hold_shared_lock(used)
            if _is_there(folder):  # the process waited for has finished it
                return
            if afresh and is_older(partial, self.before):
                discard_folder(partial)
            partial.mkdir(exist_ok=True)
            note = json.dumps(dict(inputs), indent=1, sort_keys=True)
            with naming_path(partial):
                (partial / "inputs.json").write_text(note, encoding="utf-8")  # it is known what a killed one began
                build(partial)
                (partial / "inputs.json").write_text(note, encoding="utf-8")  # a builder may clear the folder
                write_checksums(partial)
                _flush(partial)
            _publish(partial, folder)

    def _discard_unused(self, folder: Path) -> None:
        """Delete a stage that is to be built anew, as soon as no other process uses it."""
        with self._unused(folder):
            discard_folder(folder)

    def _set_damaged_aside(self, folder: Path) -> None:
        """Rename a damaged stage as soon as no other process uses it: hours of training are not deleted unasked."""
        if problems := find_damage(folder):
            aside = side_path(folder, f"damaged-{uuid.uuid4().hex[:8]}")
            with self._unused(folder):
                folder.rename(aside)
            told = f"damaged: {folder.parent.name} {folder} ({_summed(problems)})"
            self.say(f"{told}; it is built anew, and the damaged one is kept as {aside.name}")

    def _unused(self, folder: Path) -> AbstractContextManager[None]:
        """Wait until no other process uses a stage."""
        waiting = f"waiting for other processes that use the {folder.parent.name}"
        return exclusive_lock(side_path(folder, "used"), lambda other: self.say(waiting))


def check_layout(root: Path) -> None:
    """Check that stages are kept in a cache folder as they are here; mark one that has no mark yet.

    Raises:
        EnvironmentProblem: they are not.
    """
    marker = root / LAYOUT_FILE
    found = marker.read_bytes().strip().decode("ascii", "replace") if marker.is_file() else ""
    if marker.is_dir() or (found and not found.isdecimal()):
        raise EnvironmentProblem(f"{marker} is damaged: delete it and run the same command again; the stages stay")
    if found and found != str(LAYOUT):
        told = f"the cache {root} was written by another version of longsumbench (layout {found}, here {LAYOUT})"
        advice = f"empty it with `longsumbench cache prune --all`, or choose another folder by {CACHE_VARIABLE}"
        raise EnvironmentProblem(f"{told}: {advice}")
    if not found:
        with suppress(OSError):  # where one may only read, its owner marks it; where the disk is full, the next one
            mark_layout(root)


def mark_layout(root: Path) -> None:
    """Say in a cache folder how stages are kept there."""
    root.mkdir(parents=True, exist_ok=True)
    replace_text(root / LAYOUT_FILE, f"{LAYOUT}\n")


def _summed(problems: Sequence[str]) -> str:
    """Return the first problem, and how many more there are."""
    return problems[0] + (f", and {len(problems) - 1} more" if len(problems) > 1 else "")


def side_path(folder: Path, what: str) -> Path:
    """Return what stands beside a stage: its "lock", its "used", its "partial"."""
    return folder.with_name(f"{folder.name}.{what}")


@contextmanager
def locked_artifact(path: Path, what: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock, saying for whom this process waits, and whose work it takes over.

    Args:
        path: the lock's file.
        what: is done under it, for people.
        say: shows a line.
    """
    with exclusive_lock(
        path,
        lambda other: say(f"waiting for another process: {what} ({other})"),
        lambda killed: say(f"taking over from {killed.name}, which ended before it was done: {what}"),
    ):
        yield


def is_older(path: Path, moment: float) -> bool:
    """Tell whether a file or folder is of before a moment (seconds since 1970), or not there."""
    try:
        return path.stat().st_mtime < moment
    except FileNotFoundError:
        return True


def _is_there(folder: Path) -> bool:
    """Tell whether a folder is there, also where the machine remembers that it was not (NFS): its parent is read."""
    return folder.name in os.listdir(folder.parent)


def _flush(folder: Path) -> None:
    """Wait until the files of a folder are on the disk: after a power cut, too, one that has its name is whole."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _publish(partial: Path, folder: Path) -> None:
    """Give a finished folder its name; where another process came before, which locks should prevent, take the other's.

    The two hold the same, having the same inputs.
    """
    try:
        partial.rename(folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        discard_folder(partial)


def discard_folder(folder: Path) -> None:
    """Delete a folder; others see it whole or not at all."""
    if folder.is_dir():
        folder.rename(old := side_path(folder, f"old-{uuid.uuid4().hex[:8]}"))
        shutil.rmtree(old, ignore_errors=True)  # NFS keeps open files; `longsumbench cache prune` deletes what is left


def clear_partial(folder: Path) -> None:
    """Empty a partial folder whose builder cannot continue what is there."""
    for item in folder.iterdir():
        remove_path(item)


def remove_path(path: Path, ignore_errors: bool = False) -> None:
    """Delete a file, a link or a folder.

    Args:
        path: what is deleted.
        ignore_errors: delete as much of a folder as possible.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors)
    else:
        path.unlink()  # rmtree would wait for ever at a FIFO


@contextmanager
def reading_artifact(folder: Path) -> Iterator[None]:
    """Read a finished stage; what goes wrong in that ends in one line that names it and how to be rid of it.

    Raises:
        DataError: a file of it is damaged or missing.
    """
    try:
        yield
    except Exception as error:  # those of the libraries that read have no class in common
        if isinstance(as_suite_error(error), EnvironmentProblem):
            raise
        refuse_damaged([folder], error)
        reason = (f"{error}" if isinstance(error, SuiteError) else f"{type(error).__name__}: {error}").splitlines()[0]
        advice = f"remove it by `longsumbench cache prune {folder.name}` and run the same command again"
        raise DataError(f"this finished {folder.parent.name} cannot be read ({reason}); {advice}", folder) from error


def refuse_damaged(folders: Iterable[Path], cause: Exception) -> None:
    """Read finished stages in full, after an error that a damaged one may have caused.

    Raises:
        DataError: one is damaged.
    """
    for folder in folders:
        if problems := find_damage(folder, in_full=True):
            told = f"this stage is damaged ({_summed(problems)})"
            raise DataError(f"{told}; run the same command again, which builds it anew", folder) from cause
