"""The files of a sweep: its points and their states.

    results/sweeps/<id>/sweep.json            the command, the host, the names of the points
                        sweep.lock            held by the process that runs the sweep
                        points/<number>.json  the state of a point
                        points/<number>.log   its output in a separate process; tracebacks
                        points/<number>.lock  held by the process that works on it
                        launcher/             files of Hydra's launcher

The process that holds a point's lock writes its file. If nobody holds it, the process that runs the sweep does.
So any machine can see whether a point is still running.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, TypedDict

import msgspec

from longsumbench.cache.locks import Holder, exclusive_lock, lock_holder
from longsumbench.errors import DataError
from longsumbench.files import BadFile, digest, read_json, write_atomically

WAITING, RUNNING, DONE, FOUND, SAME, FAILED = "waiting", "running", "done", "found", "same", "failed"
ENDED = (DONE, FOUND, SAME, FAILED)
_State = Annotated[str, msgspec.Meta(pattern=rf"^({'|'.join((WAITING, RUNNING, *ENDED))})\Z")]
_Time = Annotated[float, msgspec.Meta(ge=0, le=1e11)]  # seconds since 1970


class _SweepFile(TypedDict):
    """The content of sweep.json."""

    command: list[str]
    launcher: str
    host: str
    pid: int
    started: _Time
    points: list[str]


@dataclass(frozen=True)
class PointState:
    """The state of a point.

    Attributes:
        state: waiting | running | done | found (finished before) | same (run as another point) | failed.
        runs: the folders of its run and its baselines.
        reason: why it failed, or which other point is the same run.
        failed_baselines: name → reason.
        attempts: the number of processes that have started it.
        started, ended: seconds since 1970, of the last attempt.
        doing: its present step ("training: 120/500 steps, 0:48 left").
        host, pid, job: the process that works on it, and its job on a cluster.
        score: the score that ranks it, 0–100 or in the measure's unit; None before its end.
    """

    state: _State = WAITING
    runs: tuple[str, ...] = ()
    reason: str = ""
    failed_baselines: dict[str, str] = field(default_factory=dict)
    attempts: int = 0
    started: _Time | None = None
    ended: _Time | None = None
    doing: str = ""
    host: str = ""
    pid: int | None = None
    job: str = ""
    score: float | None = None

    @property
    def seconds(self) -> float:
        """The duration of the last attempt so far."""
        return 0.0 if self.started is None else (self.ended or time.time()) - self.started


@dataclass(frozen=True)
class Sweep:
    """The folder of a sweep."""

    root: Path
    unwritten: dict[int, PointState] = field(default_factory=dict, compare=False)  # on a full disk

    @property
    def id(self) -> str:
        """The id in `longsumbench status`."""
        return self.root.name

    def begin(self, command: Sequence[str], launcher: str) -> float:
        """Write `sweep.json` and delete the states of earlier processes.

        Returns: the present time in seconds since 1970, by the clock of the file system.
        """
        for path in self.points.glob("*.json"):
            path.unlink()
        self._write(
            {
                "command": list(command),
                "launcher": launcher,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "started": time.time(),
                "points": [],
            }
        )
        return (self.root / "sweep.json").stat().st_mtime

    def add(self, names: Iterable[str]) -> list[int]:
        """Add points; return their numbers, which count from 1."""
        content = self.content()
        first = len(content["points"]) + 1
        content["points"] += names
        self._write(content)
        return list(range(first, len(content["points"]) + 1))

    def content(self) -> _SweepFile:
        """Return the content of `sweep.json`.

        Raises:
            DataError: the file is missing or damaged.
        """
        path = self.root / "sweep.json"
        try:
            return read_json(path, _SweepFile)
        except (FileNotFoundError, BadFile) as error:
            raise DataError(f"not a sweep ({error}); the same `longsumbench run -m` writes it anew", path) from error

    def _write(self, content: _SweepFile) -> None:
        write_atomically(self.root / "sweep.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    @property
    def points(self) -> Path:
        """The folder with the files of the points."""
        return self.root / "points"

    def log(self, number: int) -> Path:
        """Return the log of a point."""
        return self.points / f"{number}.log"

    def seconds_of_work(self, number: int) -> float:
        """Return how long a dead process worked on a point: until its last line in the log; 0 without a log."""
        started = self.state(number).started
        try:
            return 0.0 if started is None else self.log(number).stat().st_mtime - started
        except FileNotFoundError:
            return 0.0

    def new_launch(self) -> Path:
        """Return a new folder for a launcher, so that it does not wait for older jobs."""
        folder = self.root / "launcher"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / str(1 + max((int(path.name) for path in folder.iterdir() if path.name.isdecimal()), default=0))

    def state(self, number: int) -> PointState:
        """Return the state of a point; without a readable file it is waiting."""
        if number in self.unwritten:
            return self.unwritten[number]
        try:
            return read_json(self.points / f"{number}.json", PointState)
        except (FileNotFoundError, BadFile):
            return PointState()

    def note(self, number: int, state: PointState) -> None:
        """Write the state of a point; keep it in memory if the file cannot be written."""
        try:
            write_atomically(self.points / f"{number}.json", json.dumps(asdict(state), ensure_ascii=False) + "\n")
            self.unwritten.pop(number, None)
        except OSError:
            self.unwritten[number] = state

    def working(self, number: int, waiting: Callable[[Holder | None], None]) -> AbstractContextManager[None]:
        """Hold the lock of a point while working on it."""
        self.points.mkdir(parents=True, exist_ok=True)
        return exclusive_lock(self.points / f"{number}.lock", waiting)

    def worker(self, number: int) -> Holder | None:
        """Return the process that works on a point now."""
        return lock_holder(self.points / f"{number}.lock")

    def conducting(self, waiting: Callable[[Holder | None], None]) -> AbstractContextManager[None]:
        """Hold the lock of the sweep: only one process may run it."""
        self.root.mkdir(parents=True, exist_ok=True)
        return exclusive_lock(self.root / "sweep.lock", waiting)

    def conductor(self) -> Holder | None:
        """Return the process that runs the sweep now."""
        return lock_holder(self.root / "sweep.lock")


def sweep_folder(results: Path, identities: Sequence[str]) -> Sweep:
    """Return the sweep of some points; the same points have the same sweep."""
    return Sweep(results / "sweeps" / digest(list(identities))[:8])


def sweeps_in(results: Path) -> Iterator[Sweep]:
    """Yield the sweeps under a results folder, the newest first."""
    found = (Sweep(path.parent) for path in (results / "sweeps").glob("*/sweep.json"))
    yield from sorted(found, key=lambda sweep: (sweep.root / "sweep.json").stat().st_mtime, reverse=True)


def seconds_left(states: Sequence[PointState]) -> float | None:
    """Estimate the seconds that a sweep still takes, from the mean time of its points.

    It is None before the first point is done. Points that finished before the sweep do not count.
    """
    took = [point.seconds for point in states if point.state == DONE]
    if not took:
        return None
    mean = sum(took) / len(took)
    running = [point for point in states if point.state == RUNNING]
    to_do = sum(max(0.0, mean - point.seconds) for point in running)
    to_do += mean * sum(point.state == WAITING for point in states)
    return to_do / max(1, len(running))
