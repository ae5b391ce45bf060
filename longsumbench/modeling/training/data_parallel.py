"""Data-parallel training: every process takes every n-th example of a batch, and gradients and counts are summed.

In one process the functions return what they are given.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, distributed, nn

Step = list[list[int]]  # the batches of an optimizer step, as indices of examples


def num_processes() -> int:
    """Return the number of processes that train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def process_rank() -> int:
    """Return the rank of this process among them, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def own_share(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield this process's part of each step; in a batch with few examples it may be empty."""
    for step in steps:
        yield [batch[process_rank() :: num_processes()] for batch in step]


def sum_over_processes(values: Tensor) -> Tensor:
    """Return the element-wise sum over all processes."""
    if num_processes() > 1:
        values = values.clone()
        distributed.all_reduce(values)
    return values


def gather_over_processes(values: Tensor) -> list[Tensor]:
    """Return the tensors of all processes, in order of rank."""
    gathered = [values.clone() for _ in range(num_processes())]
    if num_processes() > 1:
        distributed.all_gather(gathered, values)
    return gathered


def sum_gradients(weights: Iterable[nn.Parameter]) -> None:
    """Sum the gradients over all processes; a weight that has none in any process keeps none."""
    if num_processes() == 1:
        return
    trained = [weight for weight in weights if weight.requires_grad]
    found = torch.tensor([weight.grad is not None for weight in trained], dtype=torch.int, device=trained[0].device)
    used = [weight for weight, count in zip(trained, sum_over_processes(found).tolist(), strict=True) if count]
    gradients = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in used]
    summed = sum_over_processes(torch.cat([gradient.flatten() for gradient in gradients]))
    for weight, part in zip(used, torch.split(summed, [weight.numel() for weight in used]), strict=True):
        weight.grad = part.view_as(weight)


def share_weights(model: nn.Module) -> None:
    """Give all processes the weights of the first one."""
    if num_processes() > 1:
        for weight in model.state_dict().values():
            distributed.broadcast(weight, 0)


def wait_for_all() -> None:
    """Wait until all processes are here."""
    if num_processes() > 1:
        distributed.barrier()
