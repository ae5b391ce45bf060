"""Callbacks of the Trainer: budget, progress, loss checks, timed checkpoints, the best weights."""

import logging
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import TrainerCallback, TrainingArguments
from transformers.trainer_callback import ExportableState, TrainerControl, TrainerState

from longsumbench.errors import UsageError
from longsumbench.interrupts import SignalNote
from longsumbench.modeling.training.data_parallel import num_trained_on, of_all, of_the_first, place
from longsumbench.progress import Progress

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_SAVES = 300.0  # a killed training loses at most this, a step and a validation


class Budget(TrainerCallback, ExportableState):
    """Counts steps, tokens and time, and ends training when a budget is used up; a resume continues the counts."""

    def __init__(self, max_steps: int, max_tokens: int | None = None, max_minutes: float | None = None) -> None:
        self.limits = {"max_steps": max_steps, "max_tokens": max_tokens, "max_minutes": max_minutes}
        self.examples = self.source_tokens = self.target_tokens = 0
        self.seconds = self.validation_seconds = 0.0
        self.ended_by = ""
        self._since: float | None = None

    def state(self) -> dict[str, Any]:
        """Return the state that the Trainer stores in a checkpoint."""
        self._tick()
        names = ("examples", "source_tokens", "target_tokens", "seconds", "validation_seconds", "ended_by")
        return {"args": self.limits, "attributes": {name: getattr(self, name) for name in names}}

    def count(self, batch: dict[str, Tensor]) -> None:
        """Count the examples and real tokens of a batch in this process."""
        self.add(num_trained_on(batch))

    def add(self, counts: Mapping[str, int]) -> None:
        """Add counts of `examples`, `source_tokens` and `target_tokens`."""
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def _tick(self) -> None:
        now = time.monotonic()
        self.seconds += now - (self._since if self._since is not None else now)
        self._since = now

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock; a resume has restored the time of earlier processes."""
        self._since = time.monotonic()

    def used_up(self, step: int) -> str:
        """Return the name of the first budget that is used up, or an empty string."""
        used = {
            "max_steps": step,
            "max_tokens": self.source_tokens + self.target_tokens,
            "max_minutes": (self.seconds - self.validation_seconds) / 60,
        }
        return next((name for name, limit in self.limits.items() if limit is not None and used[name] >= limit), "")

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Note that patience, an earlier callback, has ended training; the next checkpoint stores it."""
        if control.should_training_stop and not self.ended_by:
            self.ended_by = "patience"

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """End training, with a last validation and checkpoint, when a budget is used up."""
        self._tick()
        ended_by = self.used_up(state.global_step)
        if self.limits["max_minutes"] is not None:
            ended_by = of_the_first(ended_by)  # clocks differ
        if ended_by:
            self.ended_by = ended_by
            control.should_training_stop = control.should_save = True
            control.should_evaluate = args.eval_strategy != "no"
        return control


class ShowProgress(TrainerCallback):
    """Shows the progress in steps."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._loss = ""

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Count the steps of earlier processes as done."""
        self.progress.start_at(state.global_step)
        if state.global_step and place() == 0:
            _log.info(f"{self.progress.what}: resumed at step {state.global_step}")

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        """Keep the newest loss for the note after the progress bar."""
        if logs and "loss" in logs:
            self._loss = f"loss {logs['loss']:.3f}"

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Advance by one step."""
        self.progress.advance(1, note=self._loss)


class CheckLoss(TrainerCallback):
    """Ends a training when a loss or weight is not finite, before such weights are saved."""

    def __init__(self, what: str) -> None:
        self.what, self._seen = what, 0.0

    def note(self, loss: Tensor) -> None:
        """Note the loss of a training batch."""
        if not math.isfinite(value := loss.item()):
            self._seen = value

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Check the losses of the step in all processes.

        Raises:
            UsageError: a loss is not finite.
        """
        for loss in of_all(self._seen):
            self._check(loss, "the loss", state.global_step)

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, metrics: Any = None, **_: Any
    ) -> None:
        """Check the validation loss.

        Raises:
            UsageError: it is not finite.
        """
        self._check(metrics["eval_loss"], "the validation loss", state.global_step)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        """Check the weights, because a training without validation computes no loss after its last step.

        Raises:
            UsageError: a weight is not finite.
        """
        if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
            raise self._failed("a weight", state.global_step, math.nan)

    def _check(self, loss: float, name: str, step: int) -> None:
        if not math.isfinite(loss):
            raise self._failed(name, step, loss)

    def _failed(self, name: str, step: int, value: float) -> UsageError:
        advice = "lower train.learning_rate, or limit the gradients (train.max_grad_norm=1)"
        return UsageError(f"{self.what}: {name} is {value} at step {step}; {advice}")


class SaveInTime(TrainerCallback):
    """Saves a checkpoint every few minutes, and at the end of the step in which the training is interrupted.

    The result does not depend on it: the best checkpoint is one of a validated step. Processes that train together save
    at the same step, and all end when one of them is interrupted.
    """

    def __init__(self, interrupted: SignalNote) -> None:
        self.interrupted = interrupted
        self._saved = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Request a checkpoint after an interrupt or a few minutes."""
        due = time.monotonic() - self._saved >= _SECONDS_BETWEEN_SAVES
        states = of_all((bool(self.interrupted), due))
        if states[0][1] or any(interrupted for interrupted, _ in states):  # clocks differ: the first process decides
            control.should_save = True

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Restart the clock; end the training if it was interrupted.

        Raises:
            KeyboardInterrupt: this process or another one of the training was interrupted.
        """
        self._saved = time.monotonic()
        if any(of_all(bool(self.interrupted))):  # `of_all` waits until the first process has written the checkpoint
            raise KeyboardInterrupt


class KeepBest(TrainerCallback):
    """Keeps the `most` weights with the lowest validation losses, each in a folder written by `save_pretrained`.

    The losses come from the Trainer's log, so that a resumed training keeps the same weights. Other weights are deleted
    after the next checkpoint only, because a resume may need them.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, self.most = folder, most

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        """Save the weights if they are among the best so far."""
        if state.is_world_process_zero and state.global_step in dict(lowest_losses(validations(state), self.most)):
            model.save_pretrained(weights_folder(self.folder, state.global_step))

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Delete the weights that are no longer among the best."""
        if not state.is_world_process_zero:
            return
        best = {weights_folder(self.folder, step) for step, _ in lowest_losses(validations(state), self.most)}
        for weights in set(self.folder.glob("weights-*")) - best:
            shutil.rmtree(weights)


def weights_folder(folder: Path, step: int) -> Path:
    """Return the folder of the weights of a step that is among the best."""
    return folder / f"weights-{step}"


def validations(state: TrainerState) -> tuple[tuple[int, float], ...]:
    """Return (step, loss) of every validation so far."""
    return tuple((entry["step"], entry["eval_loss"]) for entry in state.log_history if "eval_loss" in entry)


def lowest_losses(losses: Sequence[tuple[int, float]], most: int) -> tuple[tuple[int, float], ...]:
    """Return the (step, loss) of the lowest losses, the lowest first; the earlier step wins a tie, NaN is last."""
    return tuple(sorted(losses, key=lambda pair: (math.inf if math.isnan(pair[1]) else pair[1], pair[0]))[:most])
