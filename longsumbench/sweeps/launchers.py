"""Hydra's launchers and sweepers, for points that are already planned.

`hydra/launcher=joblib` works on points in processes of this machine, `hydra/launcher=slurm_cpu|slurm_gpu` in an array
job of a cluster, `hydra/sweeper=optuna` asks for one point after the other. All are plug-ins of Hydra: they are handed
numbers of points, and a task (`worker.Sent`) that knows what these mean.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException, InstantiationException
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from longsumbench.errors import EnvironmentProblem, SuiteError, UnknownName, UsageError, as_suite_error, did_you_mean
from longsumbench.runs.plan import (
    check_folder,
    first_error_line,
    offer_plugins,
    quote_folder,
    translate_hydra_error,
)
from longsumbench.sweeps.worker import end_with

HERE = "basic"  # Hydra's name for this process
_PLUGINS = {  # of Hydra: package → extra of the suite, and the choices that need it
    "hydra_joblib_launcher": ("joblib", ("joblib",)),
    "hydra_submitit_launcher": (
        "slurm",
        ("submitit_slurm", "submitit_local", "slurm_cpu", "slurm_gpu", "slurm_preemptible"),
    ),
    "hydra_optuna_sweeper": ("optuna", ("optuna",)),
}
_GROUPS = ("launcher", "sweeper")
_USUAL = {"launcher": "joblib", "sweeper": "optuna"}  # that a message names
# Of optuna, unless typed: higher scores are better, the same command asks for the same points, one at a time, and a
# point that fails ends nothing.
_SEARCH = {"direction": "maximize", "sampler.seed": "1", "n_jobs": "1", "max_failure_rate": "1.0"}
_ENDS_JOBS = "scancel --name=longsumbench"
_SECONDS_BETWEEN_LOOKS = 2.0  # at jobs of a cluster
_SECONDS_BETWEEN_QUESTIONS = 30  # to a cluster
MOST_JOBS = 1_000  # most jobs of a SLURM array by default (MaxArraySize)

_Task = Callable[[Any], Any]
Ask = Callable[[list[str]], float | Exception]


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
            UsageError: there is no such launcher, sweeper, setting or folder, or no sweep is asked for.
            EnvironmentProblem: it is not installed.
        """
        check_folder(config_dir)
        chosen = dict.fromkeys(_GROUPS, HERE)
        for word in words:
            key, sign, value = word.lstrip("+~").partition("=")
            group = key.removeprefix("hydra").lstrip("/.").partition(".")[0]
            if not sign or group not in _GROUPS:
                offered = ", ".join(f"hydra/{name}=… and hydra.{name}.…" for name in _GROUPS)
                raise UsageError(f"'{word}': of Hydra's own settings, {offered} can be chosen")
            if key == f"hydra.{group}":
                raise UsageError(f"'{word}': one is chosen by hydra/{group}={value}, with a slash")
            if key == f"hydra/{group}":
                chosen[group] = value
        if words and not sweep:
            raise UsageError(f"'{words[0]}' is for sweeps: add -m, also for a single point")
        engine = cls(tuple(words), **chosen, config_dir=config_dir)
        for group in _GROUPS:
            engine.check_installed(group, chosen[group])
        engine.composed(Path())  # settings are checked before any work
        return engine

    def check_installed(self, group: str, name: str) -> None:
        """Check that a launcher or sweeper is there.

        Raises:
            UnknownName: nobody knows it.
            EnvironmentProblem: it comes with an extra that is not installed.
        """
        for plugin, (extra, names) in _PLUGINS.items():
            if name in names and importlib.util.find_spec(f"hydra_plugins.{plugin}") is None:
                install = f"pip install 'longsumbench[{extra}]'"
                raise EnvironmentProblem(f"hydra/{group}={name} is not installed: {install}")
        with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
            known = GlobalHydra.instance().config_loader().get_group_options(f"hydra/{group}")
        if name not in known and self.config_dir is None:
            raise UnknownName(f"hydra/{group}", name, known)

    def composed(self, folder: Path, *more: str) -> tuple[HydraContext, DictConfig]:
        """Let Hydra lay its own words over its settings; return what its plug-ins are made with.

        Args:
            folder: for what a launcher or sweeper writes.
            more: words that go before those that were typed.

        Raises:
            UsageError: a setting is unknown or invalid.
        """
        from hydra._internal.callbacks import Callbacks  # there is no other way to a launcher without hydra.main

        quiet = ["hydra/job_logging=none", "hydra/hydra_logging=none", "hydra.output_subdir=null"]
        place = [f"hydra.sweep.dir={quote_folder(folder)}", "hydra.sweep.subdir=''", "hydra.job.name=longsumbench"]
        if self.config_dir is not None:
            place.append(f"hydra.searchpath=[{quote_folder(self.config_dir, 'file://')}]")
        words = [*quiet, *place, *self.words, *more]
        offer_plugins(self.config_dir)
        try:
            with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
                core = GlobalHydra.instance().hydra
                assert core is not None
                composed = core.compose_config("run", words, RunMode.MULTIRUN, with_log_configuration=False)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise self.translated(error) from error
        return HydraContext(config_loader=core.config_loader, callbacks=Callbacks()), composed

    def settings(self, group: str) -> list[str]:
        """Return the names of the settings of the launcher or the sweeper."""
        _, composed = self.composed(Path())
        return sorted(str(name) for name in composed.hydra[group] if not str(name).startswith("_"))

    def translated(self, error: Exception) -> SuiteError:
        """Turn what Hydra says of its words into one line, with the setting's nearest name."""
        for key in (word.lstrip("+~").partition("=")[0] for word in self.words):
            if f"Could not override '{key}'" in str(error):
                group, _, name = key.removeprefix("hydra.").partition(".")
                if getattr(self, group) == HERE:
                    return UsageError(
                        f"'{key}' is of a {group} of Hydra's: choose one, as hydra/{group}={_USUAL[group]}"
                    )
                known = Engine((f"hydra/{group}={getattr(self, group)}",), config_dir=self.config_dir).settings(group)
                return UsageError(f"unknown setting '{key}'{did_you_mean(name, known)}; known: {', '.join(known)}")
        return translate_hydra_error(error)

    def refused(self, error: BaseException) -> SuiteError:
        """Turn an error of a sweeper or its library into one line."""
        if isinstance(error, HydraException | OmegaConfBaseException):
            return translate_hydra_error(error)
        return UsageError(f"hydra/sweeper={self.sweeper} does not work so: {first_error_line(error)} (hydra.sweeper.*)")

    def launch(self, task: _Task, jobs: int, folder: Path) -> None:
        """Let the launcher do some jobs; return when it is through with them.

        Args:
            task: is called with a composed configuration, of which only `hydra.job.num` matters: 0 for the first job.
            jobs: how many there are.
            folder: for what the launcher writes, this time alone.

        Raises:
            LaunchBroke: the launcher gave up: a process died.
            SuiteError: it could not begin.
        """
        context, composed = self.composed(folder)
        launcher: Any = Plugins.instance().instantiate_launcher(context, task, composed)
        on_cluster = composed.hydra.launcher._target_.endswith("SlurmLauncher")
        if on_cluster:  # importing submitit alters everybody's logging
            _look_more_often()
            _say_it_once()
        try:
            try:
                for first, together in _side_by_side(launcher, jobs):
                    launcher.launch([[] for _ in range(together)], initial_job_idx=first)
            except Exception as error:
                if on_cluster:
                    wait_for_jobs(folder)
                raise problem_of(error, self) from error
        except KeyboardInterrupt:
            if not on_cluster:
                raise
            note = f"the submitted jobs go on ({_ENDS_JOBS} ends them), and what they finish is kept"
            raise KeyboardInterrupt(note) from None

    def search(self, ask: Ask, words: Sequence[str], folder: Path) -> None:
        """Let the sweeper ask for points until it has enough.

        Args:
            ask: takes the words of a point; returns its score, or why it has none.
            words: what is typed; of settings that are searched, their ranges.
            folder: for what the sweeper writes.

        Raises:
            UsageError: a range is invalid.
        """
        typed = {word.lstrip("+~").partition("=")[0] for word in self.words}
        known = {f"hydra.sweeper.{name}": value for name, value in _SEARCH.items() if self.sweeper == "optuna"}
        usual = [f"{name}={value}" for name, value in known.items() if name not in typed]
        folder.mkdir(parents=True, exist_ok=True)
        of_launcher = ("hydra/launcher", "hydra.launcher")
        here = replace(self, words=tuple(word for word in self.words if not word.lstrip("+~").startswith(of_launcher)))
        context, composed = here.composed(folder, *usual)
        trials = Trials(ask)
        try:
            sweeper: Any = Plugins.instance().instantiate_sweeper(
                config=composed, hydra_context=context, task_function=lambda _: None
            )
            getattr(sweeper, "sweeper", sweeper).launcher = trials  # the plug-in hands all to an inner one
            sweeper.sweep(arguments=list(words))
        except Exception as error:  # errors of sweepers and their libraries have no common class
            if error is trials.fault:
                raise
            cause = error.__cause__ if isinstance(error, InstantiationException) else None
            raise as_suite_error(error) or self.refused(cause or error) from error


@dataclass
class Trials:
    """What a sweeper takes for a launcher: it hands on the words of each point that is asked for.

    Attributes:
        ask: takes the words of a point; returns its score, or why it has none.
        fault: what it raised, which is none of the sweeper's.
    """

    ask: Ask
    fault: Exception | None = None

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        """Return the score of each point, or why it has none."""
        returns = []
        for words in job_overrides:
            found = JobReturn(overrides=words)
            try:
                found.return_value = self.ask(list(words))
            except Exception as error:
                self.fault = error
                raise
            found.status = JobStatus.FAILED if isinstance(found._return_value, Exception) else JobStatus.COMPLETED
            returns.append(found)
        return returns


class LaunchBroke(Exception):
    """A launcher gave up before all of its jobs had ended, for a process of one died."""


def problem_of(error: Exception, engine: Engine) -> Exception:
    """Tell a launcher that could not begin from one of whose jobs a process died."""
    of_machine = isinstance(error, SuiteError | OSError | MemoryError)  # others quote what a dead process said
    if of_machine and (known := as_suite_error(error)):
        return known
    text = str(error)
    if isinstance(error, subprocess.CalledProcessError):
        text = str(error.stderr or error.output or error)
    said = " ".join(text.split())
    if said.startswith("sbatch:"):
        lines = [re.sub(r"^sbatch: (error|fatal): ", "", line) for line in text.strip().splitlines()]
        return UsageError(
            f"SLURM did not take the sweep: {'; '.join(lines)} (hydra.launcher.*; see docs/how-to/slurm.md)"
        )
    if "srun" in said and shutil.which("srun") is None:
        other = "hydra/launcher=joblib works on this machine alone"
        return EnvironmentProblem(f"hydra/launcher={engine.launcher}: no SLURM on this machine (no srun); {other}")
    if isinstance(error, ValueError):  # jobs never fail, so it is the launcher's own
        return UsageError(f"hydra/launcher={engine.launcher} cannot begin: {said} (hydra.launcher.*)")
    return LaunchBroke(said or type(error).__name__)


def _side_by_side(launcher: Any, jobs: int) -> Iterator[tuple[int, int]]:
    """Yield the first of the jobs that a launcher is to be given at once, and how many those are.

    joblib works with a single process in this very one, which a point must not take with it, nor end. So two are asked
    for instead, with all cores each, and given a job at a time.
    """
    settings = getattr(launcher, "joblib", None)
    if settings is None:
        yield 0, jobs
        return
    settings |= {"initializer": end_with, "initargs": (os.getpid(),)}
    if _joblib_processes(settings["n_jobs"]) > 1:
        yield 0, jobs
        return
    settings["n_jobs"] = 2
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(_joblib_processes(-1)))
    for first in range(jobs):
        yield first, 1


def _joblib_processes(n_jobs: int) -> int:
    """Return how many processes joblib takes for a number of jobs as typed; -1 is one a core."""
    from joblib import effective_n_jobs  # type: ignore[import-untyped]

    found: int = effective_n_jobs(n_jobs)
    return found


def _look_more_often() -> None:
    """Let submitit ask a cluster for its jobs' states twice a minute; by itself it waits longer and longer."""
    from submitit import SlurmJob
    from submitit.slurm.slurm import SlurmInfoWatcher

    SlurmJob.watcher = SlurmInfoWatcher(delay_s=_SECONDS_BETWEEN_QUESTIONS)


def _say_it_once() -> None:
    """Keep submitit from printing what sbatch complains of: the error that it raises says it too."""
    from submitit.core import utils

    vars(utils)["print"] = lambda *_, **__: None


def wait_for_jobs(folder: Path) -> None:
    """Wait for the jobs of a cluster that were submitted from a folder and have not ended.

    submitit's launcher gives up at the first job that died; the others go on.
    """
    from submitit import SlurmJob

    tasks = sorted(path.name.rsplit("_submitted", 1)[0] for path in folder.rglob("*_submitted.pkl"))
    where = next((path.parent.parent for path in folder.rglob("*_submitted.pkl")), folder)
    jobs: list[SlurmJob[Any]] = [SlurmJob(folder=where / "%j", job_id=task) for task in tasks]
    while not all(job.done() for job in jobs):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
