"""One point of a sweep, in any process: its run, its baselines, and their outcome.

`Job` is what another process, or another machine, is sent (`Sent`): it can be pickled, holds the points as they were
planned, and writes what becomes of a point into the files of its sweep. It never raises, for a launcher that sees one
job fail gives up the others.
"""

import faulthandler
import logging
import math
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from longsumbench.api import registry
from longsumbench.api.config import RunConfig
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError, as_suite_error
from longsumbench.files import write_atomically
from longsumbench.processes import first_process
from longsumbench.progress import Progress, watching_progress
from longsumbench.runs.bug_report import as_reported_error
from longsumbench.runs.pipeline import BASELINES, Point, run_point, score_baseline, take_part
from longsumbench.runs.plan import Planned
from longsumbench.runs.record import Results, RunRecord, measured_mean, ranking_score
from longsumbench.sweeps.state import DONE, FAILED, FOUND, RUNNING, PointState, Sweep

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_NOTES = 2.0  # of what a point is doing
_SECONDS_BETWEEN_LOOKS = 1.0  # at who conducts the sweep
_GRACE = 60.0  # seconds from a point's timeout until its separate process is ended from outside Python
_LONGEST = 1e8  # seconds, some three years, that a clock can be set to: a limit above that is none

_at_work = threading.Lock()  # held while this process works on a point


@dataclass
class JobOutcome:
    """What became of a point.

    Attributes:
        records: the records of its run and baselines.
        carried_out: whether its run was not found finished.
        failed: why it failed; empty if it did not.
        failed_baselines: name → why.
    """

    records: list[RunRecord] = field(default_factory=list)
    carried_out: bool = False
    failed: str = ""
    failed_baselines: dict[str, str] = field(default_factory=dict)


@dataclass
class Job:
    """The points of a sweep, of which a launcher lets one be worked on by number.

    Attributes:
        points: number → point.
        command: everything as typed, for the records.
        sweep: the folder for their states.
        order: the numbers of the points, as a launcher counts its jobs.
        taken: the identities of baselines that need not be scored again.
        since: when the sweep began; what is older is done anew where a point says `overwrite=true`.
    """

    points: dict[int, Planned]
    command: tuple[str, ...]
    sweep: Sweep
    order: tuple[int, ...] = ()
    taken: set[str] = field(default_factory=set)
    since: float = math.inf

    def __call__(self, composed: Any) -> None:
        """Work on the point of one of a launcher's jobs, in a separate process.

        All that it prints goes to the point's log.
        """
        from hydra.core.hydra_config import HydraConfig

        number, conductor = self.order[HydraConfig.get().job.num], os.getppid()
        share_a_cluster_job()
        with _at_work, _printing_to(self.sweep.log(number)), first_process(take_part) as first:
            if first:
                self.work(number, alone=True)
        if os.getppid() != conductor:  # it was killed: nobody asks this process for more, nor ends it
            os._exit(0)

    def work(self, number: int, alone: bool = False) -> JobOutcome:
        """Work on a point; write what becomes of it. What goes wrong with the sweep's own files is its failure, too.

        Args:
            number: the point's.
            alone: whether the process is the point's own, and may be ended with it.
        """
        planned, outcome = self.points[number], JobOutcome()
        with (
            _noting(True) as failures,
            self.sweep.working(number, lambda who: _log.info(f"another process works on this point ({who})")),
        ):
            state = begun(self.sweep.state(number))
            self.sweep.note(number, state)
            with watching_progress(Notes(self.sweep, number, state)), limited(planned.config.timeout_minutes, alone):
                run_job(planned, self.command, self.taken, outcome, since=self.since)
            self.sweep.note(number, _ended(state, outcome))
        if failures:
            outcome.failed = failures[0]
            self.sweep.note(number, _ended(begun(self.sweep.state(number)), outcome))
        return outcome


@dataclass(frozen=True)
class Sent:
    """A job in a file, which is what a launcher hands to each process: a line, however many points there are.

    Attributes:
        path: where the job is, in pickled form.
    """

    path: Path

    @classmethod
    def of(cls, job: Job, folder: Path) -> "Sent":
        """Write a job into a folder."""
        write_atomically(folder / "job.pickle", pickle.dumps(job))
        return cls((folder / "job.pickle").resolve())

    def job(self) -> Job:
        """Read it."""
        job: Job = pickle.loads(self.path.read_bytes())  # noqa: S301 - written by the process that sent it
        return job

    def __call__(self, composed: Any) -> None:
        """Do it, in another process."""
        self.job()(composed)


def end_with(conductor: int) -> None:
    """Let this process of a launcher's end when it has no work and the one that conducts it, its parent, is gone.

    Nobody else ends one that has been sent a part of its next job, and waits for the rest.
    """

    def watch() -> None:
        while os.getppid() == conductor:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        with _at_work:
            os._exit(0)

    threading.Thread(target=watch, name="end_with", daemon=True).start()


def run_job(
    planned: Planned,
    command: tuple[str, ...],
    taken: set[str],
    outcome: JobOutcome,
    sweep: bool = True,
    since: float = math.inf,
) -> None:
    """Run a point, then its baselines; in a sweep, failures are recorded.

    Args:
        planned: the point.
        command: everything as typed.
        taken: identities of what need not be scored as a baseline; those that are scored here are added.
        outcome: is filled as things end.
        sweep: whether a failure is noted instead of raised.
        since: what is older, `overwrite=true` does anew.

    Raises:
        SuiteError: the only point failed, which is no sweep's.
    """
    point = Point(planned.config, planned.variant, command, since=since)
    if too_large_for_a_cpu(planned.config):
        _log.info("scale=paper is meant for a GPU, and none is used: on a CPU choose scale=tiny or scale=small")
    with _noting(sweep) as failures:
        outcome.records.append(run_point(point))
        outcome.carried_out = point.carried_out
    outcome.failed = "".join(failures)
    if planned.config.baselines and not outcome.failed:
        for name in BASELINES:
            with _noting(sweep, f"{name} with {planned.name}: ") as failures:
                if name != planned.config.model.name:
                    outcome.records.extend(score_baseline(point, name, taken))
            if failures:
                outcome.failed_baselines[f"{name} with {planned.name}"] = failures[0]


@contextmanager
def _noting(sweep: bool, what: str = "") -> Iterator[list[str]]:
    """In a sweep, put the reason of a failure into the list instead of ending with it; `what` is said before it."""
    failures: list[str] = []
    try:
        yield failures
    except Exception as error:
        if not sweep:
            raise as_suite_error(error) or error from error
        failures.append(str(out_of_stretches(error) or as_reported_error(error)))
        _log.info(f"failed: {what}{failures[0]}")


def out_of_stretches(error: Exception) -> SuiteError | None:
    """Return what submitit means when it does not let a point of a cluster go on any more."""
    if "timed-out too many times" not in str(error):
        return None
    advice = "choose a higher hydra.launcher.timeout_min or hydra.launcher.max_num_timeout"
    return EnvironmentProblem(f"not done within the time of its job, however often begun again: {advice}")


def begun(before: PointState) -> PointState:
    """Return the state of a point that this process begins."""
    job = os.environ.get("SLURM_JOB_ID", "")
    if job and (array := os.environ.get("SLURM_ARRAY_JOB_ID")):
        job = f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    host, pid = socket.gethostname(), os.getpid()
    return PointState(RUNNING, attempts=before.attempts + 1, started=time.time(), host=host, pid=pid, job=job)


def _ended(state: PointState, outcome: JobOutcome) -> PointState:
    """Return the state of a point that has come to its end."""
    what = FAILED if outcome.failed else DONE if outcome.carried_out else FOUND
    roots = [Results(Path(record.settings.results_dir).expanduser()) for record in outcome.records]
    return replace(
        state,
        state=what,
        runs=tuple(str(root.run_folder(record)) for root, record in zip(roots, outcome.records, strict=True)),
        reason=outcome.failed,
        failed_baselines=outcome.failed_baselines,
        ended=time.time(),
        doing="",
        score=_score(outcome),
    )


def _score(outcome: JobOutcome) -> float | None:
    """Return what a point's run is judged by."""
    if outcome.failed:
        return None
    record = outcome.records[0]
    found = measured_mean(record, ranking_score(record))
    return found[0] if found else None


@dataclass
class Notes:
    """Notes now and then what a point is doing, for `longsumbench status`."""

    sweep: Sweep
    number: int
    state: PointState
    _noted: float = 0.0

    def __call__(self, progress: Progress) -> None:
        """Take note of an advance."""
        if (now := time.monotonic()) - self._noted >= _SECONDS_BETWEEN_NOTES:
            self._noted = now
            self.sweep.note(self.number, replace(self.state, doing=progress.line()))


@contextmanager
def limited(minutes: float | None, alone: bool) -> Iterator[None]:
    """Stop what is inside after some minutes, by an error.

    Later steps, such as baselines, get another half minute. Code that hangs outside Python gets no error; a separate
    process is then ended, with its stack in the log.

    Raises:
        EnvironmentProblem: the time is over.
    """
    if minutes is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        kept = "what it finished is kept, and the same command with a higher limit continues it"
        raise EnvironmentProblem(f"stopped after timeout_minutes={minutes:g}; {kept}")

    seconds = min(60 * minutes, _LONGEST)
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, _GRACE / 2)
    if alone:
        faulthandler.dump_traceback_later(seconds + _GRACE, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """Append what this process prints to a file, that of libraries outside Python too."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as back:
        file = back.enter_context(log.open("a", encoding="utf-8"))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            kept = os.dup(stream.fileno())
            back.callback(os.close, kept)
            back.callback(os.dup2, kept, stream.fileno())
            back.callback(stream.flush)
            os.dup2(file.fileno(), stream.fileno())
        yield


def share_a_cluster_job() -> None:
    """Let the tasks of one SLURM job work on one point together, as under torchrun.

    Processes that joblib starts in a job are no tasks of it, however many it was given; submitit marks its own jobs.
    """
    if os.environ.get("SUBMITIT_EXECUTOR") == "slurm" and int(os.environ.get("SLURM_NTASKS", "1")) > 1:
        from submitit.helpers import TorchDistributedEnvironment

        # each process chooses its GPU among those that SLURM shows; a restarted one exports the variables again
        TorchDistributedEnvironment().export(set_cuda_visible_devices=False, overwrite=True)


def too_large_for_a_cpu(config: RunConfig) -> bool:
    """Tell whether a system is to be trained at the papers' sizes without a GPU."""
    torch = sys.modules.get("torch")  # there, once a system that needs it was loaded
    trains = "train" in registry.systems.load(config.model.name).decided_by
    if config.scale != "paper" or not trains or not config.train.max_steps or torch is None:
        return False
    return config.train.device == "cpu" or not torch.cuda.is_available()


def check_scale(points: Sequence[Planned]) -> None:
    """Check that no point would train at the papers' sizes without a GPU, unless the user typed `scale=paper`.

    Raises:
        UsageError: one would.
    """
    for config in (planned.config for planned in points if not planned.scale_typed):
        if too_large_for_a_cpu(config):
            what = f"model={config.model.name} dataset={config.dataset.name} trains at scale=paper"
            advice = "choose scale=small (ten minutes) or scale=tiny, or type scale=paper to do it nevertheless"
            raise UsageError(f"{what}, which takes days without a GPU: {advice}")
