"""Training with transformers' Trainer: the papers' schedules, budgets, the best checkpoints, exact resume.

Several processes train as one process does with the same batch: see `data_parallel`.
"""

import io
import json
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence, Sized
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from torch.optim import Adagrad, Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import BatchSampler, DataLoader, Dataset
from transformers import (
    Adafactor,
    EarlyStoppingCallback,
    PreTrainedModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_callback import TrainerControl
from transformers.trainer_pt_utils import LengthGroupedSampler, get_length_grouped_indices

from longsumbench.api.config import Recipe
from longsumbench.api.system import FitReport
from longsumbench.interrupts import delayed_interrupts
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.training.batch_plan import whole_budget
from longsumbench.modeling.training.callbacks import (
    Budget,
    CheckLoss,
    KeepBest,
    SaveInTime,
    ShowProgress,
    lowest_losses,
    validations,
    weights_folder,
)
from longsumbench.modeling.training.data_parallel import (
    SPARE,
    counted_together,
    num_processes,
    of_all,
    of_the_first,
    own_share,
    place,
    wait,
)
from longsumbench.progress import Progress, track

_log = logging.getLogger(__name__)

transformers.utils.logging.set_verbosity_error()  # its advice is not for users of the suite
transformers.utils.logging.disable_progress_bar()

_LOGGED_PARTS = 50  # the log has the mean loss of so many equal parts of a training
_OTHER_DRAWS = 1_000_003  # difference between the seeds of processes that train together, so that dropout differs
_ADAGRAD_START = 0.1  # initial sum of squares, as in the source of the rate of 0.15 (See et al. 2017, §6)

Schedule = Callable[[int], float]


def learning_rate(recipe: Recipe, width: int) -> Schedule:
    """Return the learning rate as a function of the optimizer step, counted from 1.

    * `sqrt_decay`: lr · √(w / max(step, w)) with w warm-up steps (SEAL §4 says only "square root decay"; constant up to
      w, as in the code of T5 and Pegasus).
    * `noam`: lr · d^-½ · min(step^-½, step · w^-1.5) (ETADS §4, Hierarchical Transformer §5).
    * `pagesum`: lr · min(step^-½, step · w^-1.5) (PageSum, Eq. 11).
    * `linear`: up over w steps, then down to 0 at `max_steps`. `constant`: up over w steps, then lr.
    * `hold`: up over w steps, lr up to half of `max_steps`, then down to 0 at `max_steps`.

    Here lr is the recipe's rate, and d is the `width` of the model.
    """
    peak, warmup, last = recipe.learning_rate, max(1, recipe.warmup_steps), max(1, recipe.max_steps)
    schedules: dict[str, Schedule] = {
        "sqrt_decay": lambda step: peak * math.sqrt(warmup / max(step, warmup)),
        "noam": lambda step: peak * width**-0.5 * min(step**-0.5, step * warmup**-1.5),
        "pagesum": lambda step: peak * min(step**-0.5, step * warmup**-1.5),
        "linear": lambda step: peak * min(step / warmup, max(0.0, (last - step) / max(1, last - warmup))),
        "constant": lambda step: peak * min(1.0, step / warmup),
        "hold": lambda step: peak * min(1.0, step / warmup, max(0.0, 2 * (last - step) / last)),
    }
    return schedules[recipe.schedule]


def _optimizer_settings(recipe: Recipe) -> tuple[type[Optimizer], dict[str, Any]]:
    """Return the optimizer class and its arguments.

    Adafactor scales its steps by the parameters' size, as in its paper; otherwise a rate of 0.01 diverges. Adagrad's
    sum of squared gradients starts at `_ADAGRAD_START`; from 0, the first step would have the full rate everywhere.
    """
    if recipe.optimizer == "adagrad":
        return Adagrad, {
            "lr": 1.0,
            "initial_accumulator_value": _ADAGRAD_START,
            "weight_decay": recipe.weight_decay,
        }
    if recipe.optimizer == "adafactor":
        fixed = {"scale_parameter": True, "relative_step": False, "warmup_init": False}
        return Adafactor, {"lr": 1.0, "weight_decay": recipe.weight_decay, **fixed}
    betas = (recipe.adam_beta1, recipe.adam_beta2)
    return Adam, {"lr": 1.0, "betas": betas, "eps": recipe.adam_epsilon, "weight_decay": recipe.weight_decay}


class EpochSampler(LengthGroupedSampler):
    """As LengthGroupedSampler, except: an epoch's order depends on seed and epoch only, so a resume repeats it."""

    def __init__(self, batch_size: int, lengths: list[int], seed: int) -> None:
        super().__init__(batch_size, lengths=lengths)
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; the data loader calls this."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        return iter(get_length_grouped_indices(self.lengths, self.batch_size, generator=generator))


class BudgetTrainer(Trainer):
    """As Trainer, except: own schedules and sampler, counted tokens, and a validation loss per target token."""

    def __init__(self, recipe: Recipe, lengths: list[int], losses: CheckLoss, **kwargs: Any) -> None:
        self.recipe, self.losses = recipe, losses
        self._order = EpochSampler(recipe.batch_size * recipe.accumulation, lengths, recipe.seed)
        super().__init__(optimizer_cls_and_kwargs=_optimizer_settings(recipe), **kwargs)

    @property
    def budget(self) -> Budget:
        """The callback that counts; a resume replaces it by one with the stored counts."""
        return next(callback for callback in self.callback_handler.callbacks if isinstance(callback, Budget))

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing if training had already ended at the checkpoint of a resume."""
        if self.budget.ended_by:
            self.control.should_training_stop = True
            return
        self._order.set_epoch(kwargs["epoch"])
        super()._run_epoch(*args, **kwargs)

    def create_scheduler(self, num_training_steps: int, optimizer: Optimizer | None = None) -> LambdaLR:
        """Build the recipe's schedule; the optimizer's rate is 1."""
        if getattr(self, "lr_scheduler", None) is None:
            rate = learning_rate(self.recipe, getattr(self.model.config, "d_model", 1))
            self.lr_scheduler: LambdaLR = LambdaLR(optimizer or self.optimizer, lambda done: rate(done + 1))
        return self.lr_scheduler

    def _get_train_sampler(self, train_dataset: Any = None) -> EpochSampler:
        return self._order

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return batches of words or tokens of the whole budget as one epoch; otherwise batches of equal size."""
        batches: Any = whole_budget(self.train_dataset, self.recipe)
        settings = {"num_workers": self.args.dataloader_num_workers, "pin_memory": self.args.dataloader_pin_memory}
        if num_processes() > 1:  # the Trainer would give each process different batches, and repeat examples at the end
            batches = batches or BatchSampler(self._order, self.recipe.batch_size, drop_last=False)
            return own_share(batches, self.train_dataset, self.data_collator, **settings)
        if batches is None:
            loader: DataLoader[Any] = super().get_train_dataloader()
            return loader
        loader = DataLoader(self.train_dataset, batch_sampler=batches, collate_fn=self.data_collator, **settings)
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        return prepared

    def get_eval_dataloader(self, *args: Any, **kwargs: Any) -> DataLoader[Any]:
        """Return this process's share of the validation batches; no example is repeated."""
        if num_processes() == 1:
            loader: DataLoader[Any] = super().get_eval_dataloader(*args, **kwargs)
            return loader
        order, size = range(len(self.eval_dataset)), self.recipe.batch_size
        batches = [list(order[start : start + size]) for start in order[::size]]
        share: Any = batches[place() :: num_processes()]
        return DataLoader(self.eval_dataset, batch_sampler=share, collate_fn=self.data_collator)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> tuple[list[dict[str, Tensor]], Any]:
        """Return this process's batches of an optimizer step, with the counts of the whole step in all processes."""
        batches, num_items = super().get_batch_samples(*args, **kwargs)
        self.budget.add(counted_together(batches))
        return batches, num_items

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Tensor], *args: Any, **kwargs: Any) -> Tensor:
        """Count the batch, train on it, and check its loss."""
        self.budget.count(inputs)
        loss: Tensor = super().training_step(model, inputs, *args, **kwargs)
        self.losses.note(loss)
        return loss

    def compute_loss(self, model: torch.nn.Module, inputs: dict[str, Tensor], *args: Any, **kwargs: Any) -> Any:
        """Return the loss; a batch that only fills a process's share has loss 0 with a gradient."""
        spare = inputs.pop(SPARE, False)
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        return loss * 0 if spare else loss

    def _save_rng_state(self, output_dir: str) -> None:
        super()._save_rng_state(output_dir)
        wait()  # for the files of all processes: `trainer_state.json`, which completes a checkpoint, is written last

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Return the mean validation loss over all real target tokens, in nats per target token."""
        started = time.monotonic()
        self.model.eval()
        nats, tokens = 0.0, 0
        with torch.no_grad():
            batches = self.get_eval_dataloader()
            for batch in track(batches, "validating", len(batches), "batches", _stream()):
                prepared = self._prepare_inputs(batch)
                with self.compute_loss_context_manager():
                    loss = self.model(**prepared, num_items_in_batch=1).loss
                nats += float(loss)
                tokens += int(prepared["labels"].ne(-100).sum())
        sums = torch.tensor(of_all((nats, tokens)), dtype=torch.float64).sum(0).to(torch.float32)
        metrics = {"eval_loss": float(sums[0] / sums[1].clamp(min=1))}
        self.budget.validation_seconds += time.monotonic() - started
        self.log(metrics)
        self.control: TrainerControl = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics


def train(
    model: PreTrainedModel,
    rows: "Dataset[Any] | Any",
    validation: "Sized | Any | None",
    collator: Callable[[list[Any]], dict[str, Tensor]],
    recipe: Recipe,
    folder: Path,
    shown_as: str = "training",
) -> FitReport:
    """Train a model; afterwards it has the best weights, or the mean of the best (`recipe.average_weights`).

    The report lists the kept checkpoints; `weights_folder` has the weights of each. An interrupt (SIGINT, SIGTERM)
    saves a checkpoint at the end of the step, then ends the training; a second one ends it immediately.

    Args:
        model: returns `loss` in nats per target token, divided by `num_items_in_batch` if given.
        rows: training rows with `length`, for batches of similar length, and `source_words` if the recipe uses them.
        validation: rows of the validation split; None: the last weights are the best.
        collator: rows → a batch with `unit_mask` and `labels`.
        recipe: the settings of the training.
        folder: the folder of the checkpoints; training continues from the newest complete one.
        shown_as: the name of the training in progress and messages.

    Raises:
        UsageError: the loss is infinite or NaN.
        KeyboardInterrupt: the training was interrupted.
    """
    arguments = _training_arguments(recipe, folder, validates=validation is not None)
    with (
        delayed_interrupts() as interrupted,
        Progress(shown_as, recipe.max_steps, "steps", _stream()) as progress,
    ):
        losses = CheckLoss(shown_as)
        callbacks: list[TrainerCallback] = [ShowProgress(progress), losses]
        if (most := max(recipe.keep_best, recipe.average_weights)) > 1:
            callbacks.append(KeepBest(folder, most))
        if recipe.patience is not None and validation is not None:
            callbacks.append(EarlyStoppingCallback(early_stopping_patience=recipe.patience))
        callbacks.append(SaveInTime(interrupted))
        callbacks.append(Budget(recipe.max_steps, recipe.max_tokens, recipe.max_minutes))  # after patience: reads it
        trainer = BudgetTrainer(
            recipe,
            list(rows["length"]),
            losses,
            model=model,
            args=arguments,
            data_collator=collator,
            train_dataset=rows,
            eval_dataset=validation,
            callbacks=callbacks,
        )
        trainer.remove_callback(PrinterCallback)
        if place():
            set_seed(recipe.seed + _OTHER_DRAWS * place())
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*broadcast_buffers", FutureWarning)  # passed by accelerate
            trainer.train(resume_from_checkpoint=found_checkpoint(folder))
    report = _report(trainer, arguments)
    if report.averaged:
        model.load_state_dict(_mean_weights([weights_folder(folder, step) for step, _ in report.averaged], type(model)))
    wait()  # before a process deletes files that others may still read
    return report


def _stream() -> io.StringIO | None:
    """Return the stream of progress: None (stderr) in the first process, a buffer in the others."""
    return None if place() == 0 else io.StringIO()


def _training_arguments(recipe: Recipe, folder: Path, validates: bool) -> TrainingArguments:
    on_cpu = choose_device(recipe.device).type == "cpu"
    bf16 = recipe.bf16
    if bf16 is None:
        bf16 = not on_cpu and torch.cuda.is_bf16_supported(including_emulation=False)
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=recipe.batch_size,
        per_device_eval_batch_size=recipe.batch_size,
        gradient_accumulation_steps=recipe.accumulation,
        max_steps=recipe.max_steps,
        max_grad_norm=recipe.max_grad_norm,
        bf16=bf16,
        use_cpu=on_cpu,
        activation_checkpointing=recipe.gradient_checkpointing,
        ddp_find_unused_parameters=True,  # some parameters may have no gradient in a process's share
        ddp_broadcast_buffers=False,  # the buffers are position tables, whose lengths differ between processes
        eval_strategy="steps" if validates else "no",
        eval_steps=recipe.eval_steps,
        save_strategy="steps",
        save_steps=recipe.eval_steps,
        save_total_limit=2,
        load_best_model_at_end=validates,
        metric_for_best_model="eval_loss" if validates else None,
        greater_is_better=False if validates else None,
        logging_steps=max(1, recipe.max_steps // _LOGGED_PARTS),
        logging_nan_inf_filter=False,  # CheckLoss ends the training
        dataloader_num_workers=recipe.workers,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        restore_callback_states_from_checkpoint=True,
        label_names=["labels"],
        seed=recipe.seed,
        data_seed=recipe.seed,
        log_level_replica="error",
        report_to=[],
        disable_tqdm=True,
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # several GPUs would multiply the recipe's batch
    return arguments


def found_checkpoint(folder: Path) -> str | None:
    """Return the newest complete checkpoint, the same in all processes; print a change of their number."""
    found: str | None = of_the_first(newest_checkpoint(folder))
    if found is not None and place() == 0:
        before = len(list(Path(found).glob("rng_state*.pth")))
        if before != num_processes():
            change = f"{before} started and {num_processes()} continue: dropout differs from a training with either"
            _log.info(f"processes that train: {change}")
    return found


def newest_checkpoint(folder: Path) -> str | None:
    """Return the newest complete checkpoint: `trainer_state.json`, written last, must parse."""
    for checkpoint in sorted(folder.glob("checkpoint-*"), key=lambda path: -int(path.name.split("-")[1])):
        try:
            json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return str(checkpoint)
    return None


def _mean_weights(folders: Sequence[Path], model_class: type[PreTrainedModel]) -> dict[str, Tensor]:
    """Return the mean of the weights, summed in double precision; integers come from the first folder."""
    first = model_class.from_pretrained(folders[0]).state_dict()
    sums = {name: weight.double() for name, weight in first.items() if weight.is_floating_point()}
    for folder in folders[1:]:  # one by one, because they are large
        weights = model_class.from_pretrained(folder).state_dict()
        sums = {name: total + weights[name] for name, total in sums.items()}
    return {**first, **{name: (total / len(folders)).to(first[name].dtype) for name, total in sums.items()}}


def _report(trainer: BudgetTrainer, arguments: TrainingArguments) -> FitReport:
    state, budget, recipe = trainer.state, trainer.budget, trainer.recipe
    losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
    return FitReport(
        parameters=parameters(trainer.model),
        steps=state.global_step,
        examples=budget.examples,
        source_tokens=budget.source_tokens,
        target_tokens=budget.target_tokens,
        seconds=round(budget.seconds, 2),
        ended_by=budget.ended_by,
        best_step=state.best_global_step or state.global_step,
        validation_loss=state.best_metric,
        validation_losses=validations(state),
        first_loss=losses[0] if losses else None,
        last_loss=losses[-1] if losses else None,
        precision="bfloat16" if arguments.bf16 else "float32",
        kept=lowest_losses(validations(state), recipe.keep_best) if recipe.keep_best > 1 else (),
        averaged=lowest_losses(validations(state), recipe.average_weights) if recipe.average_weights > 1 else (),
    )


def parameters(model: torch.nn.Module) -> int:
    """Return the number of trainable weights; shared weights count once."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
