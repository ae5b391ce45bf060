"""The points of one `longsumbench run`: a single point, or a sweep in which failed points do not affect the others."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tabulate import tabulate

from longsumbench.errors import PointsFailed, SuiteError
from longsumbench.formatting import escape_line, format_count, format_duration
from longsumbench.progress import Progress
from longsumbench.runs.baselines import BASELINES, score_baselines
from longsumbench.runs.pipeline import Point, run_point
from longsumbench.runs.plan import Planned, check_scale, plan, split_sweep_overrides
from longsumbench.runs.record import Results, RunRecord, TornRecord
from longsumbench.sweeps.launchers import HERE, Engine
from longsumbench.sweeps.search import search_settings
from longsumbench.sweeps.state import DONE, FAILED, FOUND, SAME, PointState, Sweep
from longsumbench.sweeps.status import describe_progress, status_table
from longsumbench.sweeps.worker import PointTask

_log = logging.getLogger(__name__)

_DIED = "its process died twice (killed, out of memory, or over timeout_minutes); the same command tries it again"


@dataclass
class Launch:
    """The points of one `longsumbench run`, and their outcome.

    Attributes:
        points: to be run, in this order; for a search, the settings that its points share.
        command: everything as typed, for the records.
        sweep: True if a point's failure leaves the others untouched.
        engine: how the points are chosen, and where they run.
        words: the overrides as typed, without those of the engine.
        finished: the records so far, baselines included.
        names, states: of the points of a sweep so far; point 1 is the first.
        table: a line for each point of a sweep that has ended.
    """

    points: Sequence[Planned]
    command: tuple[str, ...] = ()
    sweep: bool = False
    engine: Engine = field(default_factory=Engine)
    words: Sequence[str] = ()
    finished: list[RunRecord] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    states: list[PointState] = field(default_factory=list)
    table: str = ""
    _same: list[int] = field(default_factory=list)  # for each point, the number of the first one that is the same run
    _numbers: dict[str, int] = field(default_factory=dict)  # identity → number of that point

    def start(self) -> None:
        """Run the points, those that are the same run once; with a sweeper, those that it asks for.

        Raises:
            SuiteError: the only point failed, a launcher could not begin, or a point is too large for a CPU.
        """
        if self.engine.sweeper != HERE:
            self._search()
        elif self.sweep:
            self._check_scale(self.points)
            with self._conducting([planned.identity for planned in self.points]) as (folder, since):
                self._run_points(self.points, folder, since)
        else:
            self._check_scale(self.points)
            (planned,) = self.points
            point = Point(planned.config, planned.variant, self.command)
            self.finished.append(run_point(point))
            self.finished += score_baselines(point, {planned.identity})

    def _check_scale(self, points: Sequence[Planned]) -> None:
        if not self.engine.on_cluster:  # whose nodes may have GPUs
            check_scale(points)

    def _search(self) -> None:
        """Run the points that the sweeper asks for, one after the other."""
        shared, searched = split_sweep_overrides(self.words, self.engine.config_dir)
        self.points = plan(shared, config_dir=self.engine.config_dir, probe=True)
        refused: list[SuiteError] = []
        if self.points[0].config.dataset.split == "test":
            _log.info("the search goes by the test split; to choose settings, use dataset.split=validation")

        def score_of(chosen: list[str]) -> float | None:
            try:
                (planned,) = plan([*shared, *chosen], config_dir=self.engine.config_dir)
                self._check_scale([planned])
            except SuiteError as error:
                _log.info(f"no score: {error}")
                refused.append(error)
                return None
            self._run_points([replace(planned, name=" ".join(chosen))], folder, since)
            return self.states[self._numbers[planned.identity] - 1].score

        settings = self.engine.settings["sweeper"]
        with self._conducting([f"{settings}", *self.words]) as (folder, since):
            search_settings(settings, searched, score_of)
        if refused and not self.names:
            raise refused[0]

    @contextmanager
    def _conducting(self, key: Sequence[str]) -> Iterator[tuple[Sweep, float]]:
        """Be the only process that runs the sweep of a key; yield its folder and the time of its beginning."""
        results, launcher = Results.writable(self.points[0].config.results_dir), self.engine.launcher
        with (folder := Sweep.of(results.root, key)).locked():
            if launcher != HERE:
                _log.info(f"points run by {launcher}; to watch them: longsumbench status {folder.root.name}")
            yield folder, folder.begin(self.command, launcher)
        self.table = status_table(folder, self.names, self.states) if len(self.names) > 1 else ""
        ended = [self.states[number - 1].state for number in self._numbers.values()]
        done, found, failed = (ended.count(state) for state in (DONE, FOUND, FAILED))
        _log.info(f"{format_count(len(ended), 'run')}: {done} done, {found} found finished, {failed} failed")

    def _run_points(self, points: Sequence[Planned], folder: Sweep, since: float) -> None:
        """Run points of a sweep; keep their states and records."""
        tasks, taken = [], {planned.identity for planned in points if planned.config.model.name in BASELINES}
        self.names += [planned.name for planned in points]
        self.states += [PointState()] * len(points)
        folder.write_names(self.names)
        for planned in points:
            number = len(self._same) + 1
            self._same.append(self._numbers.setdefault(planned.identity, number))
            if self._same[-1] == number:
                tasks.append(PointTask(folder, number, planned, self.command, since, taken))
            else:
                self._end(folder, number, PointState(SAME, reason=f"the same run as point {self._same[-1]}"))
        with Progress("sweep", len(tasks), "points", paced=False) as progress:
            for task, state in self.engine.run(tasks):
                self._end(folder, task.number, state or PointState(FAILED, reason=_DIED))
                progress.advance(1, describe_progress(self.states))

    def _end(self, folder: Sweep, number: int, state: PointState) -> None:
        """Keep and log the last state of a point."""
        self.states[number - 1] = state
        if state.state == SAME or state.reason == _DIED:  # no process has written it
            folder.write_state(number, state)
        for run in state.runs:
            with suppress(FileNotFoundError, TornRecord):  # another process repeats it
                self.finished.append(RunRecord.read(Path(run)))
        how = {DONE: f"done ({format_duration(state.seconds)})", FAILED: f"failed: {state.reason}"}
        outcome = how.get(state.state, f"skipped: {state.reason or 'finished before'}")
        _log.info(f"point {number}/{len(self.names)}: {self.names[number - 1]}: {outcome}")

    def records(self) -> list[RunRecord]:
        """Return the records of the points in their order, without baselines; a point that failed has none."""
        if not self.sweep:
            return self.finished[:1]
        records = {record.run_id: record for record in self.finished}
        runs = (self.states[number - 1].runs[:1] for number in self._same)
        return [records[Path(run).name] for first in runs for run in first if Path(run).name in records]

    def check_failed(self) -> None:
        """Check that no point of a sweep failed.

        Raises:
            PointsFailed: some did; a table says why.
        """
        pairs = list(zip(self.names, self.states, strict=True))
        failed = [(name, state.reason) for name, state in pairs if state.state == FAILED]
        baselines = [
            (f"{one} with {name}", why) for name, state in pairs for one, why in state.failed_baselines.items()
        ]
        if failed or baselines:
            rows = [map(escape_line, pair) for pair in [*failed, *baselines]]
            reasons = tabulate(rows, headers=["point", "reason"], tablefmt="plain")
            also = f" and {format_count(len(baselines), 'baseline')}" if baselines else ""
            counted = f"{len(failed)} of {format_count(len(pairs), 'point')}{also}"
            raise PointsFailed(f"{counted} failed, the others are kept:\n{reasons}")
