"""Where the points of a sweep run (this process, joblib's processes, SLURM), and how Optuna chooses them.

`hydra/launcher=NAME` and `hydra/sweeper=NAME` choose a file in conf/hydra/, and `hydra.launcher.*` and
`hydra.sweeper.*` are its settings.
"""

import io
import logging
import os
import re
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override
from omegaconf import OmegaConf

from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.runs.compose import hydra_session, search_path
from longsumbench.runs.overrides import first_error_line
from longsumbench.sweeps.state import ENDED, PointState
from longsumbench.sweeps.worker import PointTask

_log = logging.getLogger(__name__)

HERE = "basic"  # Hydra's name for this process
_GROUPS = ("launcher", "sweeper")
_ALLOWED = re.compile(r"\+*hydra(/(launcher|sweeper)|\.(launcher|sweeper)\..+)=")
# Extra of the suite → the package that it installs
_LAUNCHER_PACKAGES = {"slurm": "submitit", "optuna": "optuna"}
# Parameters of submitit for any cluster; the others are for SLURM.
_GENERIC = (
    "name",
    "timeout_min",
    "mem_gb",
    "nodes",
    "cpus_per_task",
    "gpus_per_node",
    "tasks_per_node",
)
_SECONDS_BETWEEN_POLLS = 2.0  # at the files of jobs, and at the process that started a pool
_DIED = "its process died twice (killed, out of memory, or over timeout_minutes); the same command tries it again"

# None: the process of the point died
_Ended = Iterator[tuple[PointTask, PointState | None]]


@dataclass(frozen=True)
class Engine:
    """How the points of a sweep are chosen, and where they run.

    Attributes:
        launcher, sweeper: their names; "basic" for none.
        settings: "launcher" and "sweeper" → setting → value; `executor` is joblib, slurm or optuna.
    """

    launcher: str = HERE
    sweeper: str = HERE
    settings: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {group: {} for group in _GROUPS}
    )

    @property
    def on_cluster(self) -> bool:
        """True if the points run on other machines."""
        return self.settings["launcher"].get("executor") == "slurm"

    def run(self, tasks: Sequence[PointTask]) -> Iterator[tuple[PointTask, PointState]]:
        """Yield points as they end, with their states.

        A point whose process died is run once more, after the others; on this machine alone.

        Raises:
            SuiteError: the launcher cannot start, or one of its settings is invalid.
        """
        if self.launcher == HERE:
            for task in tasks:
                yield task, task.run()
            return
        launch = _run_on_cluster if self.on_cluster else _run_in_processes
        settings, died = self.settings["launcher"], []
        for task, state in launch(tasks, settings):
            if state is None:
                died.append(task)
            else:
                yield task, state
        if not died:
            return
        if not self.on_cluster:
            settings = {**settings, "n_jobs": 1}
        for task, state in launch(died, settings):
            yield task, state or task.fail(_DIED)


def choose_engine(words: Sequence[str], sweep: bool, config_dir: str | None = None) -> Engine:
    """Check the words of the launcher and the sweeper, and return what they choose.

    Raises:
        UsageError: there is no such launcher, sweeper, setting or folder, or no sweep is asked for.
        EnvironmentProblem: the launcher or the sweeper is not installed.
    """
    # Without such words Hydra composes nothing, which takes a second.
    if not words:
        return Engine()
    for word in words:
        if not _ALLOWED.match(word):
            offered = "hydra/launcher=…, hydra.launcher.…, hydra/sweeper=… and hydra.sweeper.…"
            raise UsageError(f"'{word}': of Hydra's own settings, only {offered} can be set")
    if not sweep:
        raise UsageError(f"'{words[0]}' is for sweeps: add -m, also for a single run")
    with hydra_session(config_dir):
        # Hydra's plug-ins, if installed, would offer files of the same names.
        for group, name in (("launcher", "joblib"), ("sweeper", "optuna")):
            ConfigStore.instance().repo["hydra"].get(group, {}).pop(f"{name}.yaml", None)
        composed = hydra.compose(
            "run", [*words, *search_path(config_dir)], return_hydra_config=True
        ).hydra
    settings: dict[str, Any] = {
        group: OmegaConf.to_container(composed[group], resolve=True) for group in _GROUPS
    }
    names = {}
    for group in _GROUPS:
        name = names[group] = composed.runtime.choices[f"hydra/{group}"]
        executor = settings[group].get("executor", "")
        if not executor and name != HERE:
            raise UsageError(
                f"hydra/{group}={name} is not one of this suite, which are in conf/hydra/{group}"
            )
        if executor in _LAUNCHER_PACKAGES and find_spec(_LAUNCHER_PACKAGES[executor]) is None:
            command = f"pip install -e '.[{executor}]' in the clone"
            raise EnvironmentProblem(f"hydra/{group}={name} is not installed: {command}")
    return Engine(**names, settings=settings)


def _run_in_processes(tasks: Sequence[PointTask], settings: dict[str, Any]) -> _Ended:
    """Run points in joblib's processes, each a pool of one: if it dies, joblib ends all processes of its pool."""
    from joblib import cpu_count, effective_n_jobs  # type: ignore[import-untyped]
    from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]

    try:
        n_jobs = effective_n_jobs(settings["n_jobs"])
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"hydra/launcher=joblib cannot begin: {error} (hydra.launcher.n_jobs)"
        ) from error
    threads = str(max(1, cpu_count() // n_jobs))
    env = {name: os.environ.get(name, threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    num_processes = min(n_jobs, len(tasks))
    _log.info(f"starting processes: {num_processes}; each loads the libraries first")
    # joblib renews workers that have grown
    warnings.filterwarnings("ignore", "A worker stopped while", UserWarning)
    end_with = {"initializer": _end_with, "initargs": (os.getpid(),)}
    waiting, idle = list(tasks), list[Any]()
    running: dict[Future[PointState], tuple[Any, PointTask]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < num_processes:
                pool = idle.pop() if idle else ProcessPoolExecutor(1, env=env, **end_with)
                task = waiting.pop(0)
                running[pool.submit(task)] = pool, task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                pool, task = running.pop(future)
                state = None
                with suppress(BrokenExecutor):
                    state = future.result()
                    idle.append(pool)
                yield task, state
    finally:
        for pool in [*idle, *(pool for pool, _ in running.values())]:
            pool.shutdown(kill_workers=True)


def _end_with(conductor: int) -> None:
    """Let this process of the pool end when the process that started it was killed: nobody else ends it."""

    def watch() -> None:
        while os.getppid() == conductor:
            time.sleep(_SECONDS_BETWEEN_POLLS)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _run_on_cluster(tasks: Sequence[PointTask], settings: dict[str, Any]) -> _Ended:
    """Run points in an array job of a cluster."""
    if shutil.which("srun") is None:
        advice = "hydra/launcher=joblib works on this machine alone"
        raise EnvironmentProblem(f"no SLURM on this machine (no srun); {advice}")
    # It would close the handlers of all other loggers.
    os.environ.setdefault("SUBMITIT_LOG_LEVEL", "NOCONFIG")
    from submitit import AutoExecutor, helpers

    options = {}
    for key, value in settings.items():
        if value is not None and key not in ("executor", "max_num_timeout"):
            options[key if key in _GENERIC else f"slurm_{key}"] = value
    try:
        with redirect_stderr(io.StringIO()):  # submitit also prints what it raises
            executor = AutoExecutor(
                tasks[0].sweep.root / "launcher",
                cluster="slurm",
                slurm_max_num_timeout=settings["max_num_timeout"],
            )
            executor.update_parameters(**options)
            with executor.batch():
                jobs = {executor.submit(task): task for task in tasks}
    except Exception as error:  # submitit's errors have no common class
        reason = " ".join(str(error).replace("sbatch: error: ", "").split())
        raise UsageError(
            f"SLURM refuses the sweep: {reason} (hydra.launcher.*; see docs/how-to/slurm.md)"
        ) from error
    try:
        for job in helpers.as_completed(list(jobs), poll_frequency=_SECONDS_BETWEEN_POLLS):
            state = jobs[job].sweep.state(jobs[job].number)
            yield jobs[job], state if state.state in ENDED else None
    except KeyboardInterrupt:
        note = "the submitted jobs go on (scancel --name=longsumbench ends them), and what they finish is kept"
        raise KeyboardInterrupt(note) from None


def search_settings(
    settings: Mapping[str, Any],
    ranges: Sequence[str],
    run_trial: Callable[[list[str]], float | None],
) -> None:
    """Let Optuna ask for points, by the scores of the points before.

    Args:
        settings: those of conf/hydra/sweeper/optuna.yaml.
        ranges: overrides with several values or a range ("model.length=choice(3,4)").
        run_trial: runs a point, given the overrides that Optuna chose; returns None if it failed.

    Raises:
        UsageError: a range or a setting of the search is invalid.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    try:
        overrides = OverridesParser.create().parse_overrides(list(ranges))
        distributions = {
            override.get_key_element(): _make_distribution(override) for override in overrides
        }
        sampler = hydra.utils.instantiate(settings["sampler"])
        study = optuna.create_study(sampler=sampler, direction=settings["direction"])
        trials = range(settings["n_trials"])
    except Exception as error:  # errors of Optuna have no common class
        raise UsageError(
            f"hydra/sweeper=optuna: {first_error_line(error)} (hydra.sweeper.*)"
        ) from error
    for _ in trials:
        trial = study.ask(distributions)
        score = run_trial([f"{key}={value}" for key, value in trial.params.items()])
        study.tell(trial, score, optuna.trial.TrialState.FAIL if score is None else None)


def _make_distribution(override: Override) -> Any:
    """Return Optuna's distribution over the values of an override, or over its range."""
    from optuna import distributions

    value = override.value()
    if not isinstance(value, IntervalSweep):
        return distributions.CategoricalDistribution(list(override.sweep_string_iterator()))
    is_integer = isinstance(value.start, int)
    kind = distributions.IntDistribution if is_integer else distributions.FloatDistribution
    return kind(value.start, value.end, log="log" in value.tags)
