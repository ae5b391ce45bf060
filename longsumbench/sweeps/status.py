"""Show the progress of sweeps. It reads only their files, so it works on any machine with the results folder."""

import logging
import shlex
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from tabulate import tabulate

from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import escape_line, for_stdout, format_duration
from longsumbench.sweeps.state import (
    DONE,
    ENDED,
    FAILED,
    FOUND,
    RUNNING,
    SAME,
    WAITING,
    PointState,
    Sweep,
    seconds_left,
    sweeps_in,
)

_log = logging.getLogger(__name__)

_LONGEST = 86_400.0  # most seconds between two updates: larger values can overflow `sleep`


def render_status(results: Path, name: str | None = None) -> str:
    """Return the progress of one sweep (its id or the beginning of it), or of the newest and all running sweeps.

    Raises:
        UsageError: the sweep does not exist.
        DataError: the sweep, or every sweep, is damaged.
    """
    sweeps = list(sweeps_in(results))
    if not sweeps:
        raise UsageError(f"no sweep under {results / 'sweeps'}: `longsumbench run -m` starts one; or set --results-dir")
    if name is not None:
        chosen = [sweep for sweep in sweeps if sweep.id.startswith(name)]
        if len(chosen) != 1:
            many = f"{len(chosen)} sweeps begin with '{name}'" if chosen else f"no sweep is called '{name}'"
            raise UsageError(f"{many}; there are {', '.join(sweep.id for sweep in sweeps)}")
    else:
        readable = list(_leave_out_damaged(sweeps))
        chosen = [sweep for number, sweep in enumerate(readable) if number == 0 or sweep.conductor() is not None]
    return "\n\n".join(f"{heading(sweep)}\n\n{status_table(sweep)}" for sweep in chosen)


def _leave_out_damaged(sweeps: Sequence[Sweep]) -> Iterator[Sweep]:
    """Yield the readable sweeps and report the others on stderr; raise an error if none is readable."""
    damaged: list[DataError] = []
    for sweep in sweeps:
        try:
            sweep.content()
            yield sweep
        except DataError as error:
            damaged.append(error)
    if len(damaged) == len(sweeps):
        raise damaged[0]
    for problem in damaged:
        _log.info(f"left out: {problem}")


def heading(sweep: Sweep) -> str:
    """Return the state, command and progress of a sweep."""
    content, states = sweep.content(), current(sweep)
    conductor = sweep.conductor()
    begun = datetime.fromtimestamp(content["started"]).astimezone().strftime("%Y-%m-%d %H:%M")
    where = f"by {conductor.name}" if conductor else f"on {content['host']}"
    by = "" if content["launcher"] == "basic" else f", launcher {content['launcher']}"
    lines = [f"sweep {sweep.id}: {describe_state(states, conductor is not None)}", shlex.join(content["command"])]
    return "\n".join([*lines, f"started {begun} {where}{by}; {describe_progress(states)}"])


def describe_state(states: Sequence[PointState], conducted: bool) -> str:
    """Return the state of a sweep in a word."""
    if conducted:  # a search may add more points
        return "running"
    if states and all(state.state in ENDED for state in states):
        return "ended"
    return "interrupted; the same command continues it"


def current(sweep: Sweep) -> list[PointState]:
    """Return the present states of all points."""
    return [present_state(sweep, number) for number in range(1, len(sweep.content()["points"]) + 1)]


def present_state(sweep: Sweep, number: int) -> PointState:
    """Return the present state of a point; without a process, a running point is waiting."""
    state = sweep.state(number)
    if state.state == RUNNING and sweep.worker(number) is None:
        state = sweep.state(number)  # it may have ended meanwhile
        if state.state == RUNNING:
            lost = f"lost its process ({state.host} {state.pid})"
            reason = lost if sweep.conductor() is not None else "was running when the sweep was interrupted"
            return PointState(WAITING, attempts=state.attempts, reason=reason)
    return state


def describe_progress(states: Sequence[PointState]) -> str:
    """Return the number of points by state, and the time left."""
    count = {name: sum(state.state == name for state in states) for name in (DONE, RUNNING, FAILED, WAITING)}
    skipped = sum(state.state in (FOUND, SAME) for state in states)
    parts = [f"{count[DONE]} done"] if count[DONE] else []
    parts += [f"{skipped} skipped"] if skipped else []
    parts += [f"{count[name]} {name}" for name in (RUNNING, FAILED, WAITING) if count[name]]
    left = seconds_left(states)
    if left is not None and (count[RUNNING] or count[WAITING]):
        parts.append(f"about {format_duration(left)} left")
    return ", ".join(parts) or "no points yet"


def status_table(sweep: Sweep) -> str:
    """Return a table of the points: state, time, score, and the reason or present step."""
    rows = []
    for number, name in enumerate(sweep.content()["points"], start=1):
        state = present_state(sweep, number)
        score = "" if state.score is None else f"{state.score:.1f}"
        took = format_duration(state.seconds) if state.state in (DONE, RUNNING, FAILED) else ""
        rows.append([number, *map(escape_line, (name, _word(state), took, score, _note(sweep, number, state)))])
    headers = ["point", "settings", "state", "time", "score", ""]
    return tabulate(
        rows, headers=headers, tablefmt="plain", disable_numparse=True, maxcolwidths=[None, 60, *[None] * 4]
    )


def _word(state: PointState) -> str:
    return "skipped" if state.state in (FOUND, SAME) else state.state


def _note(sweep: Sweep, number: int, state: PointState) -> str:
    if state.state == FAILED:
        log = sweep.log(number)
        return f"{state.reason}{f' ({log})' if log.is_file() else ''}"
    if state.state == RUNNING:
        where = f"job {state.job} on {state.host}" if state.job else f"{state.host} {state.pid}"
        again = f", attempt {state.attempts}" if state.attempts > 1 else ""
        return f"{where}{again}{state.doing and f': {state.doing}'}"
    if state.state == FOUND:
        return "finished before"
    return state.reason


def describe_outcome(state: PointState) -> str:
    """Return in a few words how a point ended."""
    if state.state == DONE:
        return f"done ({format_duration(state.seconds)})"
    if state.state == FAILED:
        return f"failed: {state.reason}"
    return f"skipped: {state.reason or 'finished before'}"


def watch(results: Path, name: str | None, seconds: float) -> None:
    """Show the progress repeatedly until interrupted.

    Raises:
        UsageError: the sweep does not exist, or `seconds` is not above 0.
    """
    if not seconds > 0:
        raise UsageError(f"--watch {seconds:g}: the number of seconds must be above 0")
    while True:
        text = render_status(results, name)
        print("\x1b[2J\x1b[H" + for_stdout(text), flush=True)
        time.sleep(min(seconds, _LONGEST))
