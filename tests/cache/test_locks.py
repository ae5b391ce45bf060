"""Locks between processes: exclusive, gone with their holder, and telling who it is."""

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.toys import next_line, start_python
from support.waiting import PATIENCE, wait_until

from longsumbench.cache.locks import UNKNOWN, Holder, exclusive_lock, lock_holder
from longsumbench.errors import EnvironmentProblem
from longsumbench.formatting import format_rough_time

HOLDS = """
import os, sys, time
from pathlib import Path
from longsumbench.cache.locks import exclusive_lock
lock, forks = Path(sys.argv[1]), len(sys.argv) > 2
with exclusive_lock(lock):
    child = os.fork() if forks else 0
    if forks and child == 0:
        time.sleep(3600)
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()
"""
COUNTS = """
import sys
from pathlib import Path
from longsumbench.cache.locks import exclusive_lock
number = Path(sys.argv[1])
for _ in range(20):
    with exclusive_lock(number.with_suffix(".lock")):
        number.write_text(str(int(number.read_text()) + 1))
"""
LOOKS = """
import sys
from pathlib import Path
from longsumbench.cache.locks import lock_holder
print(lock_holder(Path(sys.argv[1])), flush=True)
while True:
    lock_holder(Path(sys.argv[1]))
"""


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=PATIENCE)


def test_processes_take_turns(tmp_path: Path) -> None:
    """Six processes that count in one file, each under the lock, lose no count."""
    (tmp_path / "number").write_text("0")
    processes = [start_python(COUNTS, tmp_path / "number") for _ in range(6)]
    assert [process.wait(timeout=PATIENCE) for process in processes] == [0] * 6
    assert (tmp_path / "number").read_text() == "120"
    for process in processes:
        process.communicate()


def test_a_lock_says_who_has_it(tmp_path: Path) -> None:
    """While a process holds a lock, others learn its number, machine, time and command; when it is released, nobody."""
    lock = tmp_path / "deep" / "lock"
    assert lock_holder(lock) is None
    before = time.time()
    process = start_python(HOLDS, lock)
    next_line(process)
    found = lock_holder(lock)
    assert found is not None
    assert (found.pid, found.host, found.command) == (process.pid, socket.gethostname(), f"-c {lock}")
    assert before <= found.since <= time.time()
    assert str(found).startswith(f"process {process.pid} on {socket.gethostname()}, for ")
    process.communicate("\n", timeout=PATIENCE)
    assert lock_holder(lock) is None
    assert lock.read_text() == ""


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    """After SIGKILL nobody holds the lock, and the next one has it at once and is told whose work it takes over."""
    lock, told = tmp_path / "lock", list[object]()
    process = start_python(HOLDS, lock)
    next_line(process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert json.loads(lock.read_text())["pid"] == process.pid
    assert lock_holder(lock) is None
    with exclusive_lock(
        lock, waiting=lambda other: told.append("waited"), took_over=lambda left: told.append(left.pid)
    ):
        assert told == [process.pid]
    with exclusive_lock(lock, took_over=lambda left: told.append(left)):
        assert told == [process.pid]


def test_a_lock_does_not_live_on_in_a_child(tmp_path: Path) -> None:
    """A process that forked while it held a lock and was killed holds it no more, though its child lives."""
    lock = tmp_path / "lock"
    process = start_python(HOLDS, lock, "forks")
    child = int(next_line(process))
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=PATIENCE)
    os.kill(child, 0)  # it lives
    try:
        wait_until(lambda: lock_holder(lock) is None)  # once the child has come to its first line
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()


def test_who_waits_says_for_whom(tmp_path: Path) -> None:
    """A process that must wait is told once who has the lock, may give up, and else goes on when it is free."""
    lock = tmp_path / "lock"
    process = start_python(HOLDS, lock)
    next_line(process)

    def give_up(other: Holder) -> None:
        raise TimeoutError(other.name)

    with pytest.raises(TimeoutError, match=f"process {process.pid} on "), exclusive_lock(lock, give_up):
        pass
    told: list[int] = []

    def let_go(other: Holder) -> None:
        told.append(other.pid)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    with exclusive_lock(lock, let_go):
        assert told == [process.pid]
        found = lock_holder(lock)
        assert found is not None
        assert found.pid == os.getpid()
    process.communicate(timeout=PATIENCE)


def test_looking_disturbs_nobody(tmp_path: Path) -> None:
    """While another process asks all the time who holds a lock, those who take it never think that they must wait."""
    lock = tmp_path / "lock"
    lock.touch()
    looks = start_python(LOOKS, lock)
    assert next_line(looks) == "None"
    told: list[Holder] = []
    for _ in range(100):
        with exclusive_lock(lock, told.append):
            pass
    end(looks)
    assert told == []


def test_a_deleted_lock_is_no_lock(tmp_path: Path) -> None:
    """Whoever waited for a lock whose file was deleted meanwhile takes the one that stands in its place."""
    lock = tmp_path / "lock"
    process = start_python(HOLDS, lock)
    next_line(process)

    def delete(other: Holder) -> None:
        lock.unlink()
        process.communicate("\n", timeout=PATIENCE)

    with exclusive_lock(lock, delete):
        assert json.loads(lock.read_text())["pid"] == os.getpid()
        with lock.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said in one line that names the folder and how to choose another one; nothing runs unlocked."""

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(EnvironmentProblem) as caught, exclusive_lock(tmp_path / "lock"):
        raise AssertionError("unlocked")
    told = f"{caught.value}"
    assert f"files in {tmp_path} cannot be locked ({os.strerror(number)})" in told
    assert "LONGSUMBENCH_CACHE" in told
    assert "results_dir=" in told
    assert "\n" not in told
    with pytest.raises(EnvironmentProblem):
        lock_holder(tmp_path / "lock")


def test_a_torn_note_is_no_holders(tmp_path: Path) -> None:
    """What is no note, or a dead process's, in a lock that is held, is not taken for its holder."""
    lock = tmp_path / "lock"
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(timeout=PATIENCE)
    of_a_dead_one = json.dumps({"pid": dead.pid, "host": socket.gethostname(), "since": 0, "command": ""})
    for note in ("", '{"pid": 1', "[1]", of_a_dead_one):
        with exclusive_lock(lock):
            lock.write_text(note)
            assert lock_holder(lock) == UNKNOWN
    assert f"{UNKNOWN}" == "another process"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-1, "0 s"), (59.9, "59 s"), (60, "1 min"), (3_599, "59 min"), (7_200, "2 h"), (172_800, "2 days")],
)
def test_a_time_for_people(seconds: float, told: str) -> None:
    """Seconds are written in the largest unit of which there is at least one (days: two)."""
    assert format_rough_time(seconds) == told
