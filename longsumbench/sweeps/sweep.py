"""The points of one `longsumbench run`: a single point, or a sweep in which failed points do not affect the others."""

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from longsumbench.core import settings_without_effect
from longsumbench.errors import PointsFailed, SuiteError
from longsumbench.formatting import escape_line, format_count, format_duration
from longsumbench.progress import Progress
from longsumbench.runs.overrides import swept_settings
from longsumbench.runs.pipeline import needs_no_work, run_point, score_baselines
from longsumbench.runs.plan import Point, plan
from longsumbench.runs.record import RunRecord, TornRecord
from longsumbench.runs.results import Results
from longsumbench.sweeps.launchers import HERE, Engine, search_settings
from longsumbench.sweeps.state import (
    DONE,
    FAILED,
    RUNNING,
    SKIPPED,
    PointState,
    Sweep,
    describe_progress,
    status_table,
)
from longsumbench.sweeps.worker import PointTask

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOOKS = 15.0  # at the states of points in other processes
_SECONDS_BETWEEN_FIRST_LOOKS = 3.0  # until a point ends
_MOST_SHOWN = 2  # points


@dataclass
class Launch:
    """The points of one `longsumbench run`, and their outcome.

    Attributes:
        points: as planned. A search begins with the settings that its points share; then they are those it asked for.
        command: everything as typed, for the records.
        sweep: True if a point's failure leaves the others untouched.
        engine: how the points are chosen, and where they run.
        words, swept: the overrides with one value, and those with several values or a range.
        config_dir: a folder with more YAML files.
        states: identity → state of each run of the sweep so far. Points that are the same run share it.
        finished: the records so far, baselines included.
        table: a line for each run of a sweep that has ended.
    """

    points: list[Point]
    command: tuple[str, ...] = ()
    sweep: bool = False
    engine: Engine = field(default_factory=Engine)
    words: Sequence[str] = ()
    swept: Sequence[str] = ()
    config_dir: str | None = None
    states: dict[str, PointState] = field(default_factory=dict)
    finished: list[RunRecord] = field(default_factory=list)
    table: str = ""

    def start(self) -> None:
        """Run the points, those that are the same run once; with a sweeper, those that it asks for.

        Raises:
            SuiteError: the only point failed, or a launcher could not begin.
        """
        first, launcher, search = self.points[0], self.engine.launcher, self.engine.sweeper != HERE
        if not self.sweep:
            point = replace(first, command=self.command)
            self.finished += [run_point(point), *score_baselines(point, {first.identity})]
            return
        root, key = (
            Results.writable(first.config.results_dir).root,
            [f"{self.engine.settings['sweeper']}"],
        )
        sweep = Sweep.of(root, [*key, *self.words, *self.swept])
        with sweep.locked():
            count = (
                f"points that {self.engine.sweeper} chooses"
                if search
                else format_count(len(self.points), "point")
            )
            order = "one after the other" if launcher == HERE else f"by {launcher}"
            _log.info(f"a sweep of {count}: each is a run of one system on one dataset")
            _log.info(f"points run {order}; to watch them: longsumbench status {sweep.root.name}")
            sweep.begin(self.command, launcher)
            if search:
                self._search(sweep)
            else:
                self._run_points(self.points, sweep)
        states = [state.state for state in self.states.values()]
        self.table = status_table(sweep, list(self.states.values())) if len(self.points) > 1 else ""
        words = {DONE: "done", SKIPPED: "found finished", FAILED: "failed"}
        counts = ", ".join(f"{states.count(kind)} {word}" for kind, word in words.items())
        _log.info(f"{format_count(len(states), 'run')}: {counts}")

    def _search(self, sweep: Sweep) -> None:
        errors: list[SuiteError] = []
        if self.points.pop().config.dataset.split == "test":
            _log.info(
                "the search goes by the test split; to choose settings, use dataset.split=validation"
            )

        def score_of(overrides: list[str]) -> float | None:
            try:
                (point,) = plan([*self.words, *overrides], config_dir=self.config_dir)
            except SuiteError as error:
                _log.info(f"no score: {error}")
                errors.append(error)
                return None
            self.points.append(replace(point, name=" ".join(overrides)))
            self._run_points(self.points[-1:], sweep)
            return self.states[point.identity].score

        search_settings(self.engine.settings["sweeper"], self.swept, score_of)
        if errors and not self.states:
            raise errors[0]

    def _run_points(self, points: Sequence[Point], sweep: Sweep) -> None:
        tasks, times = [], Counter(point.identity for point in points)
        baseline_ids = {point.identity for point in points}
        for point in points:
            if point.identity not in self.states:
                if (more := times[point.identity] - 1) and point.name:
                    point = replace(
                        point,
                        name=f"{point.name} and {format_count(more, 'more point')}: the same run",
                    )
                self.states[point.identity] = PointState(point.name)
                tasks.append(
                    PointTask(
                        sweep, len(self.states), replace(point, command=self.command), baseline_ids
                    )
                )
                sweep.write_state(len(self.states), PointState(point.name))
        if same := len(points) - len(tasks):
            idle = set[str]().union(*(settings_without_effect(point.config) for point in points))
            idle_keys = ", ".join(key for key in swept_settings(self.swept) if key in idle)
            why = f" ({idle_keys} without effect)" if idle_keys else ""
            _log.info(f"{format_count(same, 'point')} left out: the same run as another point{why}")
        here = self.engine.launcher == HERE
        with (
            Progress("sweep", len(tasks), "points", paced=False) as progress,
            nullcontext()
            if here
            else _watching(sweep, progress),  # points in other processes write to their logs
        ):
            finished = {
                task.number for task in tasks if not here and needs_no_work(task.point.config)
            }
            ended = (
                (task, task.run()) for task in tasks if task.number in finished
            )  # without another process
            unfinished = [task for task in tasks if task.number not in finished]
            for task, state in chain(ended, self.engine.run(unfinished) if unfinished else ()):
                self.states[task.point.identity] = state
                for run in state.runs:
                    with suppress(FileNotFoundError, TornRecord):  # another process repeats it
                        self.finished.append(RunRecord.read(Path(run)))
                outcomes = {
                    DONE: f"done ({format_duration(state.seconds)})",
                    FAILED: f"failed: {state.reason}",
                }
                outcome = outcomes.get(state.state, "skipped: finished before")
                _log.info(f"point {task.number}/{len(self.states)}: {state.name}: {outcome}")
                progress.advance(1, describe_progress(list(self.states.values())))

    def records(self) -> list[RunRecord]:
        """Return the records of the points in their order, without baselines; a point that failed has none."""
        if not self.sweep:
            return self.finished[:1]
        records = {record.run_id: record for record in self.finished}
        runs = [
            Path(run).name for point in self.points for run in self.states[point.identity].runs[:1]
        ]
        return [records[run] for run in runs if run in records]

    def check_failed(self) -> None:
        """Raise PointsFailed if a point of a sweep, or one of its baselines, failed; a line for each reason."""
        points: dict[str, list[str]] = {}
        for state in self.states.values():
            if state.reason:
                points.setdefault(state.reason, []).append(state.name)
        if failed := sum(map(len, points.values())):
            ending = ", the others are kept" if failed < len(self.states) else ""
            lines = [
                f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}  {why}"
                for why, names in points.items()
            ]
            heading = f"{failed} of {format_count(len(self.states), 'point')} failed{ending}"
            raise PointsFailed(f"{heading}:\n" + "\n".join(map(escape_line, lines)))


@contextmanager
def _watching(sweep: Sweep, progress: Progress) -> Iterator[None]:
    """Show every few seconds how far the points of a sweep are, and what some of them do.

    Until the first point ends, each step that a point begins has a line.
    """
    ended, steps = threading.Event(), dict[int, str]()

    def watch() -> None:
        while not ended.wait(
            _SECONDS_BETWEEN_LOOKS if progress.done else _SECONDS_BETWEEN_FIRST_LOOKS
        ):
            states = sweep.present_states()
            for number, state in enumerate(states, start=1):
                step = state.doing.partition(":")[0] or "begins"
                if state.state == RUNNING and not progress.done and steps.get(number) != step:
                    steps[number] = step
                    _log.info(f"point {number}/{len(states)}: {state.name}: {step}")
            doing = [state.doing for state in states if state.state == RUNNING and state.doing]
            progress.advance(0, "; ".join([describe_progress(states), *doing[:_MOST_SHOWN]]))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
