"""Locks between processes: exclusive, gone with their holder, and naming it."""

import errno
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from support.processes import next_line, start_python
from support.waiting import PATIENCE

from longsumbench.cache.locks import Holder, exclusive_lock, lock_holder
from longsumbench.errors import EnvironmentProblem

HOLDS = """
import os, sys, time
from pathlib import Path
from longsumbench.cache.locks import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    child = os.fork()
    if child == 0:
        time.sleep(3600)
    print(child, flush=True)
    sys.stdin.readline()
os.kill(child, 9)
"""


def test_a_waiting_process_learns_the_holder(tmp_path: Path) -> None:
    """The holder's number, machine and time are reported once; the waiting process may give up or go on."""
    lock, waited, before = tmp_path / "deep" / "lock", list[Holder](), time.time()
    assert lock_holder(lock) is None
    process = start_python(HOLDS, lock)
    next_line(process)

    def give_up(holder: Holder) -> None:
        raise TimeoutError(holder.name)

    def let_go(holder: Holder) -> None:
        waited.append(holder)
        process.communicate("\n", timeout=PATIENCE)

    with (
        pytest.raises(TimeoutError, match=f"process {process.pid} on "),
        exclusive_lock(lock, give_up),
    ):
        pass
    since: Any = pytest.approx(time.time(), abs=PATIENCE)
    with exclusive_lock(lock, let_go):
        assert lock_holder(lock) == Holder(os.getpid(), socket.gethostname(), since)
    assert [(holder.pid, holder.host) for holder in waited] == [(process.pid, socket.gethostname())]
    assert before <= waited[0].since <= time.time()
    assert str(waited[0]).startswith(f"process {process.pid} on {socket.gethostname()}, for ")
    assert lock_holder(lock) is None


def test_a_lock_ends_with_its_holder(tmp_path: Path) -> None:
    """After SIGKILL nobody holds the lock, although a child of the holder lives."""
    lock, waited = tmp_path / "lock", list[Holder]()
    process = start_python(HOLDS, lock)
    child = int(next_line(process))
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=PATIENCE)
    os.kill(child, 0)  # it lives
    with exclusive_lock(lock, waited.append):
        assert len(waited) <= 1  # the child closes its copy as soon as it runs
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names the folder and how to choose another one; nothing runs unlocked."""

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(EnvironmentProblem) as caught, exclusive_lock(tmp_path / "lock"):
        raise AssertionError("unlocked")
    message = f"{caught.value}"
    assert f"files in {tmp_path} cannot be locked ({os.strerror(number)})" in message
    assert "LONGSUMBENCH_CACHE" in message
    assert "\n" not in message
