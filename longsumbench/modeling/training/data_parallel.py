"""Data-parallel training: every process takes every n-th example of a batch, and gradients and counts are summed.

Where a process works alone, the functions return what they are given.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, distributed, nn

from longsumbench.modeling.processes import process_count, process_index

Step = list[list[int]]  # the batches of an optimizer step, as indices of examples


def own_share(step: Step) -> Step:
    """Return this process's part of a step; in a batch with few examples it may be empty."""
    return [batch[process_index() :: process_count()] for batch in step]


def sum_over_processes(values: Tensor) -> Tensor:
    """Return the element-wise sum over all processes."""
    if process_count() > 1:
        values = values.clone()
        distributed.all_reduce(values)
    return values


def gather_over_processes(values: Tensor) -> list[Tensor]:
    """Return the tensors of all processes, in order of rank."""
    gathered = [values.clone() for _ in range(process_count())]
    if process_count() > 1:
        distributed.all_gather(gathered, values)
    return gathered


def sum_gradients(weights: Iterable[nn.Parameter]) -> None:
    """Sum the gradients over all processes, in place; a weight that has none in any process keeps none."""
    if process_count() == 1:
        return
    trained = [weight for weight in weights if weight.requires_grad]
    flags = torch.tensor([weight.grad is not None for weight in trained], dtype=torch.int)
    weights = [
        weight
        for weight, count in zip(trained, sum_over_processes(flags).tolist(), strict=True)
        if count
    ]
    for weight in weights:
        weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
    for summing in [distributed.all_reduce(weight.grad, async_op=True) for weight in weights]:
        summing.wait()


def share_weights(model: nn.Module) -> None:
    """Give all processes the weights of the first one."""
    if process_count() > 1:
        for weight in model.state_dict().values():
            distributed.broadcast(weight, 0)
