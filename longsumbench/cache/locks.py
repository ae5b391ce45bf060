"""Locks between processes: they end with their holder, and the lock file names it.

`filelock` holds the operating system's lock (flock). The kernel releases it when the process ends, also by SIGKILL. A
note in the file describes the last holder, for messages. On a cluster, the file system must share locks between nodes,
as NFS and Lustre do unless locks are switched off.
"""

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from longsumbench.errors import EnvironmentProblem
from longsumbench.files import open_regular
from longsumbench.formatting import format_duration

_SECONDS_UNREPORTED = 0.2  # a shorter wait is not reported


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock.

    Attributes:
        pid: 0 if unknown.
        since: when it took the lock, in seconds since 1970.
    """

    pid: int = 0
    host: str = ""
    since: float = 0.0

    @property
    def name(self) -> str:
        """Name for messages: "process 123 on node7"."""
        return f"process {self.pid} on {self.host}" if self.pid else "another process"

    def __str__(self) -> str:
        return (
            f"{self.name}, for {format_duration(time.time() - self.since)}"
            if self.pid
            else self.name
        )


@contextmanager
def exclusive_lock(
    path: Path, waiting: Callable[[Holder], None] = lambda _: None
) -> Iterator[None]:
    """Hold a lock that no other process and no other thread holds; its file is created if needed, and stays.

    `waiting` is called once with the holder if this process must wait; it may raise to give up.

    Raises:
        EnvironmentProblem: the file system does not support locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, thread_local=False, fallback_to_soft=False, on_acquired=_write_note)
    try:
        try:
            lock.acquire(timeout=_SECONDS_UNREPORTED)
        except Timeout:
            waiting(_read_note(path))
            lock.acquire()
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        problem = f"files in {path.parent} cannot be locked ({error.strerror})"
        advice = "by the environment variable LONGSUMBENCH_CACHE or by results_dir="
        raise EnvironmentProblem(
            f"{problem}: choose a folder on another file system, {advice}"
        ) from error
    try:
        yield
    finally:
        lock.release()


def lock_holder(path: Path) -> Holder | None:
    """Return the current holder of a lock, or None."""
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_note(path)
    except OSError:  # it does not exist, or is no lock
        return None
    return None


def _read_note(path: Path) -> Holder:
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # its holder is about to write it
        return Holder()


def _write_note(descriptor: int) -> None:
    note = json.dumps(asdict(Holder(os.getpid(), socket.gethostname(), time.time())))
    with suppress(OSError):  # a full disk: the note is for messages only
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, note.encode(), 0)
