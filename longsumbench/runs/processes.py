"""Several processes for one point: the first one works as if it were alone, and lets the others help where they can.

torchrun, or a cluster's job of several tasks, starts the same command several times and tells each process its place by
environment variables. The first one reads, locks, prints and writes; the others wait until it calls them to a task.
Calls and their ends go through a store of torch's as JSON: a call names a task from a table and gives its arguments.
Data in the store is never executed. Processes that train together are also connected as a `group`.
Without those variables there is a team of one, which needs no torch.
"""

import atexit
import json
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from longsumbench.errors import (
    INTERRUPTED,
    DataError,
    EnvironmentProblem,
    NotRepeated,
    PointsFailed,
    SuiteError,
    UsageError,
    as_suite_error,
)

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

PLACE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
MEETING = ("MASTER_ADDR", "MASTER_PORT")
_ALSO_MISTAKEN = ("PMI_SIZE",)  # libraries take it, too, for that of a team
_CALLS_ANSWERED = "LONGSUMBENCH_CALLS_ANSWERED"  # of a helper that began anew: by the process that it was
_LONGEST = timedelta(days=20)  # of any waiting, for death is noticed otherwise; more milliseconds overflow in gloo
_STARTING = timedelta(minutes=10)  # from the start of one process until the first one is there
_SECONDS_BETWEEN_LOOKS = 0.1
_NO_MORE = b"null"  # in place of a call
_GRACE = 5.0  # seconds that a helper is given to come out of a task that has failed elsewhere
_PATIENCE = 60.0  # the same for the first process, and for the others to report how a failed task ended

# Called with a helper's team and the arguments of the call, a JSON object. Checks these before it does anything.
_Task = Callable[["Team", Mapping[str, Any]], None]
# Errors that reach other processes; another class is sent as the nearest one that it inherits from.
_ERRORS = {
    kind.__name__: kind for kind in (SuiteError, PointsFailed, NotRepeated, UsageError, DataError, EnvironmentProblem)
}


@dataclass
class Team:
    """The processes that were started for one command, as one of them sees them.

    Attributes:
        rank: its place, from 0.
        size: how many there are.
        local_rank: its place among those on this machine.
        local_size: how many there are on this machine.
        calls: how often the others were called so far.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    calls: int = 0
    _variables: dict[str, str] = field(default_factory=dict)
    _store: "Store | None" = None
    _lost: str = ""
    _failure: tuple[int, SuiteError | Exception] | None = None  # number of the call, and what went wrong

    @property
    def first(self) -> bool:
        """Whether this process is the one that all others help."""
        return self.rank == 0

    @contextmanager
    def helped(self, task: str, arguments: Mapping[str, Any]) -> Iterator[None]:
        """Let the others do a task while the first process does its part; they have ended it on leaving.

        Args:
            task: its name in the table that the others are given (`help`).
            arguments: JSON values.

        Raises:
            SuiteError: what went wrong first, be it in another process.
        """
        if self.size == 1:
            yield
            return
        if self._lost:
            raise EnvironmentProblem(self._lost)
        self.calls += 1
        self._tell("task", {"name": task, "arguments": arguments})
        try:
            yield
        except Exception as error:
            problem = self._failed(error)
            lost = self._wait_for_ends(_PATIENCE)
            raise EnvironmentProblem(lost) if lost and not isinstance(problem, SuiteError) else problem from error
        self._wait_for_ends()
        self._heed_failures()

    def help(self, tasks: Mapping[str, _Task]) -> None:
        """Do what the first process calls for, until it needs no more help.

        A process in which a task fails, or that hangs in one that has failed elsewhere, begins anew.

        Args:
            tasks: name → task; a call of anything else is refused.
        """
        while (call := self._next_call()) != _NO_MORE:
            try:
                task, arguments = self._read_call(call, tasks)
                with self._leaving(_GRACE, self._begin_anew):
                    task(self, arguments)
            except Exception as error:
                self._failed(error)
                self._begin_anew()
            self._tell(f"end {self.rank}", None)
        self._tell(f"left {self.rank}", None)

    def dismiss(self) -> None:
        """Let the others go, and wait until they are gone."""
        if self.size > 1:
            self.calls += 1
            self._tell("task", None)
            for rank in range(1, self.size):
                self._heard(f"left {rank}", 0 if self._lost else _PATIENCE)

    @contextmanager
    def group(self, device: str) -> Iterator[None]:
        """Connect the processes, all of which must come here, for what torch does with them together.

        Meanwhile libraries see the team. All leave together.

        Args:
            device: "auto", "cpu" or "cuda".

        Raises:
            UsageError: two processes use one GPU.
            SuiteError: what went wrong in another process on its way here.
        """
        from torch import distributed
        from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # it does, at run time

        gpu = self.take_gpu(device)
        self._assemble(gpu)
        distributed.init_process_group(
            "gloo" if gpu is None else "nccl",
            store=PrefixStore(self._key("group"), self._met()),
            rank=self.rank,
            world_size=self.size,
            timeout=_LONGEST,
        )
        os.environ.update(self._variables, **({} if gpu is None else {"LOCAL_RANK": str(gpu)}))
        try:
            with self._leaving(_PATIENCE, self._end) if self.first else nullcontext():  # helpers watch a whole task
                yield
                distributed.barrier()
        except Exception as error:
            self._failed(error)  # before the others are torn from this one, and fail for that
            raise
        finally:
            _hide()
            distributed.destroy_process_group()

    def take_gpu(self, device: str) -> int | None:
        """Choose a separate GPU for this process; return its index, or None without a GPU.

        Args:
            device: "auto", "cpu" or "cuda".
        """
        import torch

        if device == "cpu" or not torch.cuda.is_available():
            return None
        chosen = self.local_rank % torch.cuda.device_count()  # a cluster may show each process a single one
        torch.cuda.set_device(chosen)
        return chosen

    def _assemble(self, gpu: int | None) -> None:
        """Wait until all are here, each with its own GPU or none, for connecting waits for ever for one that failed."""
        own = ""
        if gpu is not None:
            import torch

            own = str(torch.cuda.get_device_properties(gpu).uuid)
        self._tell(f"here {self.rank}", own)
        for rank in range(self.size):
            while not self._is_told(f"here {rank}", seconds=_SECONDS_BETWEEN_LOOKS):
                self._heed_failures()
        found = {self._heard(f"here {rank}") for rank in range(self.size)} - {b'""'}
        if found and len(found) < self.size:
            problem = f"{self.size} processes on {len(found)} GPU{'s' if len(found) > 1 else ''}"
            raise UsageError(f"{problem}: start as many as there are GPUs, or choose device=cpu")

    def _met(self) -> "Store":
        """Return this process's connection to the store that all share; the first of them may have to open it."""
        if self._store is None:
            launchers_own = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
            self._store = self._meet(opens=self.first and not launchers_own)
        return self._store

    def _meet(self, opens: bool = False) -> "Store":
        """Return a new connection to the store: every thread needs a separate one.

        Raises:
            EnvironmentProblem: there is none, or none can be opened.
        """
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its advice is for people who call it themselves
        from torch.distributed import TCPStore  # type: ignore[attr-defined]  # unknown to mypy

        address, port = (os.environ[name] for name in MEETING)
        try:
            store = TCPStore(address, int(port), None, opens, _STARTING, wait_for_workers=False, multi_tenant=True)
        except (RuntimeError, ValueError) as error:  # torch's; the port is no number
            reason = str(error).splitlines()[0]
            problem = f"{self.size} processes cannot meet at MASTER_ADDR={address}, MASTER_PORT={port}: {reason}"
            raise EnvironmentProblem(problem) from error
        store.set_timeout(_LONGEST)
        return store

    def _key(self, what: str) -> str:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # torchrun keeps its store when it starts all again
        return f"longsumbench/{attempt}/{self.calls}/{what}"

    def _tell(self, what: str, value: Any) -> None:
        self._met().set(self._key(what), json.dumps(value))

    def _heard(self, what: str, seconds: float | None = None) -> bytes | None:
        """Return the value stored in this call; None after the timeout in seconds."""
        return self._met().get(self._key(what)) if self._is_told(what, seconds) else None

    def _heard_problem(self) -> SuiteError | None:
        """Return what went wrong first in any process; None after a timeout."""
        message = self._heard("problem", _PATIENCE)
        return None if message is None else error_of(message)

    def _is_told(self, what: str, seconds: float | None = None) -> bool:
        """Wait for a value of this call; return False after the timeout in seconds."""
        ends = None if seconds is None else time.monotonic() + seconds
        while not self._met().check([self._key(what)]):
            if ends is not None and time.monotonic() > ends:
                return False
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return True

    def _heed_failures(self) -> None:
        """Raise what went wrong first in any process, if anything has in this call."""
        if self._met().add(self._key("failures"), 0):
            raise self._heard_problem() or EnvironmentProblem("another process failed")

    def _next_call(self) -> bytes | None:
        self.calls += 1
        try:
            return self._heard("task")
        except RuntimeError as error:  # torch's, when the connection is gone
            raise EnvironmentProblem(f"process 0 of {self.size}, which this one helped, is gone") from error

    def _read_call(self, call: bytes | None, tasks: Mapping[str, _Task]) -> tuple[_Task, Mapping[str, Any]]:
        """Return the task that is called, and its arguments.

        Raises:
            EnvironmentProblem: the call is none that this program makes.
        """
        values = _parse_message(call)
        if not isinstance(values, dict) or values.keys() != {"name", "arguments"}:
            reason = "it is no task with arguments"
        elif not isinstance(values["name"], str) or values["name"] not in tasks:
            reason = f"there is no task {values['name']!r:.40}"
        elif not isinstance(values["arguments"], dict):
            reason = "its arguments have no names"
        else:
            return tasks[values["name"]], values["arguments"]
        problem = f"process {self.rank} of {self.size} refused a call: {reason}"
        raise EnvironmentProblem(f"{problem}; does another program use MASTER_PORT={os.environ.get('MASTER_PORT')}?")

    def _failed(self, error: Exception) -> SuiteError | Exception:
        """Tell the others, once, that a task has failed here; return what went wrong first, here or there."""
        if self._failure is not None and self._failure[0] == self.calls:
            return self._failure[1]
        known = as_suite_error(error)
        found = known or error
        if self._met().add(self._key("failures"), 1) == 1:
            if known is None and not self.first:
                traceback.print_exception(error)
            unknown = EnvironmentProblem(f"process {self.rank} of {self.size} failed: {type(error).__name__}: {error}")
            self._tell("problem", told_of_error(known or unknown))
        else:
            found = self._heard_problem() or found
        self._failure = self.calls, found
        return found

    def _wait_for_ends(self, seconds: float | None = None) -> str:
        """Wait until the others have ended a task; return, and remember, who has not done so in time."""
        for rank in range(1, self.size):
            if not self._is_told(f"end {rank}", seconds):
                self._lost = f"process {rank} of {self.size} does not answer: start the same command again"
                break
        return self._lost

    @contextmanager
    def _leaving(self, grace: float, otherwise: Callable[[], None]) -> Iterator[None]:
        """Do something else when what is inside does not end within some seconds of a failure in any process."""
        over = threading.Event()
        store, key = self._meet(), self._key("failures")

        def watch() -> None:
            while not over.wait(_SECONDS_BETWEEN_LOOKS * 5):
                with suppress(RuntimeError):  # torch's, when the connection is gone: whoever was there is, too
                    if store.add(key, 0) and not over.wait(grace):
                        otherwise()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _begin_anew(self) -> None:
        """End a task and become a fresh process, with nothing open: whoever waits for this one is torn from it."""
        self._store = self._meet()  # the other one belongs to what hangs
        self._tell(f"end {self.rank}", None)
        os.environ.update({**self._variables, _CALLS_ANSWERED: str(self.calls)})
        sys.stderr.flush()
        for descriptor in filter(lambda one: one > 2, map(int, os.listdir("/dev/fd"))):
            with suppress(OSError):
                os.set_inheritable(descriptor, False)  # closed with all threads gone, of which some may use it now
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the command that it is

    def _end(self) -> None:
        """End this process from outside what it hangs in."""
        message = "another process failed, and this one hangs: start the same command again"
        print(f"longsumbench: {message}", file=sys.stderr, flush=True)
        os._exit(EnvironmentProblem.exit_code)


def _parse_message(text: bytes | None) -> Any:
    """Return a value from the store; None where it is no JSON."""
    try:
        return json.loads(text or b"null")
    except (ValueError, RecursionError):
        return None


def told_of_error(error: SuiteError) -> list[str]:
    """Return an error as [class name, message]."""
    return [next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS), str(error)]


def error_of(content: bytes) -> SuiteError:
    """Rebuild the error of another process."""
    match _parse_message(content):
        case [str(name), str(message)] if name in _ERRORS:
            return _ERRORS[name](message)
    return EnvironmentProblem("another process failed")


@cache
def of_this_process() -> Team:
    """Return the team that the environment variables of this process tell of; one process, when they do not.

    From now on they are hidden from all libraries, but for as long as the team works as a `group`.
    """
    variables = {name: os.environ[name] for name in PLACE if name in os.environ}
    answered = int(os.environ.pop(_CALLS_ANSWERED, "0"))
    _hide()
    try:
        rank, size = int(variables["RANK"]), int(variables["WORLD_SIZE"])
        local_rank = int(variables.setdefault("LOCAL_RANK", str(rank)))
        local_size = int(variables.setdefault("LOCAL_WORLD_SIZE", str(size)))
    except (KeyError, ValueError):
        return Team()
    if size == 1 or not 0 <= rank < size or not all(os.environ.get(name) for name in MEETING):
        return Team()
    return Team(rank, size, local_rank, local_size, answered, variables)


def _hide() -> None:
    for name in (*PLACE, *_ALSO_MISTAKEN):
        os.environ.pop(name, None)


@contextmanager
def first_process(tasks: Mapping[str, _Task]) -> Iterator[bool]:
    """Yield True in the first process of a team. The others do its tasks until it is done, then yield False.

    Args:
        tasks: name → task that the first process may ask the others for.
    """
    team = of_this_process()
    if not team.first:
        warnings.simplefilter("ignore")  # the first one gives them
        try:
            team.help(tasks)
        except KeyboardInterrupt:  # the first process was interrupted
            os._exit(INTERRUPTED)  # see below
        yield False
        return
    if team.size > 1:
        team._met()
    try:
        yield True
    except KeyboardInterrupt:  # nobody waits for the others: they are interrupted, too
        if team.size > 1:
            atexit.register(_exit_at_once)  # at the end of Python, torch would wait for the others' connections
        raise
    except Exception:
        team.dismiss()
        raise
    team.dismiss()


def _exit_at_once() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)
