"""The points of one `longsumbench run`: carried out here, or by a launcher of Hydra's, and what became of them.

A point alone is run, and raises what goes wrong. A sweep has a folder (`state`), in which every point tells what
becomes of it: so a launcher may lose a process, or a machine, and no other point's result with it. What has not ended
is begun again, with the others at first, alone once it was at work when two processes died.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tabulate import tabulate

from longsumbench.errors import EnvironmentProblem, PointsFailed, SuiteError
from longsumbench.files import writable_folder
from longsumbench.formatting import escape_line, format_count
from longsumbench.progress import Progress
from longsumbench.runs.plan import Planned, format_override, plan, split_sweep_overrides
from longsumbench.runs.record import RunRecord, TornRecord
from longsumbench.sweeps.launchers import HERE, MOST_JOBS, Engine, LaunchBroke
from longsumbench.sweeps.state import DONE, ENDED, FAILED, SAME, PointState, Sweep, sweep_folder
from longsumbench.sweeps.status import describe_outcome, describe_progress, present_state, status_table
from longsumbench.sweeps.worker import Job, JobOutcome, Sent, check_scale, run_job

_log = logging.getLogger(__name__)

_ON_THIS_MACHINE = (HERE, "joblib")  # launchers
_PATIENCE = 2  # processes that died while at work on a point, before it is run alone
_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass
class Launch:
    """The points of one `longsumbench run`, and what became of them.

    Attributes:
        points: to be run, in this order.
        command: everything as typed, for the records.
        sweep: whether a point's failure leaves the others untouched.
        engine: how the points of a sweep are carried out.
        words: the overrides as typed, without Hydra's own; of settings that are searched, their ranges.
        finished: the records so far, baselines included.
        failed: name of a point → why.
        failed_baselines: name of a baseline and its point → reason.
        done: how many runs were done, others having been found finished.
    """

    points: Sequence[Planned]
    command: tuple[str, ...] = ()
    sweep: bool = False
    engine: Engine = field(default_factory=Engine)
    words: Sequence[str] = ()
    finished: list[RunRecord] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    failed_baselines: dict[str, str] = field(default_factory=dict)
    done: int = 0
    _said: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)
    _first: dict[str, int] = field(default_factory=dict)  # identity → number of the point that is this run
    _named: dict[int, str] = field(default_factory=dict)
    _same: dict[int, int] = field(default_factory=dict)  # number of a point → of the first one that is the same run
    _records: dict[int, RunRecord] = field(default_factory=dict)
    _told: str = ""
    _since: float = math.inf

    def start(self) -> None:
        """Run the points, those that are the same run once; with a sweeper, those that it asks for.

        Raises:
            SuiteError: the only point failed, a launcher could not begin, or a point is too large for a CPU.
        """
        if self.engine.sweeper != HERE:
            self._search()
            return
        self._check_scale(self.points)
        self._taken |= {planned.identity for planned in self.points}
        if not self.sweep:
            for planned in self.points:
                run_job(planned, self.command, self._taken, JobOutcome(self.finished), sweep=False)
            return
        with self._conducting([planned.identity for planned in self.points]) as folder:
            self._carry_out(folder, self.points)
        self._say_how_many()

    def _search(self) -> None:
        """Run the points that the engine's sweeper asks for, one after the other.

        Raises:
            SuiteError: the words are invalid at every point, or the sweeper could not start.
        """
        words, config_dir = self.words, self.engine.config_dir
        shared, searched = split_sweep_overrides(words, config_dir)
        varies = {format_override(word).partition("=")[0] for word in searched}
        refused: list[SuiteError] = []
        self.points = plan(shared, config_dir=config_dir, probe=True)  # one, that tells what all share
        if (split := self.points[0].config.dataset.split) == "test":
            self.say(
                f"the search goes by the {split} split: to choose settings, dataset.split=validation is the honest one"
            )
        with self._conducting([*self.engine.words, *words]) as folder:

            def ask(chosen: list[str]) -> float | Exception:
                name = " ".join(word for word in map(format_override, chosen) if word.partition("=")[0] in varies)
                try:
                    planned = plan(chosen, config_dir=config_dir)[0]
                    self._check_scale([planned])
                except SuiteError as error:
                    self.say(f"{name}: {error}")
                    refused.append(error)
                    return error
                self._carry_out(folder, [replace(planned, name=name)])
                state = folder.state(self._first[planned.identity])
                return SuiteError(state.reason) if state.score is None else state.score

            try:
                self.engine.search(ask, words, folder.root / "sweeper")
            except SuiteError as error:  # a sweeper's, too, that has not got a single score
                if refused and not self._named:
                    raise refused[0] from error
                if len(self.failed) < len(self._first) or not self._first:
                    raise
            states = {number: folder.state(number) for number in self._named}
            scores = {number: state.score for number, state in states.items() if state.score is not None}
            if scores:
                first = max(scores, key=lambda number: scores[number])
                self.say(f"best of {len(states)}: {self._named[first]}, {scores[first]:.1f}")
        self._say_how_many()

    def _check_scale(self, points: Sequence[Planned]) -> None:
        if self.engine.launcher in _ON_THIS_MACHINE:  # a cluster's nodes may have GPUs
            check_scale(points)

    @contextmanager
    def _conducting(self, key: Sequence[str]) -> Iterator[Sweep]:
        """Be the only process that runs a sweep; `key` identifies it."""
        results = Path(self.points[0].config.results_dir).expanduser()
        folder = sweep_folder(writable_folder(results, "results_dir="), key)
        with folder.conducting(lambda who: self.say(f"another process conducts this sweep ({who}): waiting for it")):
            self._since = folder.begin(self.command, self.engine.launcher)
            yield folder
            self._told = status_table(folder)  # before another process conducts it

    def _carry_out(self, folder: Sweep, points: Sequence[Planned]) -> None:
        """Run some points of a sweep, and take note of what became of them."""
        numbers = folder.add([planned.name for planned in points])
        chosen = dict(zip(numbers, points, strict=True))
        self._named |= {number: planned.name for number, planned in chosen.items()}
        for number, planned in chosen.items():
            self._same[number] = first = self._first.setdefault(planned.identity, number)
            if first != number:
                folder.note(number, PointState(SAME, reason=f"the same run as point {first}"))
        fresh = {number: one for number, one in chosen.items() if self._first[one.identity] == number}
        job = Job(fresh, self.command, folder, taken=self._taken, since=self._since)
        try:
            if self.engine.launcher == HERE:
                self._work_here(job, chosen)
            elif fresh:
                self._launch(job)
        finally:  # finished points are reported also if a launcher fails
            for number in fresh:
                self._take(number, folder.state(number))

    def _work_here(self, job: Job, chosen: dict[int, Planned]) -> None:
        """Run points one after the other, in this process."""
        states = {number: job.sweep.state(number) for number in chosen}
        with Progress("sweep", len(chosen), "points", paced=False) as progress:
            for number, planned in chosen.items():
                same = states[number].reason
                self.say(f"{self._point(number)}: {planned.name}{same and f': {same}'}")
                if number in job.points:
                    job.work(number)
                states[number] = job.sweep.state(number)
                progress.advance(1, describe_progress(list(states.values())))

    def _launch(self, job: Job) -> None:
        """Let the launcher run points, until each of them has ended.

        Raises:
            SuiteError: it could not begin.
        """
        folder, left = job.sweep, list(job.points)
        deaths: Counter[int] = Counter()  # of a point's processes; those that a cluster began again did not die
        with self._watching(folder, left):
            while left:
                alone = [number for number in left if deaths[number] >= _PATIENCE][:1]
                chosen = alone or left[:MOST_JOBS]
                before = {number: folder.state(number).attempts for number in chosen}
                why = self._one_round(replace(job, order=tuple(chosen)), folder.new_launch())
                begun = [number for number in chosen if folder.state(number).attempts > before[number]]
                if not begun:
                    folder.add([])  # says it, if the disk is full
                    problem = f"hydra/launcher={self.engine.launcher} gave up before a point began"
                    raise EnvironmentProblem(f"{problem}: {why or f'see {folder.log(chosen[0])}'}")
                deaths.update(begun)
                for number in begun:
                    self._judge(job, number, deaths[number], last=bool(alone))
                left = [number for number in left if folder.state(number).state not in ENDED]

    def _one_round(self, job: Job, written: Path) -> str:
        """Launch jobs once, and wait until nobody works on their points; return what the launcher complained of."""
        why = ""
        try:
            self.engine.launch(Sent.of(job, written), len(job.order), written)
        except LaunchBroke as error:
            why = str(error)
        while any(job.sweep.worker(number) for number in job.order):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return why

    def _judge(self, job: Job, number: int, deaths: int, last: bool) -> None:
        """Say of a point whose process died, that often by now, that it has failed or will be tried again."""
        state, limit = job.sweep.state(number), job.points[number].config.timeout_minutes
        if state.state in ENDED:
            return
        if limit is not None and job.sweep.seconds_of_work(number) > 60 * limit:
            reason = f"hung, and was ended after timeout_minutes={limit:g}"
        elif last:
            reason = f"its process died {deaths} times, at last alone: killed, or out of memory"
        else:
            self.say(f"{self._point(number)}: its process died (killed, or out of memory?); it is tried again")
            return
        job.sweep.note(number, replace(state, state=FAILED, reason=reason, ended=time.time(), doing=""))

    @contextmanager
    def _watching(self, folder: Sweep, numbers: Sequence[int]) -> Iterator[None]:
        """Show meanwhile how far other processes are."""
        over = threading.Event()
        states: dict[int, PointState] = {}
        working = list(numbers)  # the files of those that have ended are not read again

        def look(progress: Progress) -> None:
            states.update((number, present_state(folder, number)) for number in working)
            for number in [one for one in working if states[one].state in ENDED]:
                working.remove(number)
                self.say(f"{self._point(number)}: {self._named[number]}: {describe_outcome(states[number])}")
            progress.advance(len(numbers) - len(working) - progress.done, describe_progress(list(states.values())))

        def watch() -> None:
            with Progress("sweep", len(numbers), "points", paced=False) as progress:
                while not over.wait(_SECONDS_BETWEEN_LOOKS):
                    look(progress)
                look(progress)

        self.say(
            f"{format_count(len(numbers), 'point')} by {self.engine.launcher};"
            f" from another shell: longsumbench status {folder.id}"
        )
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _take(self, number: int, state: PointState) -> None:
        """Take note of what became of a point; a record that others have begun to make anew is theirs."""
        for place, folder in enumerate(state.runs):
            with suppress(FileNotFoundError, TornRecord):
                self.finished.append(RunRecord.read(Path(folder)))
                if place == 0:
                    self._records[number] = self.finished[-1]
        self.failed_baselines |= state.failed_baselines
        self.done += state.state == DONE
        if state.state == FAILED:
            self.failed[self._named[number]] = state.reason

    def records(self) -> list[RunRecord]:
        """Return the records of the points in their order, without baselines; a point that failed has none."""
        if not self.sweep:
            return self.finished[:1]
        return [self._records[number] for number in self._same.values() if number in self._records]

    def check_failed(self) -> None:
        """Check that no point of a sweep failed.

        Raises:
            PointsFailed: some did; a table says why.
        """
        if not (failed := {**self.failed, **self.failed_baselines}):
            return
        rows = [map(escape_line, pair) for pair in failed.items()]
        reasons = tabulate(rows, headers=["point", "reason"], tablefmt="plain")
        baselines = f" and {format_count(len(self.failed_baselines), 'baseline')}" if self.failed_baselines else ""
        points = f"{len(self.failed)} of {format_count(self.planned(), 'point')}"
        raise PointsFailed(f"{points}{baselines} failed, the others are kept:\n{reasons}")

    def planned(self) -> int:
        """Return how many points there are so far, those that are the same run each counted."""
        return len(self._named) or len(self.points)

    def table(self) -> str:
        """Return what became of the points of a sweep, a line each; nothing of a single point."""
        return self._told if len(self._named) > 1 else ""

    def _point(self, number: int) -> str:
        return f"point {number}" if self.engine.sweeper != HERE else f"point {number}/{len(self.points)}"

    def _say_how_many(self) -> None:
        runs = len(self._first)
        found = runs - self.done - len(self.failed)
        self.say(f"{format_count(runs, 'run')}: {self.done} done, {found} found finished, {len(self.failed)} failed")

    def say(self, line: str) -> None:
        """Show a line, the same one once."""
        if line not in self._said:
            _log.info(line)
        self._said.add(line)
