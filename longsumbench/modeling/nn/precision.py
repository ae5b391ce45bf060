"""In which precision sums are computed."""

import torch
from torch import Tensor


def at_least_single(numbers: Tensor) -> Tensor:
    """Return numbers in float32, whatever half precision they have; in float64 if they have that."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))
