"""Where the points of a sweep run: in this process, in joblib's processes, or in array jobs of a SLURM cluster.

`hydra/launcher=NAME` and `hydra/sweeper=NAME` choose a file in conf/hydra/, and `hydra.launcher.*` and
`hydra.sweeper.*` are its settings.
"""

import io
import itertools
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, as_completed
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.runs.plan import check_folder, first_error_line, offer_plugins, quote_folder, translate_hydra_error
from longsumbench.sweeps.state import ENDED, RUNNING, PointState
from longsumbench.sweeps.worker import PointTask

HERE = "basic"  # Hydra's name for this process
_GROUPS = ("launcher", "sweeper")
_PACKAGES = {"slurm": "submitit", "optuna": "optuna"}  # extra of the suite → the package that it installs
# Parameters of submitit for any cluster; the others are for SLURM.
_COMMON = ("name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node")
_SECONDS_BETWEEN_LOOKS, _LOOKS_PER_QUESTION = 2.0, 15  # at the files of jobs; and until the cluster is asked
_MOST_JOBS = 1_000  # of a SLURM array by default (MaxArraySize)

_Ended = Iterator[tuple[PointTask, PointState | None]]


@dataclass(frozen=True)
class Engine:
    """How the points of a sweep are chosen, and where they run.

    Attributes:
        launcher, sweeper: their names; "basic" for none.
        settings: "launcher" and "sweeper" → setting → value; `executor` is joblib, slurm or optuna.
        config_dir: a folder with more YAML files.
    """

    launcher: str = HERE
    sweeper: str = HERE
    settings: dict[str, dict[str, Any]] = field(default_factory=lambda: {group: {} for group in _GROUPS})
    config_dir: str | None = None

    @property
    def on_cluster(self) -> bool:
        """True if the points run on other machines."""
        return self.settings["launcher"].get("executor") == "slurm"

    def run(self, tasks: Sequence[PointTask]) -> _Ended:
        """Yield points as they end, with their states; None if the process of a point died twice.

        A point whose process died is run once more, after the others; on this machine alone.

        Raises:
            SuiteError: the launcher cannot start, or one of its settings is invalid.
        """
        if self.launcher == HERE:
            yield from ((task, task.run()) for task in tasks)
            return
        launch, settings = _run_on_cluster if self.on_cluster else _run_in_processes, self.settings["launcher"]
        died = []
        try:
            for task, state in launch(tasks, settings):
                if state is None:
                    died.append(task)
                else:
                    yield task, state
            for again in [died] if self.on_cluster else [[task] for task in died]:
                yield from launch(again, settings)
        except KeyboardInterrupt:
            note = "the submitted jobs go on (scancel --name=longsumbench ends them), and what they finish is kept"
            raise KeyboardInterrupt(note if self.on_cluster else "") from None


def choose_engine(words: Sequence[str], sweep: bool, config_dir: str | None = None) -> Engine:
    """Check the words of the launcher and the sweeper, and return what they choose.

    Raises:
        UsageError: there is no such launcher, sweeper, setting or folder, or no sweep is asked for.
        EnvironmentProblem: the launcher or the sweeper is not installed.
    """
    check_folder(config_dir)
    if not words:
        return Engine(config_dir=config_dir)
    allowed = tuple(f"hydra{form}" for group in _GROUPS for form in (f"/{group}=", f".{group}."))
    for word in words:
        if not word.lstrip("+").startswith(allowed) or "=" not in word:
            offered = ", ".join(f"{form}…" for form in allowed)
            raise UsageError(f"'{word}': of Hydra's own settings, only {offered} can be set")
    if not sweep:
        raise UsageError(f"'{words[0]}' is for sweeps: add -m, also for a single point")
    offer_plugins(config_dir)
    path = [] if config_dir is None else [f"hydra.searchpath=[{quote_folder(config_dir, 'file://')}]"]
    try:
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            for group, name in (("launcher", "joblib"), ("sweeper", "optuna")):  # of Hydra's plug-ins, if installed
                ConfigStore.instance().repo["hydra"].get(group, {}).pop(f"{name}.yaml", None)
            composed = hydra.compose("run", [*words, *path], return_hydra_config=True).hydra
    except (HydraException, OmegaConfBaseException) as error:
        if str(error).startswith("Could not override"):
            raise UsageError(f"{first_error_line(error)} The files in conf/hydra/ list the settings.") from error
        raise translate_hydra_error(error) from error
    settings: dict[str, Any] = {group: OmegaConf.to_container(composed[group], resolve=True) for group in _GROUPS}
    names = {group: composed.runtime.choices[f"hydra/{group}"] for group in _GROUPS}
    for group, name in names.items():
        executor = settings[group].get("executor", "")
        if not executor and name != HERE:
            raise UsageError(f"hydra/{group}={name} is not one of this suite, which are in conf/hydra/{group}")
        if executor in _PACKAGES and find_spec(_PACKAGES[executor]) is None:
            raise EnvironmentProblem(f"hydra/{group}={name} is not installed: pip install 'longsumbench[{executor}]'")
    return Engine(**names, settings=settings, config_dir=config_dir)


def _run_in_processes(tasks: Sequence[PointTask], settings: dict[str, Any]) -> _Ended:
    """Run points in joblib's processes. If one dies, joblib ends the others: the points that ran have no state."""
    from joblib import cpu_count, effective_n_jobs  # type: ignore[import-untyped]

    try:
        n_jobs = effective_n_jobs(settings["n_jobs"])
    except (TypeError, ValueError) as error:
        raise UsageError(f"hydra/launcher=joblib cannot begin: {error} (hydra.launcher.n_jobs)") from error
    left = {task.number: task for task in tasks}
    while left:
        for task, state in _run_in_pool(list(left.values()), n_jobs, max(1, cpu_count() // n_jobs)):
            del left[task.number]
            yield task, state
        died = [task for task in left.values() if task.sweep.state(task.number).state == RUNNING]
        if left and not died:
            raise EnvironmentProblem("hydra/launcher=joblib gave up: a process died before its point began")
        for task in died:
            yield left.pop(task.number), None


def _run_in_pool(tasks: Sequence[PointTask], workers: int, threads: int) -> _Ended:
    """Run points in new processes until one of these dies."""
    from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

    env = {name: os.environ.get(name, str(threads)) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    size, conductor = min(workers, len(tasks)), (os.getpid(),)
    pool = ProcessPoolExecutor(size, timeout=10, env=env, initializer=_end_with, initargs=conductor)
    try:
        futures = {pool.submit(task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenExecutor:
        return
    finally:
        pool.shutdown(kill_workers=True)


def _end_with(conductor: int) -> None:
    """Let this process of the pool end when the process that started it was killed: nobody else ends it."""

    def watch() -> None:
        while os.getppid() == conductor:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _run_on_cluster(tasks: Sequence[PointTask], settings: dict[str, Any]) -> _Ended:
    """Run points in jobs of a cluster.

    Raises:
        UsageError: SLURM refuses the job.
        EnvironmentProblem: this machine has no SLURM.
    """
    for first in range(0, len(tasks), _MOST_JOBS):
        jobs = _submit(tasks[first : first + _MOST_JOBS], settings)
        for look in itertools.count(1):
            waiting = []
            for place, (task, job) in enumerate(jobs):
                ask = place == 0 and look % _LOOKS_PER_QUESTION == 0  # one answer is about all jobs
                if job.done(force_check=ask):
                    state = task.sweep.state(task.number)
                    yield task, state if state.state in ENDED else None
                else:
                    waiting.append((task, job))
            if not (jobs := waiting):
                break
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _submit(tasks: Sequence[PointTask], settings: dict[str, Any]) -> list[tuple[PointTask, Any]]:
    if shutil.which("srun") is None:
        other = "hydra/launcher=joblib works on this machine alone"
        raise EnvironmentProblem(f"no SLURM on this machine (no srun); {other}")

    os.environ.setdefault("SUBMITIT_LOG_LEVEL", "NOCONFIG")  # it would close the handlers of all other loggers
    from submitit import AutoExecutor

    given = {key: value for key, value in settings.items() if value is not None and key != "executor"}
    try:
        with redirect_stderr(io.StringIO()):  # submitit also prints what it raises
            timeouts, folder = given.pop("max_num_timeout"), tasks[0].sweep.root / "launcher"
            executor = AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=timeouts)
            executor.update_parameters(**{key if key in _COMMON else f"slurm_{key}": given[key] for key in given})
            with executor.batch():
                return [(task, executor.submit(task)) for task in tasks]
    except Exception as error:  # submitit's errors have no common class
        said = " ".join(str(error).replace("sbatch: error: ", "").split())
        raise UsageError(f"SLURM refuses the sweep: {said} (hydra.launcher.*; see docs/how-to/slurm.md)") from error
