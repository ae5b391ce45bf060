"""What the other processes of a team do for a run: they train with the first one, and write a share of its summaries.

They find the finished stages that the first one has made or found, and write nothing but their share of summaries.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from longsumbench import registry
from longsumbench.configuration import RunConfig
from longsumbench.corpora.loading import Texts, load
from longsumbench.predictions import Crew, summarize_share
from longsumbench.stages import MissingStage, StageStore, cache_folder
from longsumbench.system import System
from longsumbench.team import Team, of_this_process


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
        task = partial(train_along, config=self.config, folder=self.folder, stage=stage)
        with self.team.helped(task), self.team.group(self.config.train.device):
            yield

    def crew(self, number: int, predictions: Path, log: Path | None = None, evidence: Path | None = None) -> Crew:
        """Return who writes the summaries of one of the checkpoints that were kept, the best being 1.

        The files are those of `summarize_split`.
        """
        task = partial(
            summarize_along,
            config=self.config,
            folder=self.folder,
            number=number,
            predictions=predictions,
            log=log,
            evidence=evidence,
        )
        return Crew(0, self.team.size, lambda batches: self.team.helped(partial(task, batches=batches)))


def assistants(system: System, config: RunConfig, folder: Path) -> Assistants | None:
    """Return who helps with a run: None where there is one process, or a system with whose work none can help."""
    team = of_this_process()
    return Assistants(team, config, folder.resolve()) if team.size > 1 and system.shares_work else None


def train_along(team: Team, config: RunConfig, folder: Path, stage: Path) -> None:
    """Train with the first process, which saves what comes of it."""
    with read_again(config) as (system, texts, stages):
        stages.together = lambda _: team.group(config.train.device)
        try:
            fit(system, texts, config, folder, stages)
        except MissingStage as missing:
            if missing.folder.resolve() != stage.resolve():
                raise RuntimeError(f"process {team.rank} would train {missing.folder}, not {stage}") from missing
            missing.build(stage)


def summarize_along(
    team: Team,
    config: RunConfig,
    folder: Path,
    number: int,
    predictions: Path,
    log: Path | None,
    evidence: Path | None,
    batches: Sequence[list[int]],
) -> None:
    """Write this process's share of some batches of summaries into files of its own."""
    team.take_gpu(config.decode.device)
    with read_again(config) as (system, texts, stages):
        fit(system, texts, config, folder, stages)
        if number > 1:
            system.use_kept(number)
        split, crew = texts.splits[config.dataset.split], Crew(team.rank, team.size)
        summarize_share(system, split, config.decode, batches, crew, predictions, log, evidence)


@contextmanager
def read_again(config: RunConfig) -> Iterator[tuple[System, Texts, StageStore]]:
    """Give a run's system, not fitted, its texts, and the stages that are finished."""
    stages = StageStore(cache_folder(), say=lambda line: None, finished_only=True)
    try:
        system: System = registry.systems.load(config.model.name)(config.model)
        yield system, load(config.dataset, stages), stages
    finally:
        stages.release()


def fit(system: System, texts: Texts, config: RunConfig, folder: Path, stages: StageStore) -> None:
    """Fit a system as the run does."""
    system.fit(texts.splits.get("train"), texts.splits.get("validation"), config.train, folder / "work", stages)
