"""What a training needs to continue exactly: counts, losses, weights, the optimizer, random numbers."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer
from transformers import PreTrainedModel
from transformers.utils import SAFE_WEIGHTS_NAME

from longsumbench.core import FitReport
from longsumbench.files import as_type
from longsumbench.modeling.processes import from_first_process, process_index
from longsumbench.modeling.training.data_parallel import gather_over_processes


@dataclass
class TrainingState:
    """The progress of a training in all processes. Losses are in nats per target token."""

    step: int = 0  # optimizer steps
    examples: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    seconds: float = 0.0  # training and validation
    validation_seconds: float = 0.0
    # sum of the losses of the steps since the last entry of `logged_losses`
    interval_loss: float = 0.0
    logged_losses: list[float] = field(default_factory=list)  # mean loss of each logging interval
    # (step, loss) of every validation
    validation_losses: list[tuple[int, float]] = field(default_factory=list)
    ended_by: str = ""  # the budget or rule that ended training; empty before

    def best(self, number: int = 1) -> tuple[tuple[int, float], ...]:
        """Return the (step, loss) of the lowest validation losses, the lowest first; the earlier step wins a tie."""
        return tuple(sorted(self.validation_losses, key=lambda pair: (pair[1], pair[0]))[:number])

    def report(self) -> FitReport:
        """Return what a state knows for the record."""
        best_step, validation_loss = next(iter(self.best()), (self.step, None))
        return FitReport(
            steps=self.step,
            examples=self.examples,
            source_tokens=self.source_tokens,
            target_tokens=self.target_tokens,
            seconds=round(self.seconds, 2),
            ended_by=self.ended_by,
            best_step=best_step,
            validation_loss=validation_loss,
            validation_losses=tuple(self.validation_losses),
            first_loss=next(iter(self.logged_losses), None),
            last_loss=next(reversed(self.logged_losses), None),
        )


def save_checkpoint(
    folder: Path, state: TrainingState, model: PreTrainedModel, optimizer: Optimizer
) -> None:
    """Write the checkpoint of a step, then delete the earlier ones. All processes call it; the first one writes."""
    # of each generator, the states of all processes
    states = [gather_over_processes(generator.get_rng_state()) for generator in _generators()]
    if process_index():
        return
    old_checkpoints = _checkpoints(folder)
    content = {
        "state": asdict(state),
        "model": trained_weights(model),
        "optimizer": optimizer.state_dict(),
        "random": list(map(list, zip(*states, strict=True))),  # of each process, its states
    }
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / "unfinished"
    with unfinished.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    checkpoint = unfinished.replace(folder / f"checkpoint-{state.step}")
    for path in set(old_checkpoints) - {checkpoint}:
        path.unlink()


def load_checkpoint(folder: Path, model: PreTrainedModel, optimizer: Optimizer) -> TrainingState:
    """Continue from the newest checkpoint: load it into model, optimizer and random numbers; return its state.

    Without a checkpoint, returns the state of a new training. All processes load the one that the first one finds.
    """
    newest = max((int(path.name.split("-")[1]) for path in _checkpoints(folder)), default=0)
    step = from_first_process(newest)
    if not step:
        return TrainingState()
    content = torch.load(folder / f"checkpoint-{step}", map_location="cpu", weights_only=True)
    load_weights(model, content["model"])
    optimizer.load_state_dict(content["optimizer"])
    if process_index() < len(content["random"]):  # else more processes continue than started
        own_states = content["random"][process_index()]
        for generator, state in zip(_generators(), own_states, strict=False):
            generator.set_rng_state(state)
    return as_type(content["state"], TrainingState)


def _checkpoints(folder: Path) -> list[Path]:
    return list(folder.glob("checkpoint-*"))


def _generators() -> list[Any]:
    """Return what draws torch's random numbers: on the CPU and, if one is in use, on the GPU."""
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    if in_use:
        return [torch, torch.cuda]
    return [torch, torch.mps] if torch.backends.mps.is_available() else [torch]


def weights_folder(folder: Path, step: int) -> Path:
    """Return the folder of the weights of a step that is among the best."""
    return folder / f"weights-{step}"


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights that a training changes; shared ones once."""
    weights = model.named_parameters()
    return {name: weight.detach() for name, weight in weights if weight.requires_grad}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a model weights that a training changed; the others, which are frozen, stay."""
    model.load_state_dict(weights, strict=False)


def save_weights(model: nn.Module, folder: Path) -> None:
    """Write the weights that a training changes into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.contiguous() for name, weight in trained_weights(model).items()}
    save_file(weights, folder / SAFE_WEIGHTS_NAME)


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights in a folder that `save_weights` wrote."""
    weights: dict[str, Tensor] = load_file(folder / SAFE_WEIGHTS_NAME)
    return weights


def mean_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights in some folders, in double precision."""
    sums: dict[str, Tensor] = {}
    for folder in folders:  # one by one, because they are large
        weights = read_weights(folder)
        sums = {name: weight.double() + sums.get(name, 0.0) for name, weight in weights.items()}
    return {name: total / len(folders) for name, total in sums.items()}
