"""Show the progress of sweeps. It reads only their files, so it works on any machine with the results folder."""

import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from longsumbench.cache.locks import lock_holder
from longsumbench.errors import UsageError
from longsumbench.formatting import break_command, escape_line, format_duration, plain_table
from longsumbench.render.tables import terminal_width
from longsumbench.sweeps.state import DONE, ENDED, FAILED, RUNNING, SKIPPED, WAITING, PointState, Sweep


def sweeps_in(results: Path) -> list[Sweep]:
    """Return the sweeps in a results folder, the newest first."""
    files = sorted(results.glob("sweeps/*/sweep.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [Sweep(path.parent) for path in files]


def render_status(results: Path, name: str | None = None) -> str:
    """Return the progress of one sweep (its id or the beginning of it), or of the newest and all running sweeps.

    Raises:
        UsageError: the sweep does not exist.
        DataError: the sweep is damaged.
    """
    sweeps = sweeps_in(results)
    if not sweeps:
        raise UsageError(f"no sweep under {results / 'sweeps'}: `longsumbench run -m` starts one; or set --results-dir")
    if name is None:
        matches = [sweep for sweep in sweeps if sweep == sweeps[0] or lock_holder(sweep.lock) is not None]
    else:
        matches = [sweep for sweep in sweeps if sweep.root.name.startswith(name)]
        if len(matches) != 1:
            many = f"{len(matches)} sweeps begin with '{name}'" if matches else f"no sweep is called '{name}'"
            raise UsageError(f"{many}; there are {', '.join(sweep.root.name for sweep in sweeps)}")
    return "\n\n".join(map(_render_sweep, matches))


def _render_sweep(sweep: Sweep) -> str:
    """Return the state, command, progress and points of a sweep."""
    start, conductor, states = sweep.start(), lock_holder(sweep.lock), sweep.present_states()
    ended = states and all(state.state in ENDED for state in states)
    state = "running" if conductor else "ended" if ended else "interrupted; the same command continues it"
    begun = datetime.fromtimestamp(start.started).astimezone().strftime("%Y-%m-%d %H:%M")
    origin = f"by {conductor.name}" if conductor else f"on {start.host}"
    heading = f"sweep {sweep.root.name}: {state}\n{break_command(shlex.join(start.command), terminal_width())}\n"
    heading += f"started {begun} {origin}, launcher {start.launcher}; {describe_progress(states)}"
    return f"{heading}\n\n{status_table(sweep, states)}"


def describe_progress(states: Sequence[PointState]) -> str:
    """Return the number of points by state, and the time left."""
    words = [state.state for state in states]
    parts = [f"{words.count(word)} {word}" for word in (DONE, SKIPPED, RUNNING, FAILED, WAITING) if word in words]
    if (seconds := seconds_left(states)) is not None and {RUNNING, WAITING} & set(words):
        parts.append(f"about {format_duration(seconds)} left")
    return ", ".join(parts) or "no points yet"


def seconds_left(states: Sequence[PointState]) -> float | None:
    """Estimate the seconds that a sweep still takes from the mean time of its points; None before one is done."""
    took = [state.seconds for state in states if state.state == DONE]
    if not took:
        return None
    mean, running = sum(took) / len(took), [state for state in states if state.state == RUNNING]
    to_do = mean * sum(state.state == WAITING for state in states)
    return (to_do + sum(max(0.0, mean - state.seconds) for state in running)) / max(1, len(running))


def status_table(sweep: Sweep, states: Sequence[PointState]) -> str:
    """Return a table of the points: state, time, score, and the reason or present step."""
    rows = []
    for number, state in enumerate(states, start=1):
        took = format_duration(state.seconds) if state.state in (DONE, RUNNING, FAILED) else ""
        score = "" if state.score is None else f"{state.score:.1f}"
        rows.append([number, *map(escape_line, (state.name, state.state, took, score, _note(state)))])
    failed = [number for number, state in enumerate(states, start=1) if state.state == FAILED]
    logs = [f"log of point {number}: {log}" for number in failed if (log := sweep.file(number, "log")).is_file()]
    return "\n".join([plain_table(rows, ["point", "settings", "state", "time", "score", ""]), *logs])


def _note(state: PointState) -> str:
    if state.state == RUNNING:
        attempt = f", attempt {state.attempts}" if state.attempts > 1 else ""
        return f"{state.process}{attempt}{state.doing and f': {state.doing}'}"
    return state.reason or ("finished before" if state.state == SKIPPED else "")
