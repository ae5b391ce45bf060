"""The files of a sweep: its points and their states.

    results/sweeps/<id>/
        sweep.json            the command, the launcher, the host
        sweep.lock            held by the process that runs the sweep
        points/<number>.json  the name and the state of a point
        points/<number>.log   its output in a separate process
        points/<number>.lock  held by the process that works on it, which writes its state

Locks end with their processes: a point that is "running" without a lock is waiting.
"""

import json
import logging
import shlex
import socket
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from longsumbench.cache.locks import exclusive_lock, lock_holder
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, digest, read_json, write_atomically
from longsumbench.formatting import (
    break_command,
    escape_line,
    format_duration,
    plain_table,
    redact,
    terminal_width,
)

_log = logging.getLogger(__name__)

WAITING, RUNNING, DONE, SKIPPED, FAILED = "waiting", "running", "done", "skipped", "failed"
# States after which a point does nothing more
ENDED = (DONE, SKIPPED, FAILED)


@dataclass(frozen=True)
class SweepStart:
    """The content of `sweep.json`: what was typed, and where and when (seconds since 1970) it began."""

    command: tuple[str, ...]
    launcher: str
    host: str
    started: float


@dataclass(frozen=True)
class PointState:
    """The state of a point.

    Attributes:
        name: the settings in which it differs from other points.
        state: waiting | running | done | skipped (finished before) | failed.
        runs: the folders of its run and its baselines.
        reason: why it, or one of its baselines, failed.
        attempts: the number of processes that have started it.
        started, ended: seconds since 1970, of the last attempt.
        doing: its present step ("training: 120/500 steps, 0:48 left").
        process: the process that works on it ("node7 11"), or its job on a cluster ("job 5_2 on node7").
        score: the score that ranks it, 0–100 or in the measure's unit; None before its end.
    """

    name: str = ""
    state: str = WAITING
    runs: tuple[str, ...] = ()
    reason: str = ""
    attempts: int = 0
    started: float | None = None
    ended: float | None = None
    doing: str = ""
    process: str = ""
    score: float | None = None

    @property
    def seconds(self) -> float:
        """The duration so far."""
        return 0.0 if self.started is None else (self.ended or time.time()) - self.started


@dataclass(frozen=True)
class Sweep:
    """The folder of a sweep; its name is the id in `longsumbench status`."""

    root: Path

    @classmethod
    def of(cls, results: Path, words: Sequence[str]) -> "Sweep":
        """Return the sweep of some overrides in a results folder."""
        return cls(results / "sweeps" / digest(list(words))[:8])

    def locked(self) -> AbstractContextManager[None]:
        """Create the folder and lock it: only one process runs a sweep, others wait for it."""
        return exclusive_lock(
            self.lock, lambda who: _log.info(f"waiting for the process that runs this sweep: {who}")
        )

    def begin(self, command: Sequence[str], launcher: str) -> None:
        """Write `sweep.json`, and delete the states that earlier processes wrote."""
        self.file(1, "json").parent.mkdir(parents=True, exist_ok=True)
        for path in self.root.glob("points/*.json"):
            path.unlink()
        start = SweepStart(tuple(command), launcher, socket.gethostname(), time.time())
        write_atomically(
            self.root / "sweep.json", json.dumps(asdict(start), indent=1, ensure_ascii=False) + "\n"
        )

    def start(self) -> SweepStart:
        """Return the content of `sweep.json`; raise DataError if it is damaged."""
        path = self.root / "sweep.json"
        try:
            return read_json(path, SweepStart)
        except (FileNotFoundError, BadFile) as error:
            raise DataError(
                f"not a sweep ({error}); the same `longsumbench run -m` writes it anew", path
            ) from error

    @property
    def lock(self) -> Path:
        """The file that is locked by the process that runs the sweep."""
        return self.root / "sweep.lock"

    def file(self, number: int, kind: str) -> Path:
        """Return the "json", "log" or "lock" of a point, which counts from 1."""
        return self.root / "points" / f"{number}.{kind}"

    def write_state(self, number: int, state: PointState) -> None:
        """Write the state of a point. A full disk is no error: a state is not a result."""
        with suppress(OSError):
            write_atomically(
                self.file(number, "json"), json.dumps(asdict(state), ensure_ascii=False) + "\n"
            )

    def state(self, number: int) -> PointState:
        """Return the state in a point's file; without a readable file the point is waiting."""
        try:
            return read_json(self.file(number, "json"), PointState)
        except (FileNotFoundError, BadFile):
            return PointState()

    def present_states(self) -> list[PointState]:
        """Return the states of all points; one that runs without a process is waiting."""
        num_points = len(list(self.root.glob("points/*.json")))
        return [self._present_state(number + 1) for number in range(num_points)]

    def _present_state(self, number: int) -> PointState:
        for _ in range(2):  # it may end between the two files
            state = self.state(number)
            if state.state != RUNNING or lock_holder(self.file(number, "lock")) is not None:
                return state
        return PointState(
            state.name, reason=f"its process ended ({state.process})", attempts=state.attempts
        )


def sweeps_in(results: Path) -> list[Sweep]:
    """Return the sweeps in a results folder, the newest first."""
    files = list(results.glob("sweeps/*/sweep.json"))
    files.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return [Sweep(path.parent) for path in files]


def render_status(results: Path, name: str | None = None) -> str:
    """Return the progress of one sweep (its id or the beginning of it), or of the newest and all running sweeps.

    Raises:
        UsageError: the sweep does not exist.
        DataError: the sweep is damaged.
    """
    sweeps = sweeps_in(results)
    if not sweeps:
        raise UsageError(
            f"no sweep under {results / 'sweeps'}: `longsumbench run -m` starts one; or set --results-dir"
        )
    if name is None:
        newest, *older = sweeps
        matches = [newest] + [sweep for sweep in older if lock_holder(sweep.lock) is not None]
        return "\n\n".join(map(_render_sweep, matches))
    matches = [sweep for sweep in sweeps if sweep.root.name.startswith(name)]
    if len(matches) != 1:
        names = ", ".join(sweep.root.name for sweep in sweeps)
        problem = f"{len(matches)} sweeps begin with" if matches else "no sweep is called"
        raise UsageError(f"{problem} '{name}'; there are {names}")
    return _render_sweep(matches[0])


def _render_sweep(sweep: Sweep) -> str:
    start, conductor, states = sweep.start(), lock_holder(sweep.lock), sweep.present_states()
    begun = datetime.fromtimestamp(start.started).astimezone().strftime("%Y-%m-%d %H:%M")
    origin = f"by {conductor.name}" if conductor else f"on {start.host}"
    lines = [
        f"sweep {sweep.root.name}: {describe_sweep(sweep, states)}",
        break_command(redact(shlex.join(start.command)), terminal_width()),
        f"started {begun} {origin}, launcher {start.launcher}; {describe_progress(states)}",
        "",
        status_table(sweep, states),
    ]
    return "\n".join(lines)


def describe_sweep(sweep: Sweep, states: Sequence[PointState]) -> str:
    """Return whether a sweep is running, ended or interrupted."""
    if lock_holder(sweep.lock) is not None:
        return "running"
    ended = states and all(state.state in ENDED for state in states)
    return "ended" if ended else "interrupted; the same command continues it"


def describe_progress(states: Sequence[PointState]) -> str:
    """Return the number of points by state, and the time left."""
    words = [state.state for state in states]
    parts = []
    for word in (DONE, SKIPPED, RUNNING, FAILED, WAITING):
        if word in words:
            parts.append(f"{words.count(word)} {word}")
    seconds = seconds_left(states)
    if seconds is not None and {RUNNING, WAITING} & set(words):
        parts.append(f"about {format_duration(seconds)} left")
    return ", ".join(parts) or "no runs yet"


def seconds_left(states: Sequence[PointState]) -> float | None:
    """Estimate the seconds that a sweep still takes from the mean time of its points; None before one is done."""
    took = [state.seconds for state in states if state.state == DONE]
    if not took:
        return None
    mean = sum(took) / len(took)
    running = [max(0.0, mean - state.seconds) for state in states if state.state == RUNNING]
    num_waiting = sum(state.state == WAITING for state in states)
    return (mean * num_waiting + sum(running)) / max(1, len(running))


def status_table(sweep: Sweep, states: Sequence[PointState]) -> str:
    """Return a table of the points: state, time, score, and the reason or present step."""
    rows, logs = [], []
    for number, state in enumerate(states, start=1):
        took = format_duration(state.seconds) if state.state in (DONE, RUNNING, FAILED) else ""
        score = "" if state.score is None else f"{state.score:.1f}"
        cells = (state.name, state.state, took, score, describe_point(state))
        rows.append([number, *(escape_line(redact(cell)) for cell in cells)])
        log = sweep.file(number, "log")
        if state.state == FAILED and log.is_file():
            logs.append(f"log of run {number}: {log}")
    table = plain_table(rows, ["run", "settings", "state", "time", "score", ""])
    return "\n".join([table, *logs])


def describe_point(state: PointState) -> str:
    """Return what a point is doing, or why it failed."""
    if state.state == RUNNING:
        attempt = f", attempt {state.attempts}" if state.attempts > 1 else ""
        return f"{state.process}{attempt}{state.doing and f': {state.doing}'}"
    return state.reason or ("finished before" if state.state == SKIPPED else "")
