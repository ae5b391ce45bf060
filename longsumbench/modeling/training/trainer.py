"""The training loop: budgets, validation, the best checkpoints, exact resume; optimizers and learning-rate schedules.

Several processes train as one process does with the same batches: see `data_parallel`.
"""

import logging
import math
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
from torch import Tensor, nn
from torch.optim import Adagrad, AdamW, Optimizer
from torch.utils.data import DataLoader, Dataset
from transformers import Adafactor, PreTrainedModel, set_seed

from longsumbench.core import FitReport, TrainConfig
from longsumbench.errors import UsageError
from longsumbench.interrupts import delayed_interrupts
from longsumbench.modeling.collate import IGNORED
from longsumbench.modeling.nn.device import choose_device, computes_bf16, to_device
from longsumbench.modeling.processes import process_count, process_index, wait_for_everyone
from longsumbench.modeling.training.batch_plan import BatchPlan
from longsumbench.modeling.training.data_parallel import (
    Step,
    own_share,
    share_weights,
    sum_gradients,
    sum_over_processes,
)
from longsumbench.modeling.training.state import (
    load_checkpoint,
    load_weights,
    mean_weights,
    save_checkpoint,
    save_weights,
    weights_folder,
)
from longsumbench.progress import Progress, track

# initial sum of squares, as in the source of the rate of 0.15 (See et al. 2017, §6)
_ADAGRAD_START = 0.1

Schedule = Callable[[int], float]


def learning_rate(recipe: TrainConfig, width: int) -> Schedule:
    """Return the learning rate as a function of the optimizer step, counted from 1.

    * `sqrt_decay`: lr · √(w / max(step, w)) with w warm-up steps (SEAL §4 says only "square root decay"; constant up to
      w, as in the code of T5 and Pegasus).
    * `noam`: lr · d^-½ · min(step^-½, step · w^-1.5) (ETADS §4, Hierarchical Transformer §5).
    * `pagesum`: lr · min(step^-½, step · w^-1.5) (PageSum, Eq. 11).
    * `linear`: up over w steps, then down to 0 at `max_steps`. These are the rates of transformers' linear schedule, one
      step earlier: with a warm-up, it has the rate 0 in its first step. `constant`: up over w steps, then lr.
    * `hold`: up over w steps, lr up to half of `max_steps`, then down to 0 at `max_steps`.

    A training of a single step has lr / w.

    Here lr is the recipe's rate, and d is the `width` of the model.
    """
    peak, warmup = recipe.learning_rate, max(1, recipe.warmup_steps)
    last = max(2, recipe.max_steps)  # a single step would have the rate 0
    schedules: dict[str, Schedule] = {
        "sqrt_decay": lambda step: peak * math.sqrt(warmup / max(step, warmup)),
        "noam": lambda step: peak * width**-0.5 * min(step**-0.5, step * warmup**-1.5),
        "pagesum": lambda step: peak * min(step**-0.5, step * warmup**-1.5),
        "linear": lambda step: (
            peak * min(step / warmup, max(0.0, (last - step) / max(1, last - warmup)))
        ),
        "constant": lambda step: peak * min(1.0, step / warmup),
        "hold": lambda step: peak * min(1.0, step / warmup, max(0.0, 2 * (last - step) / last)),
    }
    return schedules[recipe.schedule]


def make_dense(weights: Iterable[nn.Parameter]) -> None:
    """Replace sparse gradients by dense ones, which the optimizers need.

    An embedding has a sparse gradient if the output layer that shares its weights is not trained.
    """
    for weight in weights:
        if weight.grad is not None and weight.grad.is_sparse:
            weight.grad = weight.grad.to_dense()


class _Adafactor(Adafactor):
    """As Adafactor, except: on a GPU it does not wait for the size of every weight."""

    @staticmethod
    def _get_lr(param_group: dict[str, Any], param_state: dict[str, Any]) -> Any:
        if param_state["RMS"].is_cuda:
            return param_state["RMS"].clamp(min=param_group["eps"][1]) * param_group["lr"]
        return Adafactor._get_lr(param_group, param_state)


def build_optimizer(model: nn.Module, recipe: TrainConfig) -> Optimizer:
    """Build the optimizer; the caller sets the learning rate before every step. Biases and norms are not decayed.

    Adafactor scales its steps by the parameters' size, as in its paper; otherwise a rate of 0.01 diverges. torch's own
    would take another step: it limits the rate to step^-½, clips another mean and decays weights unscaled. Adagrad's
    sum of squared gradients starts at `_ADAGRAD_START`; from 0, the first step would have the full rate everywhere.
    Adam is fused, one pass over the weights: on a CPU this takes a third of the time of the default.
    """
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []  # biases and norms
    for weight in model.parameters():
        if weight.requires_grad:
            (matrices if weight.dim() > 1 else vectors).append(weight)
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    if recipe.optimizer == "adagrad":
        return Adagrad(groups, lr=1.0, initial_accumulator_value=_ADAGRAD_START)
    if recipe.optimizer == "adafactor":
        adafactor: Optimizer = _Adafactor(
            groups, lr=1.0, scale_parameter=True, relative_step=False, warmup_init=False
        )
        return adafactor
    return AdamW(
        groups,
        lr=1.0,
        betas=(recipe.adam_beta1, recipe.adam_beta2),
        eps=recipe.adam_epsilon,
        fused=True,
    )


def recompute_activations(model: PreTrainedModel) -> None:
    """Let a model compute activations again in the backward pass, instead of keeping them (gradient checkpointing)."""
    with warnings.catch_warnings():  # transformers 5.4 has the older name only
        warnings.simplefilter("ignore", FutureWarning)
        model.gradient_checkpointing_enable()


_log = logging.getLogger(__name__)

transformers.utils.logging.set_verbosity_error()  # its advice is not for users of the suite
transformers.utils.logging.disable_progress_bar()

SECONDS_BETWEEN_SAVES = 300.0  # a killed training loses at most this, a step and a validation
_LOGGED_PARTS = 50  # the mean loss is logged for so many equal parts of a training
# difference between the seeds of processes that train together, so that dropout differs
_OTHER_DRAWS = 1_000_003

Batch = dict[str, Tensor]
Collate = Callable[[list[Any]], Batch]


@dataclass(frozen=True)
class Objective:
    """What a training minimizes.

    `output` takes a batch as keyword arguments. The `loss` of what it returns is a sum over the batch, divided by the
    number of terms in the optimizer step: the entry `mean_over` of a batch (by default the number of target tokens).
    """

    output: Callable[..., Any]
    mean_over: str = "num_items_in_batch"
    # returns the part of a batch to train on that is read
    draw: Callable[[Batch], Batch] = lambda batch: batch


def train(
    model: PreTrainedModel,
    rows: datasets.Dataset,
    validation: datasets.Dataset | None,
    collator: Collate,
    recipe: TrainConfig,
    folder: Path,
    shown_as: str = "training",
    objective: Objective | None = None,
) -> FitReport:
    """Train a model; afterwards it has the best weights, or the mean of the best (`recipe.average_weights`).

    The report lists the kept checkpoints; `weights_folder` has the weights of each. An interrupt (SIGINT, SIGTERM)
    saves a checkpoint at the end of the step, then ends the training; a second one ends it immediately. All processes
    of a launch call this function together.

    Args:
        model: returns `loss` in nats per target token, divided by `num_items_in_batch`.
        rows: training rows (`datasets.Dataset`) with `length`, and `source_words` if the recipe plans by words.
        validation: rows of the validation split; None: the last weights are the best.
        collator: rows → a batch with `unit_mask` and `labels`. Entries that start with `num_` count what a loss is a
            mean over; the model gets the counts of the whole optimizer step.
        recipe: the settings of the training.
        folder: the folder of the checkpoints; training continues from the newest one.
        shown_as: the name of the training in progress and messages.
        objective: None: the loss of the whole model.

    Raises:
        UsageError: the loss is infinite or NaN.
        KeyboardInterrupt: the training was interrupted.
    """
    set_seed(recipe.seed + _OTHER_DRAWS * process_index())
    objective = objective or Objective(model)
    training = _Training(model, rows, validation, collator, recipe, folder, shown_as, objective)
    state, steps = training.state, training.iterate_steps()
    with delayed_interrupts() as signals, Progress(shown_as, recipe.max_steps, "steps") as progress:
        progress.start_at(state.step)
        while not state.ended_by:
            training.step(next(steps))
            interrupted, save_is_due = training.check_budgets(bool(signals))
            progress.advance(
                1, note="".join(f"loss {loss:.3f}" for loss in state.logged_losses[-1:])
            )
            if state.ended_by or state.step % recipe.eval_steps == 0:
                training.validate()
                save_is_due = True
            if save_is_due or interrupted:
                training.save()
            if interrupted:
                raise KeyboardInterrupt
    return training.finish()


@dataclass
class _Training:
    """A training in progress; arguments as in `train`."""

    model: PreTrainedModel
    rows: datasets.Dataset
    validation: datasets.Dataset | None
    collator: Collate
    recipe: TrainConfig
    folder: Path
    shown_as: str
    objective: Objective

    def __post_init__(self) -> None:
        recipe, model = self.recipe, self.model
        self.device = choose_device(recipe.device)
        self.bf16 = computes_bf16(self.device) if recipe.bf16 is None else recipe.bf16
        share_weights(model.to(self.device))
        if recipe.gradient_checkpointing:
            recompute_activations(model)
        self.optimizer = build_optimizer(model, recipe)
        self.rate = learning_rate(recipe, getattr(model.config, "hidden_size", 1))
        self.plan = BatchPlan(self.rows, recipe)
        self.most_kept = max(recipe.keep_best, recipe.average_weights)
        first_batch = self.collator([self.rows[0]])
        self.means_over = [name for name in first_batch if name.startswith("num_")]
        self.state = load_checkpoint(self.folder, model, self.optimizer)
        if self.state.step:
            _log.info(f"{self.shown_as}: resumed at step {self.state.step}")
        self.started = time.monotonic() - self.state.seconds
        self.saved = time.monotonic()

    def iterate_steps(self) -> Iterator[list[Batch]]:
        """Yield this process's batches of each step, without end."""
        epoch, steps_done = divmod(self.state.step, self.plan.steps_per_epoch)
        while True:
            random_state = torch.get_rng_state()
            shares = map(own_share, islice(self.plan.epoch(epoch), steps_done, None))
            batches = iter(self._loader(self.rows, shares))  # draws a random number
            if steps_done:  # the process that began the epoch has drawn it
                torch.set_rng_state(random_state)
            yield from batches
            epoch, steps_done = epoch + 1, 0

    def _loader(self, rows: datasets.Dataset, steps: Iterable[Step]) -> "DataLoader[list[Batch]]":
        return DataLoader(
            _CollatedSteps(rows, self.collator),
            batch_size=None,
            sampler=steps,
            num_workers=self.recipe.workers,
            pin_memory=self.device.type == "cuda",
        )

    def step(self, batches: list[Batch]) -> None:
        """Do an optimizer step, on the batches of all processes."""
        batches = [self.objective.draw(batch) for batch in batches]
        state, counts = self.state, self._count(batches)
        whole_step = {name: counts[name] for name in self.means_over}
        whole_step["num_items_in_batch"] = counts["target_tokens"]
        # the sum stays on the device, so that no pass waits for a GPU
        earlier_losses = 0.0 if process_index() else state.interval_loss
        loss_sum = torch.full((), earlier_losses, device=self.device)
        self.model.train()
        for batch in batches:
            with self._autocast():
                loss: Tensor = self.objective.output(**self._moved(batch) | whole_step).loss
            loss.backward()  # type: ignore[no-untyped-call]
            loss_sum += loss.detach()
        make_dense(self.model.parameters())
        sum_gradients(self.model.parameters())
        if self.recipe.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.max_grad_norm)
        state.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(state.step)
        self.optimizer.step()
        self.model.zero_grad()
        state.examples += int(counts["examples"])
        state.source_tokens += int(counts["source_tokens"])
        state.target_tokens += int(counts["target_tokens"])
        state.interval_loss = self._finite(float(sum_over_processes(loss_sum)), "the loss")
        interval = max(1, self.recipe.max_steps // _LOGGED_PARTS)
        if state.step % interval == 0:
            state.logged_losses.append(state.interval_loss / interval)
            state.interval_loss = 0.0

    def _moved(self, batch: Batch) -> Batch:
        return {name: to_device(value, self.device) for name, value in batch.items()}

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)

    def _count(self, batches: list[Batch]) -> dict[str, Tensor]:
        """Count the examples and real tokens of a step, and what the model's losses are means over."""
        counts = dict.fromkeys(("examples", "source_tokens", "target_tokens", *self.means_over), 0)
        for batch in batches:
            counts["examples"] += len(batch["labels"])
            counts["source_tokens"] += int(batch["unit_mask"].sum())
            counts["target_tokens"] += int(batch["labels"].ne(IGNORED).sum())
            for name in self.means_over:
                counts[name] += int(batch[name])
        sums = sum_over_processes(torch.tensor(list(counts.values())))
        return dict(zip(counts, sums, strict=True))

    def check_budgets(self, interrupted: bool) -> tuple[bool, bool]:
        """End the training if a budget is used up; return whether it is interrupted, and whether a save is due.

        All processes get the same answers. The first one's clock decides.
        """
        state, recipe, clock_time = self.state, self.recipe, time.monotonic()
        state.seconds = clock_time - self.started
        minutes = (state.seconds - state.validation_seconds) / 60
        flags = [interrupted, False, False]
        if process_index() == 0:
            flags[1] = minutes >= (recipe.max_minutes or math.inf)
            flags[2] = clock_time - self.saved >= SECONDS_BETWEEN_SAVES
        sums = sum_over_processes(torch.tensor(flags, dtype=torch.int))
        interrupted, out_of_time, save_is_due = sums.bool().tolist()
        if state.step >= recipe.max_steps:
            state.ended_by = "max_steps"
        elif state.source_tokens + state.target_tokens >= (recipe.max_tokens or math.inf):
            state.ended_by = "max_tokens"
        elif out_of_time:
            state.ended_by = "max_minutes"
        return interrupted, save_is_due

    @torch.no_grad()
    def validate(self) -> None:
        """Compute the mean loss over the validation rows; keep the weights if it is low."""
        if self.validation is None:
            return
        started = time.monotonic()
        self.model.eval()
        size, order = self.recipe.batch_size, range(len(self.validation))
        steps = [[list(order[start : start + size])] for start in order[::size]]
        shares = steps[process_index() :: process_count()]
        losses, terms, mean_over = list[Tensor](), 0, self.objective.mean_over
        batches = self._loader(self.validation, shares)
        for (batch,) in track(batches, "validating", len(shares), "batches"):
            inputs = self._moved(batch) | {"num_items_in_batch": 1, mean_over: 1}
            with self._autocast():
                losses.append(self.objective.output(**inputs).loss)
            terms += int(batch.get(mean_over, batch["labels"].ne(IGNORED).sum()))
        sums = torch.tensor([sum(map(float, losses)), terms], dtype=torch.float64)
        sums = sum_over_processes(sums).float()
        loss = self._finite(float(sums[0] / sums[1].clamp(min=1)), "the validation loss")
        state = self.state
        state.validation_seconds += time.monotonic() - started
        state.seconds = time.monotonic() - self.started
        state.validation_losses.append((state.step, loss))
        if process_index() == 0 and state.step in dict(state.best(self.most_kept)):
            save_weights(self.model, weights_folder(self.folder, state.step))
        since_best = sum(step > state.best()[0][0] for step, _ in state.validation_losses)
        patience = math.inf if self.recipe.patience is None else self.recipe.patience
        if not state.ended_by and since_best >= patience:
            state.ended_by = "patience"

    def save(self) -> None:
        """Save a checkpoint, then delete weights that are no longer among the best; until then a resume needs them."""
        save_checkpoint(self.folder, self.state, self.model, self.optimizer)
        self.saved = time.monotonic()
        if process_index() == 0:
            kept_steps = dict(self.state.best(self.most_kept))
            best = {weights_folder(self.folder, step) for step in kept_steps}
            for surpassed in set(self.folder.glob("weights-*")) - best:
                shutil.rmtree(surpassed)

    def finish(self) -> FitReport:
        """Load the best weights, or the mean of the best; return the report."""
        finite = all(bool(weight.isfinite().all()) for weight in self.model.parameters())
        # without validation, no loss follows the last step
        self._finite(0.0 if finite else math.nan, "a weight")
        wait_for_everyone()  # for the weights that the first process writes
        state, recipe = self.state, self.recipe
        averaged = state.best(recipe.average_weights) if recipe.average_weights > 1 else ()
        if best := averaged or state.best():
            folders = [weights_folder(self.folder, step) for step, _ in best]
            load_weights(self.model, mean_weights(folders))
        wait_for_everyone()  # before the first process deletes the folder
        kept = state.best(recipe.keep_best) if recipe.keep_best > 1 else ()
        report = replace(state.report(), parameters=parameters(self.model))
        precision = "bfloat16" if self.bf16 else "float32"
        return replace(report, precision=precision, kept=kept, averaged=averaged)

    def _finite(self, value: float, name: str) -> float:
        if math.isfinite(value):
            return value
        problem = f"{self.shown_as}: {name} is {value} at step {self.state.step}"
        advice = "lower train.learning_rate, or limit the gradients (train.max_grad_norm=1)"
        raise UsageError(f"{problem}; {advice}")


class _CollatedSteps(Dataset[list[Batch]]):
    """Collates the batches of a step; leaves out empty ones."""

    def __init__(self, rows: datasets.Dataset, collate: Collate) -> None:
        self.rows, self.collate = rows, collate

    def __getitem__(self, step: Step) -> list[Batch]:
        return [self.collate(self.rows.__getitems__(batch)) for batch in step if batch]


def parameters(model: torch.nn.Module) -> int:
    """Return the number of trainable weights; shared weights count once."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
