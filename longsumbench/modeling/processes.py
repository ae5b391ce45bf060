"""Several processes for one run: torchrun, or a SLURM job of several tasks, starts the same command in each.

The first process does what a single process would. While it shares a run (`share_run`), all processes run the same
code: they train together and divide the batches to summarize. Outside, the others wait.
If a process fails in a shared run, the run fails in all of them. If one dies or hangs, the others end within seconds,
and the same command continues.
Messages are JSON in the launcher's store; nothing is unpickled. Without torchrun's environment variables there is one
process: nothing here waits or imports torch.
"""

import atexit
import json
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.errors import INTERRUPTED, EnvironmentProblem, UsageError, as_suite_error

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_STARTING = timedelta(minutes=10)  # from the start of the first process to that of the last one
_LONGEST = timedelta(days=20)  # of a wait in a training; gloo's limit is 24 days
_PATIENCE = 20.0  # seconds from a failure in one process to that in the last one
_SECONDS_BETWEEN_LOOKS = 0.05

_log = logging.getLogger(__name__)


class _LostProcess(EnvironmentProblem):
    """Another process failed or died."""


@dataclass
class _Launch:
    """The processes of one command. `run` and `message` count the values in the store."""

    place: dict[str, int]
    run: int = 0
    message: int = 0
    sharing: bool = False

    @property
    def rank(self) -> int:
        return self.place.get("RANK", 0)

    @property
    def size(self) -> int:
        return self.place.get("WORLD_SIZE", 1)

    @cached_property
    def store(self) -> "Store":
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its warnings are for those who write the training
        from torch.distributed import PrefixStore, rendezvous  # type: ignore[attr-defined]

        try:
            store, *_ = next(rendezvous("env://", self.rank, self.size, timeout=_STARTING))
        except (RuntimeError, ValueError) as error:
            where = "MASTER_ADDR={MASTER_ADDR}, MASTER_PORT={MASTER_PORT}".format_map(os.environ)
            reason = str(error).splitlines()[0]
            raise EnvironmentProblem(f"{self.size} processes cannot meet at {where}: {reason}") from error
        return PrefixStore(f"longsumbench/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)

    def next_key(self) -> str:
        self.message += 1
        return f"{self.run}/{self.message}"

    def wait_for(self, key: str) -> Any:
        """Wait for a value in the store; stop if another process fails."""
        while not self.store.check([key]):
            if self.num_failed():
                raise _LostProcess("another process failed")
            time.sleep(_SECONDS_BETWEEN_LOOKS)  # signals are heard, unlike in torch's own waits
        return json.loads(self.store.get(key))

    def num_failed(self, more: int = 0) -> int:
        """Return how many processes failed in the shared run."""
        return int(self.store.add(f"{self.run}/failed", more))

    def share(self, folder: str) -> None:
        """Let the others work on the run in a folder; an empty string dismisses them."""
        self.run += 1
        self.store.set(str(self.run), json.dumps(folder))

    def next_folder(self) -> str:
        """Wait for the run that the first process shares next; empty if it is done or gone."""
        self.run += 1
        with suppress(RuntimeError):  # the store is gone with the first process
            return str(self.wait_for(str(self.run)))
        return ""

    @contextmanager
    def together(self) -> Iterator[None]:
        """Work with the other processes inside."""
        import torch

        self.message, self.sharing = 0, True
        if torch.cuda.is_available():  # SLURM may show each process only its GPU
            torch.cuda.set_device(self.place["LOCAL_RANK"] % torch.cuda.device_count())
        try:
            yield
        except Exception as error:
            if self.rank or isinstance(error, _LostProcess):
                _log.warning(f"process {self.rank} of {self.size}: {as_suite_error(error) or repr(error)}")
            if self.rank and as_suite_error(error) is None:
                traceback.print_exception(error)
            self._wait_for_failures()
            raise
        finally:
            self.sharing = False

    def _wait_for_failures(self) -> None:
        """Wait until all processes have failed, too; exit if one hangs."""
        ends = time.monotonic() + _PATIENCE
        self.num_failed(1)
        while self.num_failed() < self.size:
            if time.monotonic() > ends:
                _log.warning("another process hangs: run the same command again")
                sys.exit(EnvironmentProblem.exit_code)
            time.sleep(_SECONDS_BETWEEN_LOOKS)


@cache
def _launch() -> _Launch:
    """Read the launcher's environment variables, and hide them from libraries."""
    several = all(os.environ.get(name) for name in (*_PLACE, "MASTER_ADDR", "MASTER_PORT"))
    place = {name: int(os.environ[name]) for name in _PLACE} if several else {}
    _hide_place()
    return _Launch(place)


def _hide_place() -> None:
    """Keep libraries from waiting for other processes where one works alone."""
    for name in (*_PLACE, "PMI_SIZE"):
        os.environ.pop(name, None)


def started_processes() -> int:
    """Return how many processes were started for this command."""
    return _launch().size


def process_count() -> int:
    """Return how many processes work on the shared run; 1 outside."""
    return _launch().size if _launch().sharing else 1


def process_index() -> int:
    """Return which of them this is, from 0; 0 outside."""
    return _launch().rank if _launch().sharing else 0


@contextmanager
def first_process(work: Callable[[Path], None]) -> Iterator[bool]:
    """Yield True in the first process. The others take part in the runs that it shares, then yield False.

    Args:
        work: what the others do for a run, given its folder.

    Raises:
        EnvironmentProblem: the processes cannot meet.
    """
    launch = _launch()
    if launch.size == 1:
        yield True
        return
    launch.store.check([""])  # all processes meet here
    if launch.rank == 0:
        try:
            yield True
        except KeyboardInterrupt:
            atexit.register(_exit_interrupted)
            raise
        finally:
            launch.share("")
        return
    warnings.simplefilter("ignore")  # the first process warns
    logging.getLogger("longsumbench").setLevel(logging.WARNING)
    try:
        while folder := launch.next_folder():
            with suppress(Exception), launch.together():  # the first process reports the failure
                work(Path(folder))
                wait_for_everyone()
    except KeyboardInterrupt:  # the first process says so
        _exit_interrupted()
    yield False


def _exit_interrupted() -> None:
    """Exit at once: at the end of Python, torch may wait for the connections of an interrupted training."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


@contextmanager
def share_run(folder: Path) -> Iterator[None]:
    """Let the other processes take part in a run; the first process calls this."""
    launch = _launch()
    if launch.size == 1:
        yield
        return
    launch.share(str(folder.resolve()))
    with launch.together():
        yield
        wait_for_everyone()


def from_first_process(value: Any = None) -> Any:
    """Return the first process's value, which is JSON, in all processes."""
    if process_count() == 1:
        return value
    launch = _launch()
    key = launch.next_key()
    if launch.rank == 0:
        launch.store.set(key, json.dumps(value))
    return launch.wait_for(key)


def wait_for_everyone() -> None:
    """Wait until all processes are here."""
    if process_count() > 1:
        launch = _launch()
        key = launch.next_key()
        if launch.store.add(f"{key}/here", 1) == launch.size:
            launch.store.set(key, "true")
        launch.wait_for(key)


@contextmanager
def first_process_first() -> Iterator[None]:
    """Let the first process do what is inside before the others, which then find its stages finished."""
    if process_index():
        from_first_process()
    yield
    if not process_index():
        from_first_process()


@contextmanager
def build_together(build: Callable[[Path], None]) -> Iterator[None]:
    """Let the other processes take part when the first one builds a stage inside; they then find it finished.

    Args:
        build: fills the folder of the stage. It calls `announce_build` first.
    """
    while process_index() and (folder := from_first_process()):
        build(Path(folder))
    yield
    announce_build("")


def announce_build(folder: Path | str) -> None:
    """Let the other processes build a stage in the same folder; an empty string ends this."""
    if process_index() == 0:
        from_first_process(str(folder))


@contextmanager
def process_group(device: str) -> Iterator[None]:
    """Connect the processes for a training (gloo, or NCCL on GPUs); libraries see them inside.

    Args:
        device: "auto", "cpu" or "cuda".

    Raises:
        UsageError: torchrun started more processes than there are GPUs.
        EnvironmentProblem: another process failed or died.
    """
    if process_count() == 1:
        yield
        return
    from torch import cuda, distributed

    launch = _launch()
    place, gpus = launch.place, cuda.device_count() if device != "cpu" else 0
    if gpus and "TORCHELASTIC_RUN_ID" in os.environ and gpus < place["LOCAL_WORLD_SIZE"]:
        advice = "start as many as there are GPUs, or choose device=cpu"
        raise UsageError(f"{place['LOCAL_WORLD_SIZE']} processes on {gpus} GPU{'s' if gpus > 1 else ''}: {advice}")
    wait_for_everyone()  # connecting would not hear a signal
    store = distributed.PrefixStore(launch.next_key(), launch.store)  # type: ignore[attr-defined]
    how: dict[str, Any] = {"rank": launch.rank, "world_size": launch.size, "timeout": _LONGEST}
    distributed.init_process_group("nccl" if gpus else "gloo", store=store, **how)
    os.environ.update({name: str(value) for name, value in place.items()})
    if gpus:
        os.environ["LOCAL_RANK"] = str(cuda.current_device())
    try:
        yield
    except RuntimeError as error:
        if "/gloo/" not in str(error) and not isinstance(error, distributed.DistError):
            raise
        raise _LostProcess("another process failed: run the same command again") from error
    finally:
        _hide_place()
        distributed.destroy_process_group()
