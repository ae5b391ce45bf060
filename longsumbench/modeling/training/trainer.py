"""The training loop: budgets, validation, the best checkpoints, exact resume.

Several processes train as one process does with the same batches: see `data_parallel`.
"""

import logging
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from transformers import PreTrainedModel, set_seed

from longsumbench.core import FitReport, Recipe
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
from longsumbench.modeling.training.optimization import (
    build_optimizer,
    learning_rate,
    make_dense,
    recompute_activations,
)
from longsumbench.modeling.training.state import (
    load_checkpoint,
    mean_weights,
    save_checkpoint,
    weights_folder,
)
from longsumbench.progress import Progress, track

_log = logging.getLogger(__name__)

transformers.utils.logging.set_verbosity_error()  # its advice is not for users of the suite
transformers.utils.logging.disable_progress_bar()

SECONDS_BETWEEN_SAVES = 300.0  # a killed training loses at most this, a step and a validation
_LOGGED_PARTS = 50  # the mean loss is logged for so many equal parts of a training
_STEP_COUNTS = ("examples", "source_tokens", "target_tokens")  # in every step
_OTHER_DRAWS = 1_000_003  # difference between the seeds of processes that train together, so that dropout differs

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
    draw: Callable[[Batch], Batch] = lambda batch: (
        batch
    )  # returns the part of a batch to train on that is read


def train(
    model: PreTrainedModel,
    rows: datasets.Dataset,
    validation: datasets.Dataset | None,
    collator: Collate,
    recipe: Recipe,
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
    state, steps = training.state, training.batches_of_steps()
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
    recipe: Recipe
    folder: Path
    shown_as: str
    objective: Objective

    def __post_init__(self) -> None:
        recipe, model = self.recipe, self.model
        self.device = choose_device(recipe.device)
        self.on_gpu = self.device.type == "cuda"
        self.bf16 = computes_bf16(self.device) if recipe.bf16 is None else recipe.bf16
        share_weights(model.to(self.device))
        if recipe.gradient_checkpointing:
            recompute_activations(model)
        self.optimizer = build_optimizer(model, recipe)
        self.rate = learning_rate(recipe, getattr(model.config, "d_model", 1))
        self.plan = BatchPlan(self.rows, recipe)
        self.most_kept = max(recipe.keep_best, recipe.average_weights)
        self.means_over = [
            name for name in self.collator([self.rows[0]]) if name.startswith("num_")
        ]
        self.state = load_checkpoint(self.folder, model, self.optimizer)
        if self.state.step:
            _log.info(f"{self.shown_as}: resumed at step {self.state.step}")
        self.started = time.monotonic() - self.state.seconds
        self.saved = time.monotonic()

    def batches_of_steps(self) -> Iterator[list[Batch]]:
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
        collated, workers = _CollatedSteps(rows, self.collator), self.recipe.workers
        return DataLoader(
            collated, batch_size=None, sampler=steps, num_workers=workers, pin_memory=self.on_gpu
        )

    def step(self, batches: list[Batch]) -> None:
        """Do an optimizer step, on the batches of all processes."""
        batches = [self.objective.draw(batch) for batch in batches]
        state, counts = self.state, self._count(batches)
        whole_step = {
            "num_items_in_batch": counts["target_tokens"],
            **{name: counts[name] for name in self.means_over},
        }
        loss_sum = torch.full(
            (), 0.0 if process_index() else state.interval_loss, device=self.device
        )
        self.model.train()
        for batch in batches:
            with self._autocast():
                loss: Tensor = self.objective.output(**{**self._moved(batch), **whole_step}).loss
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
        for name in _STEP_COUNTS:
            setattr(state, name, getattr(state, name) + int(counts[name]))
        state.interval_loss = self._finite(float(sum_over_processes(loss_sum)), "the loss")
        if state.step % (interval := max(1, self.recipe.max_steps // _LOGGED_PARTS)) == 0:
            state.logged_losses.append(state.interval_loss / interval)
            state.interval_loss = 0.0

    def _moved(self, batch: Batch) -> Batch:
        return {name: to_device(value, self.device) for name, value in batch.items()}

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)

    def _count(self, batches: list[Batch]) -> dict[str, Tensor]:
        """Count the examples and real tokens of a step, and what the model's losses are means over."""
        counts = torch.zeros(len(_STEP_COUNTS) + len(self.means_over), dtype=torch.long)
        for batch in batches:
            labels, means_over = batch["labels"], [int(batch[name]) for name in self.means_over]
            tokens = [int(batch["unit_mask"].sum()), int(labels.ne(IGNORED).sum())]
            counts += torch.tensor([len(labels), *tokens, *means_over])
        return dict(zip((*_STEP_COUNTS, *self.means_over), sum_over_processes(counts), strict=True))

    def check_budgets(self, interrupted: bool) -> tuple[bool, bool]:
        """End the training if a budget is used up; return whether it is interrupted, and whether a save is due.

        All processes get the same answers. The first one's clock decides.
        """
        state, recipe, clock_time = self.state, self.recipe, time.monotonic()
        state.seconds = clock_time - self.started
        minutes = (state.seconds - state.validation_seconds) / 60
        clock = [
            minutes >= (recipe.max_minutes or math.inf),
            clock_time - self.saved >= SECONDS_BETWEEN_SAVES,
        ]
        flags = [interrupted, *(clock if process_index() == 0 else (False, False))]
        interrupted, out_of_time, save_is_due = (
            sum_over_processes(torch.tensor(flags, dtype=torch.int)).bool().tolist()
        )
        tokens = state.source_tokens + state.target_tokens
        used_up = {
            "max_steps": state.step >= recipe.max_steps,
            "max_tokens": tokens >= (recipe.max_tokens or math.inf),
            "max_minutes": out_of_time,
        }
        state.ended_by = next((name for name, is_used_up in used_up.items() if is_used_up), "")
        return interrupted, save_is_due

    @torch.no_grad()
    def validate(self) -> None:
        """Compute the mean loss over the validation rows; keep the weights if it is low."""
        if self.validation is None:
            return
        started = time.monotonic()
        self.model.eval()
        size, order = self.recipe.batch_size, range(len(self.validation))
        shares = [[list(order[start : start + size])] for start in order[::size]][
            process_index() :: process_count()
        ]
        losses, terms, mean_over = list[Tensor](), 0, self.objective.mean_over
        for (batch,) in track(
            self._loader(self.validation, shares), "validating", len(shares), "batches"
        ):
            with self._autocast():
                inputs = {**self._moved(batch), "num_items_in_batch": 1, mean_over: 1}
                losses.append(self.objective.output(**inputs).loss)
            terms += int(
                batch[mean_over] if mean_over in batch else batch["labels"].ne(IGNORED).sum()
            )
        sums = sum_over_processes(
            torch.tensor([sum(map(float, losses)), terms], dtype=torch.float64)
        ).float()
        state, loss = (
            self.state,
            self._finite(float(sums[0] / sums[1].clamp(min=1)), "the validation loss"),
        )
        state.validation_seconds += time.monotonic() - started
        state.seconds = time.monotonic() - self.started
        state.validation_losses.append((state.step, loss))
        if process_index() == 0 and state.step in dict(state.best(self.most_kept)):
            self.model.save_pretrained(weights_folder(self.folder, state.step))
        since_best = sum(step > state.best()[0][0] for step, _ in state.validation_losses)
        if (
            not state.ended_by
            and self.recipe.patience is not None
            and since_best >= self.recipe.patience
        ):
            state.ended_by = "patience"

    def save(self) -> None:
        """Save a checkpoint, then delete weights that are no longer among the best; until then a resume needs them."""
        save_checkpoint(self.folder, self.state, self.model, self.optimizer)
        self.saved = time.monotonic()
        if process_index() == 0:
            best = {
                weights_folder(self.folder, step) for step, _ in self.state.best(self.most_kept)
            }
            for surpassed in set(self.folder.glob("weights-*")) - best:
                shutil.rmtree(surpassed)

    def finish(self) -> FitReport:
        """Load the best weights, or the mean of the best; return the report."""
        finite = all(bool(weight.isfinite().all()) for weight in self.model.parameters())
        self._finite(
            0.0 if finite else math.nan, "a weight"
        )  # without validation, no loss follows the last step
        wait_for_everyone()  # for the weights that the first process writes
        state, recipe = self.state, self.recipe
        averaged = state.best(recipe.average_weights) if recipe.average_weights > 1 else ()
        if best := averaged or state.best():
            folders = [weights_folder(self.folder, step) for step, _ in best]
            self.model.load_state_dict(mean_weights(folders, type(self.model)))
        wait_for_everyone()  # before the first process deletes the folder
        precision = "bfloat16" if self.bf16 else "float32"
        best_checkpoints = state.best(recipe.keep_best) if recipe.keep_best > 1 else ()
        facts = replace(state.report(), parameters=parameters(self.model), precision=precision)
        return replace(facts, kept=best_checkpoints, averaged=averaged)

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
