"""Locks between processes: they end with their holder, and name it.

The lock is the operating system's (flock) on a file. A note in the file describes the holder, for messages. A note in
an unlocked file was left by a killed process; the next holder learns whose work it continues. On a cluster, the file
system must share locks between nodes, as NFS and Lustre do unless locks are switched off.
"""

import errno
import fcntl
import json
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from filelock import lock_descriptor, unlock_descriptor

from longsumbench.errors import EnvironmentProblem
from longsumbench.files import BadFile, parse_json
from longsumbench.formatting import format_rough_time

_SECONDS_BETWEEN_TRIES = 0.05
_SECONDS_UNREPORTED = 0.2  # a shorter wait is not reported: another process may only have read the note
_COMMAND_LENGTH = 120  # characters
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_MOST_SHARED = 200  # per process, because each is an open file
_open_here: set[int] = set()  # descriptors of this process's locks
_shared_here: dict[Path, int] = {}  # its shared locks, oldest first


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock, or held it when it was killed.

    Attributes:
        pid: 0 if unknown.
        host: its machine.
        since: when it took the lock, in seconds since 1970.
        command: its command line, shortened.
    """

    pid: int
    host: str
    since: float
    command: str = ""

    @classmethod
    def here(cls) -> Self:
        """Return this process as a holder from now on."""
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:_COMMAND_LENGTH]
        return cls(os.getpid(), socket.gethostname(), time.time(), command)

    @property
    def name(self) -> str:
        """Name for messages: "process 123 on node7"."""
        return f"process {self.pid} on {self.host}" if self.pid else "another process"

    def __str__(self) -> str:
        return f"{self.name}, for {format_rough_time(time.time() - self.since)}" if self.pid else self.name

    @property
    def is_dead(self) -> bool:
        """True if the process ran on this machine and has ended; False for other machines."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False  # a process of another user
        return False


UNKNOWN = Holder(0, "", 0.0)


def _ignore(holder: Holder) -> None:
    """Default callback: does nothing."""


@contextmanager
def exclusive_lock(
    path: Path, waiting: Callable[[Holder], None] = _ignore, took_over: Callable[[Holder], None] = _ignore
) -> Iterator[None]:
    """Hold a lock that no other process and no other thread holds.

    Args:
        path: the lock file; it is created if needed, and stays.
        waiting: called once with the holder if this process must wait; it may raise to give up.
        took_over: called with the previous holder if that process was killed.

    Raises:
        EnvironmentProblem: the file system does not support locks.
    """
    descriptor, owner = _acquire(path, waiting), os.getpid()
    try:
        previous = _read_note(descriptor)
        _write_note(descriptor, path, json.dumps(asdict(Holder.here())))
        if previous is not None:
            took_over(previous)
        yield
    finally:
        if os.getpid() == owner:  # not in a forked process
            with suppress(OSError):  # a note that stays is harmless
                os.ftruncate(descriptor, 0)
            unlock_descriptor(descriptor)  # after closing alone, a forked process would keep the lock
            _close(descriptor)


def lock_holder(path: Path) -> Holder | None:
    """Return the current holder of a lock, or None; does not disturb waiting processes.

    Raises:
        EnvironmentProblem: the file system does not support locks.
    """
    ends = time.monotonic() + _SECONDS_UNREPORTED
    while True:
        try:
            descriptor = _open(path, os.O_RDONLY)
        except (FileNotFoundError, EnvironmentProblem):  # no file, or a folder or pipe, which cannot be locked
            return None
        try:
            if _lock_shared(descriptor, path):
                return None
            holder = _read_note(descriptor)
        finally:
            _close(descriptor)
        if holder is not None and not holder.is_dead:
            return holder
        if time.monotonic() > ends:  # it is locked, and the note is not its holder's
            return UNKNOWN
        time.sleep(_SECONDS_BETWEEN_TRIES / 10)  # its holder is about to write the note


def hold_shared_lock(path: Path) -> None:
    """Share a lock with other processes, and set its file's time to now; wait while a process holds it exclusively.

    The lock is held until `release_shared_lock` or the end of the process. A process holds at most 200 shared locks;
    the oldest is released first. In a read-only folder the time is not set, and a missing file is not locked.

    Raises:
        EnvironmentProblem: the file system does not support locks.
    """
    while path not in _shared_here:
        try:
            descriptor = _open_for_sharing(path)
        except OSError as error:
            if error.errno in _NOT_ALLOWED:
                return
            raise
        try:
            while not _lock_shared(descriptor, path):
                time.sleep(_SECONDS_BETWEEN_TRIES)
        except BaseException:
            _close(descriptor)
            raise
        if _is_file_at(descriptor, path):
            _shared_here[path] = descriptor
        else:
            _close(descriptor)
    while len(_shared_here) > _MOST_SHARED:
        release_shared_lock(next(iter(_shared_here)))
    with suppress(OSError):  # a file of another user, or a read-only folder
        os.utime(_shared_here[path])


def release_shared_lock(path: Path) -> None:
    """Release a shared lock, if this process holds it."""
    if (descriptor := _shared_here.pop(path, None)) is not None:
        _close(descriptor)


def is_lock_shared(path: Path) -> bool:
    """Return True if any process shares a lock, this one included."""
    try:
        descriptor = _open(path, os.O_RDWR)
    except OSError as error:
        if error.errno in (errno.ENOENT, *_NOT_ALLOWED):  # missing, or this process could not delete it anyway
            return False
        raise
    try:
        return not _lock_exclusively(descriptor, path)
    finally:
        _close(descriptor)


def _open_for_sharing(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _open(path, os.O_RDWR | os.O_CREAT)
    except OSError:
        if path.exists():
            return _open(path, os.O_RDONLY)
        raise


def _acquire(path: Path, waiting: Callable[[Holder], None]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    started, reported = time.monotonic(), False
    while True:
        descriptor = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            while not _lock_exclusively(descriptor, path):
                if not reported and time.monotonic() - started > _SECONDS_UNREPORTED:
                    holder = _read_note(descriptor)
                    waiting(UNKNOWN if holder is None or holder.is_dead else holder)
                    reported = True
                time.sleep(_SECONDS_BETWEEN_TRIES)
            if _is_file_at(descriptor, path):
                return descriptor
        except BaseException:
            _close(descriptor)
            raise
        _close(descriptor)  # the previous holder deleted the file: the lock is another file now


def _lock_exclusively(descriptor: int, path: Path) -> bool:
    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        raise _without_locks(path, error) from error


def _lock_shared(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # some file systems raise the latter
        return False
    except OSError as error:
        raise _without_locks(path, error) from error
    return True


def _without_locks(path: Path, error: OSError) -> EnvironmentProblem:
    problem = f"files in {path.parent} cannot be locked ({error.strerror})"
    advice = "choose a folder on another file system, by the environment variable LONGSUMBENCH_CACHE or by results_dir="
    return EnvironmentProblem(f"{problem}: {advice}")


def _is_file_at(descriptor: int, path: Path) -> bool:
    try:
        current, opened = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (current.st_dev, current.st_ino) == (opened.st_dev, opened.st_ino)


def _open(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)  # opening a pipe would block
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise EnvironmentProblem(f"{path} is not a regular file, and cannot be locked; remove it")
    _open_here.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    _open_here.discard(descriptor)
    os.close(descriptor)


def _close_inherited_locks() -> None:
    """Close the locks of the parent process after a fork: they would outlive their holder."""
    for descriptor in _open_here:
        with suppress(OSError):
            os.close(descriptor)
    _open_here.clear()
    _shared_here.clear()


os.register_at_fork(after_in_child=_close_inherited_locks)


def _read_note(descriptor: int) -> Holder | None:
    """Return the holder in a lock file's note; None if there is no complete note."""
    try:
        return parse_json(os.pread(descriptor, 4_096, 0), Holder)
    except BadFile:
        return None


def _write_note(descriptor: int, path: Path, text: str) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
