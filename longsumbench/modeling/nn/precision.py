"""Precision of sums."""

import torch
from torch import Tensor


def at_least_single(numbers: Tensor) -> Tensor:
    """Convert half precision to float32; keep float32 and float64."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))
