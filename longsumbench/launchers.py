"""Hydra's launchers and sweepers, for points that are already planned.

`hydra/launcher=joblib` works on points in processes of this machine, `hydra/launcher=slurm_cpu|slurm_gpu` in an array
job of a cluster, `hydra/sweeper=optuna` asks for one point after the other. All are plug-ins of Hydra: they are handed
numbers of points, and a task (`jobs.Job`) that knows what these mean.
"""

import importlib.util
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from hydra.plugins.launcher import Launcher as HydraLauncher
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from longsumbench.errors import EnvironmentProblem, SuiteError, UnknownName, UsageError, as_suite_error, did_you_mean
from longsumbench.planning import quoted, translate

HERE = "basic"  # Hydra's name for this process
PLUGINS = {  # of Hydra: package → extra of the suite, and the choices that need it
    "hydra_joblib_launcher": ("joblib", ("joblib",)),
    "hydra_submitit_launcher": ("slurm", ("submitit_slurm", "submitit_local", "slurm_cpu", "slurm_gpu")),
    "hydra_optuna_sweeper": ("optuna", ("optuna",)),
}
GROUPS = ("launcher", "sweeper")
# Of optuna, unless typed: higher scores are better, the same command asks for the same points, one at a time, and a
# point that fails ends nothing.
SEARCH = {"direction": "maximize", "sampler.seed": "1", "n_jobs": "1", "max_failure_rate": "1.0"}
SECONDS_BETWEEN_LOOKS = 2.0  # at jobs of a cluster

Task = Callable[[Any], Any]


def is_hydras(word: str) -> bool:
    """Tell whether a word of the command line is of Hydra's launcher or sweeper."""
    return word.lstrip("+~").startswith(("hydra/", "hydra."))


@dataclass(frozen=True)
class Engine:
    """What the words of a command line say of how the points of a sweep are carried out.

    Attributes:
        words: Hydra's, as typed ("hydra/launcher=joblib", "hydra.launcher.n_jobs=4").
        launcher, sweeper: their names; "basic" for none.
        config_dir: a folder with more YAML files.
    """

    words: tuple[str, ...] = ()
    launcher: str = HERE
    sweeper: str = HERE
    config_dir: str | None = None

    @classmethod
    def of(cls, words: Sequence[str], sweep: bool, config_dir: str | None = None) -> "Engine":
        """Check the words of Hydra on a command line.

        Raises:
            UsageError: there is no such launcher, sweeper or setting, or no sweep is asked for.
            EnvironmentProblem: it is not installed.
        """
        chosen = dict.fromkeys(GROUPS, HERE)
        for word in words:
            key, sign, value = word.lstrip("+~").partition("=")
            group = key.removeprefix("hydra").lstrip("/.").partition(".")[0]
            if not sign or group not in GROUPS:
                offered = ", ".join(f"hydra/{name}=… and hydra.{name}.…" for name in GROUPS)
                raise UsageError(f"'{word}': of Hydra's own settings, {offered} can be chosen")
            if key == f"hydra/{group}":
                chosen[group] = value
        if words and not sweep:
            raise UsageError(f"'{words[0]}' is for sweeps: add -m, also for a single point")
        engine = cls(tuple(words), **chosen, config_dir=config_dir)
        for group in GROUPS:
            engine.check_installed(group, chosen[group])
        with engine.hydra(Path()):  # settings are checked before any work
            pass
        return engine

    def check_installed(self, group: str, name: str) -> None:
        """Check that a launcher or sweeper is there.

        Raises:
            UnknownName: nobody knows it.
            EnvironmentProblem: it comes with an extra that is not installed.
        """
        for plugin, (extra, names) in PLUGINS.items():
            if name in names and importlib.util.find_spec(f"hydra_plugins.{plugin}") is None:
                install = f"pip install 'longsumbench[{extra}]'"
                raise EnvironmentProblem(f"hydra/{group}={name} is not installed: {install}")
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            known = GlobalHydra.instance().config_loader().get_group_options(f"hydra/{group}")
        if name not in known and self.config_dir is None:
            raise UnknownName(f"hydra/{group}", name, known)

    @contextmanager
    def hydra(self, folder: Path, *more: str) -> "Iterator[tuple[HydraContext, DictConfig]]":
        """Let Hydra lay its own words over its settings, for a sweep whose folder for launchers is given.

        Raises:
            UsageError: a setting does not exist, or cannot be meant.
        """
        from hydra._internal.callbacks import Callbacks  # there is no other way to a launcher without hydra.main

        quiet = ["hydra/job_logging=none", "hydra/hydra_logging=none", "hydra.output_subdir=null"]
        place = [f"hydra.sweep.dir={quoted(folder)}", "hydra.sweep.subdir=''", "hydra.job.name=longsumbench"]
        if self.config_dir is not None:
            place.append(f"hydra.searchpath=[{quoted(self.config_dir, 'file://')}]")
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            core = GlobalHydra.instance().hydra
            assert core is not None
            try:
                composed = core.compose_config(
                    "run", [*quiet, *place, *self.words, *more], RunMode.MULTIRUN, with_log_configuration=False
                )
            except (HydraException, OmegaConfBaseException, ValueError) as error:
                raise self.translated(error) from error
            yield HydraContext(config_loader=core.config_loader, callbacks=Callbacks()), composed

    def translated(self, error: Exception) -> SuiteError:
        """Turn what Hydra says of its words into one line, with the setting's nearest name."""
        for word in self.words:
            key = word.lstrip("+~").partition("=")[0]
            if f"'{key}'" in str(error) and "struct" in str(error):
                group = key.split(".")[1]
                with Engine((f"hydra/{group}={getattr(self, group)}",), config_dir=self.config_dir).hydra(Path()) as (
                    _,
                    known,
                ):
                    names = [str(name) for name in known.hydra[group] if not str(name).startswith("_")]
                near = did_you_mean(key.rpartition(".")[2], names)
                return UsageError(f"unknown setting '{key}'{near}; known: {', '.join(sorted(names))}")
        return translate(error)

    def launch(self, task: Task, jobs: int, folder: Path) -> None:
        """Let the launcher do some jobs; return when it is through with them.

        Args:
            task: is called with a composed configuration, of which only `hydra.job.num` matters: 0 for the first job.
            jobs: how many there are.
            folder: for what the launcher writes, this time alone.

        Raises:
            LaunchBroke: the launcher gave up: a process died.
            SuiteError: it could not begin.
        """
        with self.hydra(folder) as (context, composed):
            launcher = Plugins.instance().instantiate_launcher(context, task, composed)
            try:
                launcher.launch([[] for _ in range(jobs)], initial_job_idx=0)
            except Exception as error:
                wait_for_jobs(folder)
                raise problem_of(error, self) from error

    def search(self, ask: Callable[[Sequence[str]], float | Exception], words: Sequence[str], folder: Path) -> None:
        """Let the sweeper ask for points until it has enough.

        Args:
            ask: takes the words of a point, returns its score or why it has none.
            words: what is typed; of settings that are searched, their ranges.
            folder: for what the sweeper writes.

        Raises:
            UsageError: a range cannot be meant.
        """
        typed = {word.lstrip("+~").partition("=")[0] for word in self.words}
        usual = [
            f"hydra.sweeper.{name}={value}" for name, value in SEARCH.items() if f"hydra.sweeper.{name}" not in typed
        ]
        Plugins.instance().register(Trials)
        target = f"{Trials.__module__}.{Trials.__qualname__}"
        with self.hydra(folder, *usual) as (context, composed):
            composed.hydra.launcher = {"_target_": target}
            sweeper = Plugins.instance().instantiate_sweeper(config=composed, hydra_context=context, task_function=ask)
            folder.mkdir(parents=True, exist_ok=True)
            try:
                sweeper.sweep(arguments=list(words))
            except (HydraException, OmegaConfBaseException, ValueError, AssertionError) as error:
                raise as_suite_error(error) or translate(error) from error


class Trials(HydraLauncher):
    """What a sweeper takes for a launcher: hands the words of each point it asks for to `Engine.search`."""

    def setup(self, *, hydra_context: HydraContext, task_function: Task, config: DictConfig) -> None:
        """Take note of whom to ask."""
        self.ask = task_function

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Return the score of each point."""
        returns = []
        for words in job_overrides:
            found = self.ask(words)
            status = JobStatus.FAILED if isinstance(found, Exception) else JobStatus.COMPLETED
            returns.append(JobReturn(overrides=words, _return_value=found, status=status))
        return returns


class LaunchBroke(Exception):
    """A launcher gave up before all of its jobs had ended, for a process of one died."""


def problem_of(error: Exception, engine: Engine) -> Exception:
    """Tell a launcher that could not begin from one of whose jobs a process died."""
    if known := as_suite_error(error):
        return known
    said = " ".join(str(error).split())
    if isinstance(error, subprocess.CalledProcessError):
        said = " ".join(str(error.stderr or error.output or error).split())
    if "sbatch: error" in said:
        reason = said[said.index("sbatch: error") :]
        return UsageError(f"SLURM did not take the sweep: {reason} (hydra.launcher.*; see docs/slurm.md)")
    if "srun" in said and "slurm" in said.lower():
        other = "hydra/launcher=joblib works on this machine alone"
        return EnvironmentProblem(f"hydra/launcher={engine.launcher}: no SLURM on this machine (no srun); {other}")
    return LaunchBroke(said or type(error).__name__)


def wait_for_jobs(folder: Path) -> None:
    """Wait for the jobs of a cluster that were submitted from a folder and have not ended.

    submitit's launcher gives up at the first job that died; the others go on.
    """
    with suppress(ImportError):
        from submitit import SlurmJob

        tasks = sorted(path.name.rsplit("_submitted", 1)[0] for path in folder.rglob("*_submitted.pkl"))
        where = next((path.parent.parent for path in folder.rglob("*_submitted.pkl")), folder)
        jobs: list[SlurmJob[Any]] = [SlurmJob(folder=where / "%j", job_id=task) for task in tasks]
        while not all(job.done() for job in jobs):
            time.sleep(SECONDS_BETWEEN_LOOKS)
