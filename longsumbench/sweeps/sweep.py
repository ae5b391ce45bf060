"""The points of one `longsumbench run`: a single point, or a sweep in which failed points do not affect the others."""

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from longsumbench.core import settings_without_effect
from longsumbench.errors import PointsFailed, SuiteError
from longsumbench.formatting import escape_line, format_count, format_duration
from longsumbench.progress import Progress
from longsumbench.runs.overrides import swept_settings
from longsumbench.runs.pipeline import needs_no_work, run_point, score_baselines
from longsumbench.runs.plan import PlannedRun, plan
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

# At the states of points in other processes; the first is until a point ends
_SECONDS_BETWEEN_FIRST_LOOKS = 3.0
_SECONDS_BETWEEN_LOOKS = 15.0
# Points whose steps are in a line
_MOST_SHOWN = 2


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
        states: settings hash → state of each run of the sweep so far. Points that are the same run share it.
        finished: the records so far, baselines included.
        table: a line for each run of a sweep that has ended.
    """

    points: list[PlannedRun]
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
        if not self.sweep:
            point = replace(self.points[0], command=self.command)
            self.finished += [run_point(point), *score_baselines(point, {point.settings_hash})]
            return
        root = Results.writable(self.points[0].config.results_dir).root
        sweep = Sweep.of(root, [str(self.engine.settings["sweeper"]), *self.words, *self.swept])
        is_search, launcher = self.engine.sweeper != HERE, self.engine.launcher
        with sweep.locked():
            count = format_count(len(self.points), "run")
            if is_search:
                count = f"runs that {self.engine.sweeper} chooses"
            order = "one after the other" if launcher == HERE else f"by {launcher}"
            _log.info(f"a sweep of {count}: each of one system on one dataset")
            _log.info(f"they run {order}; to watch them: longsumbench status {sweep.root.name}")
            sweep.begin(self.command, launcher)
            if is_search:
                self._search(sweep)
            else:
                self._run_points(self.points, sweep)
        if len(self.points) > 1:
            self.table = status_table(sweep, list(self.states.values()))
        states = [state.state for state in self.states.values()]
        counts = [
            f"{states.count(DONE)} done",
            f"{states.count(SKIPPED)} found finished",
            f"{states.count(FAILED)} failed",
        ]
        _log.info(f"{format_count(len(states), 'run')}: {', '.join(counts)}")

    def _search(self, sweep: Sweep) -> None:
        errors: list[SuiteError] = []
        if self.points.pop().config.dataset.split == "test":
            _log.info(
                "the search goes by the test split; to choose settings, use dataset.split=validation"
            )

        def run_trial(overrides: list[str]) -> float | None:
            try:
                (point,) = plan([*self.words, *overrides], config_dir=self.config_dir)
            except SuiteError as error:
                _log.info(f"no score: {error}")
                errors.append(error)
                return None
            self.points.append(replace(point, name=" ".join(overrides)))
            self._run_points(self.points[-1:], sweep)
            return self.states[point.settings_hash].score

        search_settings(self.engine.settings["sweeper"], self.swept, run_trial)
        if errors and not self.states:
            raise errors[0]

    def _run_points(self, points: Sequence[PlannedRun], sweep: Sweep) -> None:
        """Run the points that are new; those whose runs are finished need no other process."""
        tasks = self._new_tasks(points, sweep)
        with Progress("sweep", len(tasks), "runs", paced=False) as progress:
            if self.engine.launcher == HERE:
                self._take_in(self.engine.run(tasks), progress)
                return
            # Points in other processes write to their logs, so that this process says how far they are.
            with _watching(sweep, progress):
                unfinished = []
                for task in tasks:
                    if needs_no_work(task.point.config):
                        self._take_in([(task, task.run())], progress)
                    else:
                        unfinished.append(task)
                if unfinished:
                    self._take_in(self.engine.run(unfinished), progress)

    def _new_tasks(self, points: Sequence[PlannedRun], sweep: Sweep) -> list[PointTask]:
        """Return the tasks of points, one for those that are the same run, as far as there are none yet."""
        tasks: list[PointTask] = []
        times = Counter(point.settings_hash for point in points)
        baseline_ids = set(times)
        for point in points:
            if point.settings_hash in self.states:
                continue
            name, num_others = point.name, times[point.settings_hash] - 1
            if name and num_others:
                name += f" and {num_others} more: the same run"
            state, number = PointState(name), len(self.states) + 1
            self.states[point.settings_hash] = state
            sweep.write_state(number, state)
            task_point = replace(point, name=name, command=self.command)
            tasks.append(PointTask(sweep, number, task_point, baseline_ids))
        num_same = len(points) - len(tasks)
        if num_same:
            idle = set[str]().union(*(settings_without_effect(point.config) for point in points))
            keys = [key for key in swept_settings(self.swept) if key in idle]
            why = f" ({', '.join(keys)} without effect)" if keys else ""
            _log.info(f"{format_count(num_same, 'run')} left out: the same as another run{why}")
        return tasks

    def _take_in(self, ended: Iterable[tuple[PointTask, PointState]], progress: Progress) -> None:
        """Keep the states and the records of points as they end, and say how each ended."""
        for task, state in ended:
            self.states[task.point.settings_hash] = state
            for run in state.runs:
                with suppress(FileNotFoundError, TornRecord):  # another process repeats it
                    self.finished.append(RunRecord.read(Path(run)))
            outcomes = {
                DONE: f"done ({format_duration(state.seconds)})",
                FAILED: f"failed: {state.reason}",
            }
            outcome = outcomes.get(state.state, "skipped: finished before")
            _log.info(f"run {task.number}/{len(self.states)}: {state.name}: {outcome}")
            progress.advance(1, describe_progress(list(self.states.values())))

    def records(self) -> list[RunRecord]:
        """Return the records of the points in their order, without baselines; a point that failed has none."""
        if not self.sweep:
            return self.finished[:1]
        records = {record.run_id: record for record in self.finished}
        # The first run of a point is its own; those of its baselines follow.
        own_records = []
        for point in self.points:
            for run in self.states[point.settings_hash].runs[:1]:
                own_records.append(records.get(Path(run).name))
        return [record for record in own_records if record is not None]

    def check_failed(self) -> None:
        """Raise PointsFailed if a point of a sweep, or one of its baselines, failed; a line for each reason."""
        points: dict[str, list[str]] = {}
        for state in self.states.values():
            if state.reason:
                points.setdefault(state.reason, []).append(state.name)
        num_failed = sum(map(len, points.values()))
        if not num_failed:
            return
        ending = ", the others are kept" if num_failed < len(self.states) else ""
        lines = [f"{num_failed} of {format_count(len(self.states), 'run')} failed{ending}:"]
        for why, names in points.items():
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            lines.append(escape_line(f"{names[0]}{others}  {why}"))
        raise PointsFailed("\n".join(lines))


@contextmanager
def _watching(sweep: Sweep, progress: Progress) -> Iterator[None]:
    """Show every few seconds how far the points of a sweep are, and what some of them do.

    Until the first point ends, each step that a point begins has a line.
    """
    ended, steps = threading.Event(), dict[int, str]()

    def pause() -> float:
        return _SECONDS_BETWEEN_LOOKS if progress.done else _SECONDS_BETWEEN_FIRST_LOOKS

    def watch() -> None:
        while not ended.wait(pause()):
            states = sweep.present_states()
            for number, state in enumerate(states, start=1):
                step = state.doing.partition(":")[0] or "begins"
                if state.state == RUNNING and not progress.done and steps.get(number) != step:
                    steps[number] = step
                    _log.info(f"run {number}/{len(states)}: {state.name}: {step}")
            doing = [state.doing for state in states if state.state == RUNNING and state.doing]
            progress.advance(0, "; ".join([describe_progress(states), *doing[:_MOST_SHOWN]]))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
