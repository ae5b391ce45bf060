"""Optimizers and learning-rate schedules of the papers."""

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.optim import Adagrad, AdamW, Optimizer
from transformers import Adafactor, PreTrainedModel

from longsumbench.core import TrainConfig

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
