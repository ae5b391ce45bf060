"""Processes for tests that start in milliseconds: each is forked from one that has imported the suite and torch.

`start_command` is the door. Tests of imports, of start-up time and of Python's own flags start a real interpreter.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from support.paths import TESTS
from support.waiting import PATIENCE

_LONGEST_REQUEST = 1 << 20  # bytes
_PAIR = (socket.AF_UNIX, socket.SOCK_SEQPACKET)  # what is sent at once is received at once
_SERVER = "import support.processes as p; p.run_request(p.serve_requests({}))"


def start_command(*words: object, **options: Any) -> "ForkedProcess":
    """Start `longsumbench` with these words; `options` are those of `ForkedProcess`."""
    return ForkedProcess(["longsumbench", *map(str, words)], **options)


def start_python(code: str, *words: object, **options: Any) -> "ForkedProcess":
    """Start Python on some code, with words on its command line."""
    return ForkedProcess(["-c", *map(str, words)], code, **options)


def start_together(
    count: int, code: str, *words: object, env: Mapping[str, str]
) -> "list[ForkedProcess]":
    """Start Python on some code in several processes of one run, as torchrun does."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    place = {"MASTER_ADDR": "localhost", "MASTER_PORT": f"{port}", "OMP_NUM_THREADS": "1"}
    sizes = {"WORLD_SIZE": f"{count}", "LOCAL_WORLD_SIZE": f"{count}"}
    return [
        start_python(
            code,
            *words,
            env={**env, **place, **sizes, "RANK": f"{rank}", "LOCAL_RANK": f"{rank}"},
        )
        for rank in range(count)
    ]


def run_python(code: str, *words: object, **options: Any) -> str:
    """Run Python on some code to its end, without an error; return what it printed."""
    process = start_python(code, *words, **options)
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return printed


def is_alive(process: int) -> bool:
    """Return True for a process that runs; one that ended may wait for its parent."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def next_line(process: "ForkedProcess") -> str:
    """Wait for the next line that a process prints, and return it."""
    line = process.stdout.readline()
    while not line.endswith("\n"):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
        line += process.stdout.readline()
    return line.strip()


class ForkedProcess:
    """A process with those parts of `subprocess.Popen` that tests use.

    Args:
        argv: `sys.argv` of the process.
        code: what it runs; None: the module `argv[0]`.
        env: its environment; default: that of the test. Folders of PYTHONPATH are found first.
        cwd: its working folder; default: that of the test.

    Attributes:
        pid: its number.
        returncode: the exit code, or minus the signal that ended it; None before `wait` or `poll` has seen its end.
        stdin: it reads what is written here.
        stdout: what it has printed so far.
        stderr: what it has written there so far.
    """

    def __init__(
        self,
        argv: list[str],
        code: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        environment = dict(os.environ if env is None else env)
        request = {"argv": argv, "code": code, "env": environment, "cwd": str(cwd or Path.cwd())}
        self.returncode: int | None = None
        self._reports, its_reports = socket.socketpair(*_PAIR)
        its_stdin, stdin = os.pipe()
        self.stdin = os.fdopen(stdin, "w", encoding="utf-8")
        its_stdout, self.stdout = _open_twice()
        its_stderr, self.stderr = _open_twice()
        descriptors = [its_stdin, its_stdout, its_stderr, its_reports.detach()]
        socket.send_fds(_start_server(), [json.dumps(request).encode()], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.pid = int(self._reports.recv(100))
        atexit.register(self.send_signal, signal.SIGKILL)  # a failed test leaves no process

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait for the end; return the exit code."""
        if self.returncode is None:
            if not select.select([self._reports], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self.returncode = int(self._reports.recv(100))
            self._unread = self.stdout.read(), self.stderr.read()
            for opened in (self._reports, self.stdin, self.stdout, self.stderr):
                opened.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def communicate(self, text: str = "", timeout: float = PATIENCE) -> tuple[str, str]:
        """Write a text to its stdin, and wait for its end; return what it wrote and nobody has read."""
        if self.returncode is None:
            self.stdin.write(text)
            self.stdin.close()
        self.wait(timeout)
        return self._unread

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it lives."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _open_twice() -> tuple[int, IO[str]]:
    """Return a descriptor to write to a new file, which has no name, and the file opened to read."""
    with tempfile.NamedTemporaryFile() as file:
        return os.dup(file.fileno()), Path(file.name).open()


@cache
def _start_server() -> socket.socket:
    """Start the process that is forked; return the socket to which requests are sent."""
    requests, its_requests = socket.socketpair(*_PAIR)
    descriptor = its_requests.fileno()
    command = [sys.executable, "-c", _SERVER.format(descriptor)]
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[descriptor],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    its_requests.close()

    def stop() -> None:
        requests.close()
        server.wait()

    atexit.register(stop)
    return requests


def serve_requests(descriptor: int) -> dict[str, Any]:
    """Import what commands need, and fork a process for each request; return the request in that process.

    The server itself ends with the test session.
    """
    from longsumbench.cli import run  # noqa: F401
    from longsumbench.core import registry

    for table in (registry.systems, registry.corpora, registry.metrics):
        for name in table.shipped():
            table.load(name)
    gc.freeze()  # else a collection in a copy would write to, and so copy, all of its memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how reporters end
    requests = socket.socket(fileno=descriptor)
    while True:
        text, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 4)
        if not text:
            os._exit(0)
        *streams, reports = descriptors
        reporter = os.fork()
        if reporter == 0 and _fork_reported(socket.socket(fileno=reports)):
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            request: dict[str, Any] = json.loads(text)
            return request
        for opened in descriptors:
            os.close(opened)


def _fork_reported(reports: socket.socket) -> bool:
    """Return True in a new process; this one reports its number and how it ends, and ends itself."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process == 0:
        reports.close()
        return True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, which all processes get
    with suppress(OSError):  # the test session has ended
        reports.send(str(process).encode())
        _, status = os.waitpid(process, 0)
        reports.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def run_request(request: Mapping[str, Any]) -> NoReturn:
    """Do what a request asks for, as the main program of this process, and end it."""
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None  # TMPDIR may be another
    os.chdir(request["cwd"])
    sys.argv[:] = request["argv"]
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    code: object = 0
    try:
        if request["code"] is None:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            exec(request["code"], vars(sys.modules["__main__"]))  # noqa: S102
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    # What Python does at its end, but for the destruction of all modules, which takes seconds in a copy.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)
