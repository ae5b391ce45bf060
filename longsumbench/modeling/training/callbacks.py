"""What accompanies a training: it counts the budget, shows the steps, saves in time, and keeps the best weights."""

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
from longsumbench.progress import Progress, print_line

_SECONDS_BETWEEN_SAVES = 300.0  # a killed training loses no more, but for a step and a validation


class Budget(TrainerCallback, ExportableState):
    """Counts what training used, and ends it when a budget is used up; its counts survive a resume."""

    def __init__(self, max_steps: int, max_tokens: int | None = None, max_minutes: float | None = None) -> None:
        self.limits = {"max_steps": max_steps, "max_tokens": max_tokens, "max_minutes": max_minutes}
        self.examples = self.source_tokens = self.target_tokens = 0
        self.seconds = self.validation_seconds = 0.0
        self.ended_by = ""
        self._since: float | None = None

    def state(self) -> dict[str, Any]:
        """Return what the Trainer stores in a checkpoint."""
        self._tick()
        names = ("examples", "source_tokens", "target_tokens", "seconds", "validation_seconds", "ended_by")
        return {"args": self.limits, "attributes": {name: getattr(self, name) for name in names}}

    def count(self, batch: dict[str, Tensor]) -> None:
        """Count a batch that is trained on here, and its real tokens."""
        self.add(num_trained_on(batch))

    def add(self, counts: Mapping[str, int]) -> None:
        """Add what was counted: `examples`, `source_tokens`, `target_tokens`."""
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def _tick(self) -> None:
        now = time.monotonic()
        self.seconds += now - (self._since if self._since is not None else now)
        self._since = now

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock; the time of earlier pieces is already counted."""
        self._since = time.monotonic()

    def used_up(self, step: int) -> str:
        """Return the first budget that is used up, or nothing."""
        used = {
            "max_steps": step,
            "max_tokens": self.source_tokens + self.target_tokens,
            "max_minutes": (self.seconds - self.validation_seconds) / 60,
        }
        return next((name for name, limit in self.limits.items() if limit is not None and used[name] >= limit), "")

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Note the end that patience, asked before, has called for; it stands in the checkpoint saved next."""
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
    """Shows the steps as progress."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._loss = ""

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Count the steps of earlier processes as done."""
        self.progress.start_at(state.global_step)
        if state.global_step and place() == 0:
            print_line(f"{self.progress.what}: resumed at step {state.global_step}")

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        """Keep the newest loss for the note behind the bar."""
        if logs and "loss" in logs:
            self._loss = f"loss {logs['loss']:.3f}"

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Advance by one."""
        self.progress.advance(1, note=self._loss)


class CheckLoss(TrainerCallback):
    """Ends a training whose loss is infinite or not a number, before such weights are saved.

    Args:
        what: the training, as the user knows it ("training").
    """

    def __init__(self, what: str) -> None:
        self.what, self._seen = what, 0.0

    def note(self, loss: Tensor) -> None:
        """Note the loss of a batch that was trained on."""
        if not math.isfinite(value := loss.item()):
            self._seen = value

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Check the losses of the step, those of all processes.

        Raises:
            UsageError: one is not finite.
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
        """Check the weights, for no loss was computed after the last step of a training without validation.

        Raises:
            UsageError: one is not finite.
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

    The outcome does not depend on it: only checkpoints of validated steps are chosen from. Processes that train
    together all save at the same step, and all end when one of them is interrupted.

    Args:
        interrupted: true once a signal was noted.
    """

    def __init__(self, interrupted: SignalNote) -> None:
        self.interrupted = interrupted
        self._saved = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Ask for a checkpoint if it is time for one."""
        due = time.monotonic() - self._saved >= _SECONDS_BETWEEN_SAVES
        wishes = of_all((bool(self.interrupted), due))
        if wishes[0][1] or any(interrupted for interrupted, _ in wishes):  # clocks differ: the first one's counts
            control.should_save = True

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Restart the clock; end the training if it was interrupted.

        Raises:
            KeyboardInterrupt: it was, here or in a process that trains with this one.
        """
        self._saved = time.monotonic()
        if any(of_all(bool(self.interrupted))):  # which waits until the first process has written all of it
            raise KeyboardInterrupt


class KeepBest(TrainerCallback):
    """Keeps the weights of the validations with the lowest losses, each in a folder as `save_pretrained` writes it.

    Which they are is read from the Trainer's own log of losses, so that a resumed training ends with the same ones.
    What has been surpassed is deleted after the next checkpoint only: until then, a kill brings it back.

    Args:
        folder: of the training.
        most: how many are kept.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, self.most = folder, most

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any = None, **_: Any
    ) -> None:
        """Write the weights, if they are among the best so far."""
        if state.is_world_process_zero and state.global_step in dict(lowest_losses(validations(state), self.most)):
            model.save_pretrained(weights_folder(self.folder, state.global_step))

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Delete the weights that are no longer among the best."""
        if not state.is_world_process_zero:
            return
        best = {weights_folder(self.folder, step) for step, _ in lowest_losses(validations(state), self.most)}
        for surpassed in set(self.folder.glob("weights-*")) - best:
            shutil.rmtree(surpassed)


def weights_folder(folder: Path, step: int) -> Path:
    """Return where a training keeps the weights of a step that is among the best."""
    return folder / f"weights-{step}"


def validations(state: TrainerState) -> tuple[tuple[int, float], ...]:
    """Return (step, loss) of every validation so far."""
    return tuple((one["step"], one["eval_loss"]) for one in state.log_history if "eval_loss" in one)


def lowest_losses(losses: Sequence[tuple[int, float]], most: int) -> tuple[tuple[int, float], ...]:
    """Return the (step, loss) of the lowest losses, the best first; of equal ones the earlier, NaN last."""
    return tuple(sorted(losses, key=lambda one: (math.inf if math.isnan(one[1]) else one[1], one[0]))[:most])
