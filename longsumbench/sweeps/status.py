"""What a sweep is at: read from its files alone, so that any shell on any machine that sees them may ask."""

import shlex
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from tabulate import tabulate

from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import escape_line, for_stdout, format_duration
from longsumbench.progress import print_line
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

_LONGEST = 86_400.0  # seconds between two looks, for some number is too large to sleep


def render_status(results: Path, name: str | None = None) -> str:
    """Return what there is to say of one sweep, or of all that are running and the newest.

    Args:
        results: a results folder.
        name: the sweep's, or the beginning of it.

    Raises:
        UsageError: there is no such sweep, or no sweep at all.
        DataError: the sweep, or every sweep, is damaged.
    """
    sweeps = list(sweeps_in(results))
    if not sweeps:
        raise UsageError(
            f"no sweep under {results / 'sweeps'}: `longsumbench run -m` starts one; or name --results-dir"
        )
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
    """Yield the sweeps that can be read, and name the others on stderr.

    Raises:
        DataError: none can be read.
    """
    damaged: list[DataError] = []
    for sweep in sweeps:
        try:
            sweep.told()
            yield sweep
        except DataError as error:
            damaged.append(error)
    if len(damaged) == len(sweeps):
        raise damaged[0]
    for problem in damaged:
        print_line(f"left out: {problem}")


def heading(sweep: Sweep) -> str:
    """Return what a sweep is, and how far."""
    told, states = sweep.told(), current(sweep)
    conductor = sweep.conductor()
    begun = datetime.fromtimestamp(told["started"]).astimezone().strftime("%Y-%m-%d %H:%M")
    where = f"by {conductor.name}" if conductor else f"on {told['host']}"
    by = "" if told["launcher"] == "basic" else f", launcher {told['launcher']}"
    lines = [f"sweep {sweep.id}: {describe_state(states, conductor is not None)}", shlex.join(told["command"])]
    return "\n".join([*lines, f"begun {begun} {where}{by}; {describe_progress(states)}"])


def describe_state(states: Sequence[PointState], conducted: bool) -> str:
    """Say in a word what a sweep is at."""
    if conducted:  # of a search there may be more points to come
        return "running"
    if states and all(state.state in ENDED for state in states):
        return "ended"
    return "interrupted; the same command continues it"


def current(sweep: Sweep) -> list[PointState]:
    """Return the present states of all points."""
    return [present_state(sweep, number) for number in range(1, len(sweep.told()["points"]) + 1)]


def present_state(sweep: Sweep, number: int) -> PointState:
    """Return the present state of a point; one that claims to be running, and that nobody works on, is waiting."""
    state = sweep.state(number)
    if state.state == RUNNING and sweep.worker(number) is None:
        state = sweep.state(number)  # it may have ended meanwhile
        if state.state == RUNNING:
            lost = f"lost its process ({state.host} {state.pid})"
            reason = lost if sweep.conductor() is not None else "was at work when the sweep was interrupted"
            return PointState(WAITING, attempts=state.attempts, reason=reason)
    return state


def describe_progress(states: Sequence[PointState]) -> str:
    """Say how many points are done, running and failed, and how long the others will take."""
    count = {name: sum(state.state == name for state in states) for name in (DONE, RUNNING, FAILED, WAITING)}
    skipped = sum(state.state in (FOUND, SAME) for state in states)
    told = [f"{count[DONE]} done"] if count[DONE] else []
    told += [f"{skipped} skipped"] if skipped else []
    told += [f"{count[name]} {name}" for name in (RUNNING, FAILED, WAITING) if count[name]]
    left = seconds_left(states)
    if left is not None and (count[RUNNING] or count[WAITING]):
        told.append(f"about {format_duration(left)} left")
    return ", ".join(told) or "no points yet"


def status_table(sweep: Sweep) -> str:
    """Return a line a point: what became of it, how long it took, and why it failed or what it is doing."""
    rows = []
    for number, name in enumerate(sweep.told()["points"], start=1):
        state = present_state(sweep, number)
        score = "" if state.score is None else f"{state.score:.1f}"
        took = format_duration(state.seconds) if state.state in (DONE, RUNNING, FAILED) else ""
        rows.append([number, *map(escape_line, (name, _word(state), took, score, _note(sweep, number, state)))])
    headers = ["point", "settings", "state", "time", "score", ""]
    return tabulate(
        rows, headers=headers, tablefmt="plain", disable_numparse=True, maxcolwidths=[None, 60, *[None] * 4]
    )


def _word(state: PointState) -> str:
    """Return a point's state for people."""
    return "skipped" if state.state in (FOUND, SAME) else state.state


def _note(sweep: Sweep, number: int, state: PointState) -> str:
    """Return what else there is to say of a point."""
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
    """Show it again and again, until interrupted.

    Raises:
        UsageError: there is no such sweep, or no such number of seconds.
    """
    if not seconds > 0:
        raise UsageError(f"--watch {seconds:g}: it takes a number of seconds above 0")
    while True:
        text = render_status(results, name)
        print("\x1b[2J\x1b[H" + for_stdout(text), flush=True)
        time.sleep(min(seconds, _LONGEST))
