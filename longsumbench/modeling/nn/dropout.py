"""Dropout with fast random numbers.

On processors other than Intel's, PyTorch draws numbers one by one: a third of a training step on a long document.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

SMALLEST = 65_536  # values; PyTorch's dropout is as fast for smaller tensors
_DROP_LEVELS = 65_536  # possible probabilities: values of 16 random bits


def dropout(states: Tensor, probability: float, training: bool) -> Tensor:
    """Set values to zero with probability p, and scale the others by 1/(1 − p); return `states` outside training.

    The mask of a large tensor on the CPU comes from a fast generator that PyTorch's generator seeds. So runs are
    repeatable, and gradient checkpointing draws the same mask twice. There the probability is rounded to 1/65,536.

    Args:
        states: any shape.
        probability: 0 ≤ p < 1.
        training: whether dropout applies.
    """
    if not training or not probability:
        return states
    if states.device.type != "cpu" or states.numel() < SMALLEST:
        return F.dropout(states, probability)
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw(-(-states.numel() // 4))  # 64 bits each, enough for four values
    bits = torch.from_numpy(words.view(np.int16))[: states.numel()].view(states.shape)
    dropped = round(probability * _DROP_LEVELS)
    keep_mask = bits >= dropped - _DROP_LEVELS // 2
    return states * keep_mask.to(states.dtype).mul_(_DROP_LEVELS / (_DROP_LEVELS - dropped))
