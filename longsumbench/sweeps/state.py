"""The files of a sweep: what its points are, and what became of each, for whoever looks.

    results/sweeps/<id>/sweep.json            what was typed, where it runs, the points' names
                        sweep.lock            held by the process that conducts it
                        points/<number>.json  what became of a point
                        points/<number>.log   what it said, where it runs in a process of its own; tracebacks
                        points/<number>.lock  held by the process that works on it
                        launcher/             of Hydra's launcher, and of what it submits to

A point's file is written by the process that holds its lock, and by the conductor when nobody does: so the files alone
say, from any machine, whether a point that claims to be running still is.
"""

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from longsumbench.cache.locks import Holder, exclusive_lock, lock_holder
from longsumbench.errors import DataError
from longsumbench.files import COUNTS, TIMES, BadFile, digest, read_json, write_atomically

WAITING, RUNNING, DONE, FOUND, SAME, FAILED = "waiting", "running", "done", "found", "same", "failed"
ENDED = (DONE, FOUND, SAME, FAILED)
# The shapes of sweep.json and of a point's file (see `shapes`).
_SWEEP = {"command": [str], "launcher": str, "host": str, "pid": int, "started": TIMES, "points": [str]}
_POINT = {
    "state?": re.compile("|".join((WAITING, RUNNING, *ENDED))),
    "runs?": [str],
    "failed_baselines?": {str: str},
    "attempts?": COUNTS,
    "started?": (TIMES, None),
    "ended?": (TIMES, None),
    "pid?": (int, None),
    "score?": (float, None),
    **dict.fromkeys(("reason?", "doing?", "host?", "job?"), str),
}


@dataclass(frozen=True)
class PointState:
    """What became of a point.

    Attributes:
        state: waiting | running | done | found (finished before) | same (run as another point) | failed.
        runs: the folders of its run and of the baselines scored beside it.
        reason: why it failed; which other point it is.
        failed_baselines: name → why.
        attempts: how many processes have begun it; more than one where the first ones were killed.
        started, ended: seconds since 1970, of the last attempt.
        doing: its present step ("training: 120/500 steps, 0:48 left").
        host, pid, job: who works on it; of a cluster, the job's id.
        score: what it is judged by, 0–100 or in the measure's unit; None before its end.
    """

    state: str = WAITING
    runs: tuple[str, ...] = ()
    reason: str = ""
    failed_baselines: dict[str, str] = field(default_factory=dict)
    attempts: int = 0
    started: float | None = None
    ended: float | None = None
    doing: str = ""
    host: str = ""
    pid: int | None = None
    job: str = ""
    score: float | None = None

    @property
    def seconds(self) -> float:
        """How long the last attempt took, or has taken so far."""
        return 0.0 if self.started is None else (self.ended or time.time()) - self.started


@dataclass(frozen=True)
class Sweep:
    """The folder of a sweep.

    Attributes:
        root: where it is.
        unwritten: what became of points whose files this process could not write, for the disk was full.
    """

    root: Path
    unwritten: dict[int, PointState] = field(default_factory=dict, compare=False)

    @property
    def id(self) -> str:
        """Its name in `longsumbench status`."""
        return self.root.name

    def begin(self, command: Sequence[str], launcher: str) -> float:
        """Write what the sweep is; forget what an earlier process said of its points.

        Returns: now, in seconds since 1970, by the clock that its files' times are of.
        """
        for path in self.points.glob("*.json"):
            path.unlink()
        told = {"host": socket.gethostname(), "pid": os.getpid(), "started": time.time()}
        self._write({"command": list(command), "launcher": launcher, **told, "points": []})
        return (self.root / "sweep.json").stat().st_mtime

    def add(self, names: Iterable[str]) -> list[int]:
        """Note more points; return their numbers, which count from 1."""
        told = self.told()
        first = len(told["points"]) + 1
        told["points"] += names
        self._write(told)
        return list(range(first, len(told["points"]) + 1))

    def told(self) -> dict[str, Any]:
        """Return what `sweep.json` says.

        Raises:
            DataError: it is not there, or not a sweep's.
        """
        path = self.root / "sweep.json"
        try:
            told: dict[str, Any] = read_json(path, _SWEEP)
            return {name: told[name] for name in _SWEEP}
        except (FileNotFoundError, BadFile) as error:
            raise DataError(f"not a sweep ({error}); the same `longsumbench run -m` writes it anew", path) from error

    def _write(self, told: dict[str, Any]) -> None:
        write_atomically(self.root / "sweep.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")

    @property
    def points(self) -> Path:
        """The folder of its points' files."""
        return self.root / "points"

    def log(self, number: int) -> Path:
        """Return where a point says what it does."""
        return self.points / f"{number}.log"

    def seconds_of_work(self, number: int) -> float:
        """How long a point whose process died was at work on it: until it last said something; 0 where it did not.

        A launcher may be told long after that, when all the others have ended.
        """
        started = self.state(number).started
        try:
            return 0.0 if started is None else self.log(number).stat().st_mtime - started
        except FileNotFoundError:
            return 0.0

    def new_launch(self) -> Path:
        """Return a folder for what a launcher writes that none has written to: its older jobs are not waited for."""
        folder = self.root / "launcher"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / str(1 + max((int(path.name) for path in folder.iterdir() if path.name.isdecimal()), default=0))

    def state(self, number: int) -> PointState:
        """Return what became of a point; one that nobody has begun, or whose file is torn, is waiting."""
        if number in self.unwritten:
            return self.unwritten[number]
        try:
            told = read_json(self.points / f"{number}.json", _POINT)
            known = {item.name: told[item.name] for item in fields(PointState) if item.name in told}
            return PointState(**{**known, "runs": tuple(known.get("runs", ()))})
        except (FileNotFoundError, BadFile):
            return PointState()

    def note(self, number: int, state: PointState) -> None:
        """Write what became of a point; a file that cannot be written takes no point's result, and is no error."""
        try:
            write_atomically(self.points / f"{number}.json", json.dumps(asdict(state), ensure_ascii=False) + "\n")
            self.unwritten.pop(number, None)
        except OSError:
            self.unwritten[number] = state

    def working(self, number: int, waiting: Callable[[Holder | None], None]) -> AbstractContextManager[None]:
        """Hold a point's lock; whoever holds it is at work on the point."""
        self.points.mkdir(parents=True, exist_ok=True)
        return exclusive_lock(self.points / f"{number}.lock", waiting)

    def worker(self, number: int) -> Holder | None:
        """Return who works on a point right now."""
        return lock_holder(self.points / f"{number}.lock")

    def conducting(self, waiting: Callable[[Holder | None], None]) -> AbstractContextManager[None]:
        """Hold the sweep's lock; two processes never conduct one sweep."""
        self.root.mkdir(parents=True, exist_ok=True)
        return exclusive_lock(self.root / "sweep.lock", waiting)

    def conductor(self) -> Holder | None:
        """Return who conducts the sweep right now."""
        return lock_holder(self.root / "sweep.lock")


def sweep_folder(results: Path, identities: Sequence[str]) -> Sweep:
    """Return the sweep of some points under a results folder; the same points have the same one."""
    return Sweep(results / "sweeps" / digest(list(identities))[:8])


def sweeps_in(results: Path) -> Iterator[Sweep]:
    """Yield the sweeps under a results folder, the newest first."""
    found = (Sweep(path.parent) for path in (results / "sweeps").glob("*/sweep.json"))
    yield from sorted(found, key=lambda sweep: (sweep.root / "sweep.json").stat().st_mtime, reverse=True)


def seconds_left(states: Sequence[PointState]) -> float | None:
    """Return about how long a sweep still takes: the mean time of its points, dealt to those at work side by side.

    None before the first point is done. Points that were found finished cost nothing and count for nothing.
    """
    took = [one.seconds for one in states if one.state == DONE]
    if not took:
        return None
    mean = sum(took) / len(took)
    running = [one for one in states if one.state == RUNNING]
    to_do = sum(max(0.0, mean - one.seconds) for one in running)
    to_do += mean * sum(one.state == WAITING for one in states)
    return to_do / max(1, len(running))
