"""Locks between processes: they die with their holder, and say who it is.

The operating system's lock (flock) on a file decides; the note in the file only tells. A note that stands in a file
nobody holds was left by a process that was killed: whoever takes the lock next is told whose work it takes over. On a
cluster the folder's file system must carry locks from node to node, as NFS and Lustre do unless they are switched off.
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
from longsumbench.files import parse_json
from longsumbench.formatting import format_rough_time

_SECONDS_BETWEEN_TRIES = 0.05
_SECONDS_UNSAID = 0.2  # a shorter wait is none: somebody only looked who holds the lock
_COMMAND_LENGTH = 120  # characters
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_MOST_SHARED = 200  # by one process at once, for each is an open file
_NOTE = {"pid": int, "host": str, "since": float, "command": str}  # the shape of the note in a lock's file
_open_here: set[int] = set()  # descriptors of this process's locks
_shared_here: dict[Path, int] = {}  # those it shares with others, the longest held first


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, or held it when it was killed.

    Attributes:
        pid: the process; 0 when it is not known.
        host: its machine.
        since: when it took the lock, seconds since 1970.
        command: what was typed, shortened.
    """

    pid: int
    host: str
    since: float
    command: str = ""

    @classmethod
    def here(cls) -> Self:
        """Return this process, from now on."""
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:_COMMAND_LENGTH]
        return cls(os.getpid(), socket.gethostname(), time.time(), command)

    @property
    def name(self) -> str:
        """It, for people: "process 123 on node7"."""
        return f"process {self.pid} on {self.host}" if self.pid else "another process"

    def __str__(self) -> str:
        return f"{self.name}, for {format_rough_time(time.time() - self.since)}" if self.pid else self.name

    @property
    def is_dead(self) -> bool:
        """Whether it ran on this machine and does not any more; of another machine nothing can be told."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False  # somebody else's
        return False


UNKNOWN = Holder(0, "", 0.0)


def _say_nothing(holder: Holder) -> None:
    """Stand where nobody is to be told."""


@contextmanager
def exclusive_lock(
    path: Path, waiting: Callable[[Holder], None] = _say_nothing, took_over: Callable[[Holder], None] = _say_nothing
) -> Iterator[None]:
    """Hold a lock that no other process, and no other thread, holds at the same time.

    Args:
        path: the lock's file; it is made if need be, and stays.
        waiting: told once who has it when this process must wait; it may raise to give up.
        took_over: told who held it when it was killed, once this process has the lock.

    Raises:
        EnvironmentProblem: the file system knows no locks.
    """
    descriptor, owner = _acquired(path, waiting), os.getpid()
    try:
        left = _noted(descriptor)
        _note(descriptor, path, json.dumps(asdict(Holder.here())))
        if left is not None:
            took_over(left)
        yield
    finally:
        if os.getpid() == owner:  # not so in a process that forked off
            with suppress(OSError):  # what is left is a note in a free file, no more
                os.ftruncate(descriptor, 0)
            unlock_descriptor(descriptor)  # closing alone would leave it to whoever inherited the descriptor
            _close(descriptor)


def lock_holder(path: Path) -> Holder | None:
    """Return who holds a lock right now; None when nobody does. Whoever waits for it is not disturbed.

    Raises:
        EnvironmentProblem: the file system knows no locks.
    """
    ends = time.monotonic() + _SECONDS_UNSAID
    while True:
        try:
            descriptor = _opened(path, os.O_RDONLY)
        except (FileNotFoundError, EnvironmentProblem):  # no such file, or a folder or pipe, which nobody can hold
            return None
        try:
            if _lock_shared(descriptor, path):
                return None
            noted = _noted(descriptor)
        finally:
            _close(descriptor)
        if noted is not None and not noted.is_dead:
            return noted
        if time.monotonic() > ends:  # it is held, and the note is not its holder's
            return UNKNOWN
        time.sleep(_SECONDS_BETWEEN_TRIES / 10)  # its holder is about to write it


def hold_shared_lock(path: Path) -> None:
    """Hold a lock together with others, and set its file's time to now.

    It is held until `release_shared_lock`, or until the process ends.

    Waits while a process has it alone. Of more than `_MOST_SHARED` locks, the first is given up. In a folder where this
    process may only read, it is held without its time being set, or not at all where the file is not there yet.

    Raises:
        EnvironmentProblem: the file system knows no locks.
    """
    while path not in _shared_here:
        try:
            descriptor = _opened_for_sharing(path)
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
        if _stands_at(descriptor, path):
            _shared_here[path] = descriptor
        else:
            _close(descriptor)
    while len(_shared_here) > _MOST_SHARED:
        release_shared_lock(next(iter(_shared_here)))
    with suppress(OSError):  # somebody else's, or where one may only read
        os.utime(_shared_here[path])


def release_shared_lock(path: Path) -> None:
    """Give up a lock that this process shares; nothing when it does not."""
    if (descriptor := _shared_here.pop(path, None)) is not None:
        _close(descriptor)


def is_lock_shared(path: Path) -> bool:
    """Tell whether any process shares a lock right now, this one included."""
    try:
        descriptor = _opened(path, os.O_RDWR)
    except OSError as error:
        if error.errno in (errno.ENOENT, *_NOT_ALLOWED):  # nothing there, or nothing that this process could delete
            return False
        raise
    try:
        return not _lock_exclusively(descriptor, path)
    finally:
        _close(descriptor)


def _opened_for_sharing(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _opened(path, os.O_RDWR | os.O_CREAT)
    except OSError:
        if path.exists():
            return _opened(path, os.O_RDONLY)
        raise


def _acquired(path: Path, waiting: Callable[[Holder], None]) -> int:
    """Return a descriptor that holds the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    started, told = time.monotonic(), False
    while True:
        descriptor = _opened(path, os.O_RDWR | os.O_CREAT)
        try:
            while not _lock_exclusively(descriptor, path):
                if not told and time.monotonic() - started > _SECONDS_UNSAID:
                    noted = _noted(descriptor)
                    waiting(UNKNOWN if noted is None or noted.is_dead else noted)
                    told = True
                time.sleep(_SECONDS_BETWEEN_TRIES)
            if _stands_at(descriptor, path):
                return descriptor
        except BaseException:
            _close(descriptor)
            raise
        _close(descriptor)  # the file was deleted by whoever held it: the lock is another file now


def _lock_exclusively(descriptor: int, path: Path) -> bool:
    """Lock an open file for this process alone; False when another one has it.

    Raises:
        EnvironmentProblem: the file system knows no locks.
    """
    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        raise _without_locks(path, error) from error


def _lock_shared(descriptor: int, path: Path) -> bool:
    """Lock an open file together with others that do so; False when somebody has it alone.

    Raises:
        EnvironmentProblem: the file system knows no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter is what some file systems call it
        return False
    except OSError as error:
        raise _without_locks(path, error) from error
    return True


def _without_locks(path: Path, error: OSError) -> EnvironmentProblem:
    problem = f"files in {path.parent} cannot be locked ({error.strerror})"
    advice = "choose a folder on another file system, by the environment variable LONGSUMBENCH_CACHE or by results_dir="
    return EnvironmentProblem(f"{problem}: {advice}")


def _stands_at(descriptor: int, path: Path) -> bool:
    """Tell whether an open file still has its name."""
    try:
        there, here = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _opened(path: Path, how: int) -> int:
    descriptor = os.open(path, how | os.O_NONBLOCK, 0o666)  # a pipe in place of the file would be waited for
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise EnvironmentProblem(f"{path} is not a regular file, and cannot be locked; remove it")
    _open_here.add(descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    """Close a lock's file, and with it give up the lock."""
    _open_here.discard(descriptor)
    os.close(descriptor)


def _let_go() -> None:
    """Close the locks of the process from which this one was forked: they would outlive their holder in it."""
    for descriptor in _open_here:
        with suppress(OSError):
            os.close(descriptor)
    _open_here.clear()
    _shared_here.clear()


os.register_at_fork(after_in_child=_let_go)


def _noted(descriptor: int) -> Holder | None:
    """Return whose note stands in a lock's file; None when there is none, or it is being written."""
    try:
        note = parse_json(os.pread(descriptor, 4_096, 0).decode("utf-8"), _NOTE)
    except ValueError:
        return None
    return Holder(**{name: note[name] for name in _NOTE})


def _note(descriptor: int, path: Path, text: str) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
