"""One point of a sweep, in any process: its run, its baselines, and its state."""

import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import Any

from longsumbench.cache.locks import exclusive_lock
from longsumbench.errors import EnvironmentProblem
from longsumbench.interrupts import time_limit
from longsumbench.modeling.processes import first_process
from longsumbench.progress import Progress, watching_progress
from longsumbench.runs.bug_report import as_reported_error
from longsumbench.runs.pipeline import run_point, score_baselines, take_part
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.record import measured_mean
from longsumbench.runs.results import Results
from longsumbench.sweeps.state import DONE, FAILED, RUNNING, SKIPPED, PointState, Sweep

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_NOTES = 2.0  # of what a point is doing


@dataclass
class PointTask:
    """Runs one point of a sweep; joblib and submitit can send it to another process.

    Attributes:
        sweep: the folder for its state.
        number: its number in the sweep.
        point: as planned.
        baseline_ids: the identities of baselines that need not be scored with this point; those scored here are added.
    """

    sweep: Sweep
    number: int
    point: PlannedRun
    baseline_ids: set[str] = field(default_factory=set)

    def __call__(self) -> PointState:
        """Run the point in a separate process; its output goes to its log."""
        share_a_cluster_job()
        with (
            self.sweep.file(self.number, "log").open("a", encoding="utf-8", buffering=1) as log,
            redirect_stdout(log),
            redirect_stderr(log),
            first_process(take_part) as first,
        ):
            return self.run(alone=True) if first else PointState()

    def checkpoint(self) -> Any:
        """Return what submitit runs in the next job when the time of this one is over."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)

    def run(self, alone: bool = False) -> PointState:
        """Run the point in this process; write and return its state. A point that fails raises no error.

        With `alone`, the process may be ended when the point hangs outside Python.
        """
        state = PointState(
            self.point.name,
            RUNNING,
            attempts=1 + self.sweep.state(self.number).attempts,
            started=time.time(),
            process=_this_process(),
        )
        lock = self.sweep.file(self.number, "lock")
        try:
            with exclusive_lock(lock, _say_who_runs_the_point):
                self.sweep.write_state(self.number, state)
                return self._end(self._run_locked(state, alone))
        except Exception as error:
            # submitit's words for the end of the last job of a point
            if "timed-out too many times" in str(error):
                error = EnvironmentProblem(
                    "not done within the time of its jobs: choose a higher "
                    "hydra.launcher.timeout_min or hydra.launcher.max_num_timeout"
                )
            return self._end(replace(state, state=FAILED, reason=f"{as_reported_error(error)}"))
        except SystemExit as ended:  # a process that fails alone ends its launch
            self._end(replace(state, state=FAILED, reason=f"{ended.__cause__}"))
            raise

    def fail(self, reason: str) -> PointState:
        """Write and return the state of a point whose processes died."""
        state = self.sweep.state(self.number)
        return self._end(replace(state, name=self.point.name, state=FAILED, reason=reason))

    def _end(self, state: PointState) -> PointState:
        ended = replace(state, ended=time.time())
        self.sweep.write_state(self.number, ended)
        return ended

    def _run_locked(self, state: PointState, alone: bool) -> PointState:
        config, failed = self.point.config, dict[str, str]()
        since = (self.sweep.root / "sweep.json").stat().st_mtime  # by the clock of the file system
        # With overwrite=true, points that share a stage rebuild it once.
        point = replace(self.point, since=since)
        with watching_progress(self._noting(state)), time_limit(config.timeout_minutes, alone):
            records = [run_point(point), *score_baselines(point, self.baseline_ids, failed)]
        results = Results.at(config.results_dir)
        mean = measured_mean(records[0], records[0].evaluation.ranked_by)
        reasons = [f"baseline {name}: {why}" for name, why in failed.items()]
        return replace(
            state,
            state=DONE if point.carried_out else SKIPPED,
            runs=tuple(str(results.run_folder(record)) for record in records),
            reason="; ".join(reasons),
            score=mean and mean.mean,
        )

    def _noting(self, state: PointState) -> Callable[[Progress], None]:
        noted = 0.0

        def note(progress: Progress) -> None:
            nonlocal noted
            if time.monotonic() - noted >= _SECONDS_BETWEEN_NOTES:
                noted = time.monotonic()
                self.sweep.write_state(self.number, replace(state, doing=progress.line()))

        return note


def _say_who_runs_the_point(holder: object) -> None:
    _log.info(f"waiting for the process that does this run: {holder}")


def _this_process() -> str:
    if "SUBMITIT_EXECUTOR" not in os.environ:
        return f"{socket.gethostname()} {os.getpid()}"
    from submitit import JobEnvironment

    return f"job {JobEnvironment().job_id} on {socket.gethostname()}"


def share_a_cluster_job() -> None:
    """Let the tasks of one SLURM job work on one point together, as under torchrun.

    Processes that joblib starts in a job are no tasks of it, however many it was given; submitit marks its own jobs.
    """
    num_tasks = int(os.environ.get("SLURM_NTASKS", "1"))
    if os.environ.get("SUBMITIT_EXECUTOR") == "slurm" and num_tasks > 1:
        from submitit.helpers import TorchDistributedEnvironment

        # The process chooses its GPU among those that SLURM shows; a restarted process exports them again.
        TorchDistributedEnvironment().export(set_cuda_visible_devices=False, overwrite=True)
