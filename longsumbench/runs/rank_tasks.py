"""What the other processes of a team do for a run: they train with the first one, and write a share of its summaries.

They find the finished stages that the first one has made or found, and write nothing but their share of summaries.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from longsumbench.api import registry
from longsumbench.api.config import SECTIONS, RunConfig, build_settings
from longsumbench.api.system import System
from longsumbench.cache.artifacts import ArtifactCache, MissingArtifact, cache_folder
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import EnvironmentProblem, SuiteError
from longsumbench.runs.predictions import WriterGroup, summarize_share
from longsumbench.runs.processes import Team, of_this_process


@dataclass(frozen=True)
class Assistants:
    """The other processes, as the run of the first one calls them.

    Attributes:
        team: all processes.
        config: of the run.
        folder: the run's.
    """

    team: Team
    config: RunConfig
    folder: Path

    @contextmanager
    def training(self, stage: Path) -> Iterator[None]:
        """Let all processes do what is inside.

        Args:
            stage: the folder in which the checkpoint is being built.
        """
        with self._helped("train", stage=str(stage)), self.team.group(self.config.train.device):
            yield

    def crew(
        self, number: int, predictions: Path, log: Path | None = None, evidence: Path | None = None
    ) -> WriterGroup:
        """Return who writes the summaries of one of the checkpoints that were kept, the best being 1.

        The files are those of `summarize_split`.
        """
        files = {"predictions": str(predictions), "log": log and str(log), "evidence": evidence and str(evidence)}
        return WriterGroup(
            0, self.team.size, lambda batches: self._helped("summarize", number=number, batches=batches, **files)
        )

    def _helped(self, task: str, **arguments: Any) -> AbstractContextManager[None]:
        """Call the others to a task of this run."""
        return self.team.helped(task, {"config": asdict(self.config), "folder": str(self.folder), **arguments})


def assistants(system: System, config: RunConfig, folder: Path) -> Assistants | None:
    """Return who helps with a run: None where there is one process, or a system with whose work none can help."""
    team = of_this_process()
    return Assistants(team, config, folder.resolve()) if team.size > 1 and system.shares_work else None


def _train_along(team: Team, arguments: Mapping[str, Any]) -> None:
    """Train with the first process, which saves what comes of it."""
    config, folder, stage = _read_arguments(arguments, _TRAINING)
    with _read_again(config) as (system, texts, stages):
        stages.together = lambda _: team.group(config.train.device)
        try:
            _fit(system, texts, config, folder, stages)
        except MissingArtifact as missing:
            if missing.folder.resolve() != stage.resolve():
                raise RuntimeError(f"process {team.rank} would train {missing.folder}, not {stage}") from missing
            missing.build(stage)


def _summarize_along(team: Team, arguments: Mapping[str, Any]) -> None:
    """Write this process's share of some batches of summaries into separate files."""
    config, folder, number, predictions, log, evidence, batches = _read_arguments(arguments, _SUMMARIZING)
    team.take_gpu(config.decode.device)
    with _read_again(config) as (system, texts, stages):
        _fit(system, texts, config, folder, stages)
        if number > 1:
            system.use_kept(number)
        split, crew = texts.splits[config.dataset.split], WriterGroup(team.rank, team.size)
        summarize_share(system, split, config.decode, batches, crew, predictions, log, evidence)


TASKS = {"train": _train_along, "summarize": _summarize_along}  # all that the other processes can be called for


@contextmanager
def _read_again(config: RunConfig) -> Iterator[tuple[System, Texts, ArtifactCache]]:
    """Give a run's system, not fitted, its texts, and the stages that are finished."""
    stages = ArtifactCache(cache_folder(), finished_only=True)
    system: System = registry.systems.load(config.model.name)(config.model)
    yield system, load_texts(config.dataset, stages), stages


def _fit(system: System, texts: Texts, config: RunConfig, folder: Path, stages: ArtifactCache) -> None:
    """Fit a system as the run does."""
    system.fit(texts.splits.get("train"), texts.splits.get("validation"), config.train, folder / "work", stages)


def _read_arguments(arguments: Mapping[str, Any], readers: Mapping[str, Callable[[Any], Any]]) -> list[Any]:
    """Return the arguments of a call, in the order of their readers.

    Raises:
        EnvironmentProblem: they are not what this program sends.
    """
    if arguments.keys() != readers.keys():
        raise EnvironmentProblem(f"refused a call: it needs {', '.join(readers)} and nothing else")
    found = []
    for name, read in readers.items():
        try:
            found.append(read(arguments[name]))
        except (TypeError, ValueError, LookupError, AttributeError, SuiteError) as error:
            reason = f"{error}".splitlines()[0][:200] if f"{error}" else type(error).__name__
            raise EnvironmentProblem(f"refused a call: its argument {name} is invalid ({reason})") from error
    return found


def parse_config(values: Any) -> RunConfig:
    """Return the configuration of a run from its JSON values."""
    rest = dict(values)
    groups = {name: rest.pop(name) for name in ("model", *SECTIONS)}
    model = registry.systems.load(groups["model"]["name"]).Config
    schemas = {"model": model, **SECTIONS}
    settled = {name: build_settings(schemas[name], dict(group), f"{name}.") for name, group in groups.items()}
    config: RunConfig = build_settings(RunConfig, rest, "", settled)
    return config


def _path_of(value: Any) -> Path:
    """Return a path from its JSON value."""
    if not isinstance(value, str):
        raise TypeError("no path")
    return Path(value)


def _path_or_none(value: Any) -> Path | None:
    """Return a path from its JSON value, which may be null."""
    return None if value is None else _path_of(value)


def _number_of(value: Any) -> int:
    """Return a number from 1."""
    if type(value) is not int or value < 1:
        raise TypeError("no number")
    return value


def _batches_of(value: Any) -> list[list[int]]:
    """Return batches of the places of examples."""
    if not isinstance(value, list) or not all(isinstance(batch, list) and batch for batch in value):
        raise TypeError("no batches")
    if not all(type(index) is int and index >= 0 for batch in value for index in batch):
        raise TypeError("no places of examples")
    return value


_TRAINING = {"config": parse_config, "folder": _path_of, "stage": _path_of}
_SUMMARIZING = {
    **{"config": parse_config, "folder": _path_of, "number": _number_of, "predictions": _path_of},
    **{"log": _path_or_none, "evidence": _path_or_none, "batches": _batches_of},
}
