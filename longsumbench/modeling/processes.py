"""Several processes for one run: torchrun, or a SLURM job of several tasks, starts the same command in each.

The first process carries out the command. It calls the others to train and decode a run (`share_run`). Then all run the
same code and exchange tensors by torch.distributed: gloo, or NCCL between GPUs. Messages are JSON in such tensors;
nothing is unpickled.
An error that all processes meet fails the run in all of them. A process that fails alone ends; its launcher then ends
the others, and the same command continues. Without torchrun's environment variables there is one process: nothing here
waits or imports torch.
"""

import atexit
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import Build
from longsumbench.errors import INTERRUPTED, Bug, EnvironmentProblem, UsageError, as_suite_error

_RANK_KEYS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_STARTING = timedelta(minutes=10)  # from the start of the first process to that of the last one
_WAIT_LIMIT = timedelta(days=20)  # of a wait for another process; gloo's limit is 24 days
_LEAVING = timedelta(seconds=30)  # from the first process that ends to the last one

_log = logging.getLogger(__name__)


@dataclass
class _Launch:
    """The processes of one command, with numbers as torchrun names them."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0  # on this machine
    local_size: int = 1
    together: bool = False  # True while all processes run the same code
    failed_in_all: bool = False  # True if the first process failed where the others waited for it
    is_lost: bool = False  # True if a process failed alone
    store: Any = None  # torch's, by which the processes met

    def connect(self) -> None:
        """Connect the processes, unless they are.

        Raises:
            EnvironmentProblem: the processes cannot meet.
        """
        os.environ.setdefault(
            "TORCH_CPP_LOG_LEVEL", "ERROR"
        )  # its warnings are for those who write the training
        from torch import cuda, distributed

        if distributed.is_initialized():
            return
        backend = "cpu:gloo,cuda:nccl" if cuda.is_available() else "gloo"
        rank, size = self.rank, self.size
        try:
            meeting = distributed.rendezvous("env://", rank, size, timeout=_STARTING)  # type: ignore[attr-defined]
            self.store, *_ = next(meeting)
            distributed.init_process_group(
                backend, store=self.store, rank=rank, world_size=size, timeout=_WAIT_LIMIT
            )
            atexit.register(self._leave)
        except (RuntimeError, ValueError) as error:
            address = "MASTER_ADDR={MASTER_ADDR}, MASTER_PORT={MASTER_PORT}".format_map(os.environ)
            reason = str(error).splitlines()[0]
            raise EnvironmentProblem(
                f"{size} processes cannot meet at {address}: {reason}"
            ) from error

    def _leave(self) -> None:
        """Leave the process group: first the others, then the first process.

        A process that closes its connections while another does the same may be aborted, after all its work.
        """
        from torch import distributed

        with suppress(RuntimeError):  # a process is gone
            if self.rank == 0 and not self.is_lost:
                self.store.wait([f"left {rank}" for rank in range(1, self.size)], _LEAVING)
        distributed.destroy_process_group()
        with suppress(RuntimeError):
            self.store.set(f"left {self.rank}", "")

    def broadcast(self, value: object = None) -> Any:
        """Return the first process's value, which is JSON, in all processes."""
        import torch
        from torch import distributed

        content = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)
        size = torch.tensor(len(content))
        distributed.broadcast(size, 0)
        if self.rank:
            content = torch.empty(int(size), dtype=torch.uint8)
        distributed.broadcast(content, 0)
        return json.loads(content.numpy().tobytes())

    @contextmanager
    def working_together(self) -> Iterator[None]:
        """Run the same code in all processes inside. After an error that one process meets alone, it exits."""
        self.together, self.failed_in_all = True, False
        try:
            yield
        except Exception as error:
            if not self.failed_in_all and not isinstance(
                error, UsageError
            ):  # all have the same settings
                self.exit_alone(error)
            self.together = False
            raise
        self.together = False

    def exit_alone(self, error: Exception) -> None:
        """Exit with an error's exit code; the other processes then fail or are ended by the launcher."""
        from torch.distributed import DistError

        self.is_lost = True
        lost = isinstance(error, DistError) or "/gloo/" in str(error)
        advice = EnvironmentProblem("another process failed: run the same command again")
        problem = advice if lost else as_suite_error(error)
        if problem is None:
            traceback.print_exception(error)
        _log.error(f"longsumbench: process {self.rank} of {self.size}: {problem or repr(error)}")
        raise SystemExit((problem or Bug).exit_code) from error


@cache
def _launch() -> _Launch:
    """Read the launcher's environment variables, and hide them from libraries and from processes started here."""
    launch = _Launch()
    if all(os.environ.get(name) for name in (*_RANK_KEYS, "MASTER_ADDR", "MASTER_PORT")):
        launch.rank, launch.size, launch.local_rank, launch.local_size = (
            int(os.environ[name]) for name in _RANK_KEYS
        )
    for name in (*_RANK_KEYS, "PMI_SIZE"):
        os.environ.pop(name, None)
    return launch


def started_processes() -> int:
    """Return how many processes were started for this command."""
    return _launch().size


def gpu_index(count: int) -> int:
    """Return which of the GPUs that this process sees is its own."""
    return _launch().local_rank % count  # SLURM may show each process only its GPU


def process_count() -> int:
    """Return how many processes run the same code now; 1 where each works alone."""
    return _launch().size if _launch().together else 1


def process_index() -> int:
    """Return which of them this is, from 0; 0 where each works alone."""
    return _launch().rank if _launch().together else 0


@contextmanager
def first_process(work: Callable[[Path], None]) -> Iterator[bool]:
    """Yield True in the first process. The others take part in the runs that it shares, then yield False.

    `work` is what the others do for a run, given its folder.

    Raises:
        EnvironmentProblem: the processes cannot meet.
    """
    launch = _launch()
    if launch.size > 1:
        launch.connect()
    if launch.rank:
        _take_part(launch, work)
        yield False
        return
    try:
        yield True
    finally:
        if launch.size > 1 and not launch.together:  # else the others do not wait for a run
            with suppress(RuntimeError):  # they are gone
                launch.broadcast("")


def _take_part(launch: _Launch, work: Callable[[Path], None]) -> None:
    """Work on the runs that the first process shares, until it has no more."""
    warnings.simplefilter("ignore")  # the first process warns
    logging.getLogger("longsumbench").setLevel(logging.WARNING)
    try:
        while folder := launch.broadcast():
            with (
                suppress(Exception),
                launch.working_together(),
            ):  # the first process reports the failure
                work(Path(folder))
    except RuntimeError as error:  # the first process is gone
        launch.exit_alone(error)
    except KeyboardInterrupt:  # the first process says so
        sys.exit(INTERRUPTED)


@contextmanager
def share_run(folder: Path, device: str) -> Iterator[None]:
    """Let the other processes take part in a run; the first process calls this.

    Raises:
        UsageError: torchrun started more processes than there are GPUs.
    """
    launch = _launch()
    if launch.size == 1:
        yield
        return
    from torch import cuda

    gpus = cuda.device_count() if device != "cpu" else 0
    if gpus and "TORCHELASTIC_RUN_ID" in os.environ and gpus < launch.local_size:
        advice = "start as many as there are GPUs, or choose device=cpu"
        raise UsageError(
            f"{launch.local_size} processes on {gpus} GPU{'s' if gpus > 1 else ''}: {advice}"
        )
    launch.broadcast(str(folder.resolve()))
    with launch.working_together():
        yield


def from_first_process(value: object = None) -> Any:
    """Return the first process's value, which is JSON, in all processes."""
    return _launch().broadcast(value) if process_count() > 1 else value


def wait_for_everyone() -> None:
    """Wait until all processes are here."""
    if process_count() > 1:
        import torch

        torch.distributed.all_reduce(torch.zeros(1))


@contextmanager
def first_process_first() -> Iterator[None]:
    """Let the first process do what is inside before the others, which then find its stages finished.

    Each works alone inside. If the first process fails, all fail.
    """
    if process_count() == 1:
        yield
        return
    launch, finished = _launch(), False
    if launch.rank and not launch.broadcast():
        launch.failed_in_all = True
        raise EnvironmentProblem("the first process failed")
    launch.together = False
    try:
        yield
        finished = True
    finally:
        launch.together = True
        if launch.rank == 0:
            launch.failed_in_all = not launch.broadcast(finished)


@contextmanager
def build_together(build: Build) -> Iterator[None]:
    """Let the other processes take part when the first one builds a stage inside; they then find it finished.

    `build` calls `announce_build` first.
    """
    while process_index() and (folder := from_first_process()):
        build(Path(folder))
    yield
    announce_build("")


def announce_build(folder: Path | str) -> None:
    """Let the other processes build a stage in the same folder; an empty string ends this."""
    if process_index() == 0:
        from_first_process(str(folder))
