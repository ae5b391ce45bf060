"""Dropout whose random numbers do not cost more than what they are for.

PyTorch draws one number after the other on processors that are not Intel's: a third of a long document's training step.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

SMALLEST = 65_536  # values; below it the library's own is as fast
_STEPS = 65_536  # of the probability: values of 16 random bits


def dropout(states: Tensor, probability: float, training: bool) -> Tensor:
    """Set values to zero with a probability, and scale the others so that the mean stays; nothing outside training.

    Large tensors on the CPU are masked by the bits of a fast generator, which PyTorch's own seeds: a run is repeatable,
    and what checkpointing computes twice is masked twice alike. There the probability is rounded to 1/65,536.

    Args:
        states: any shape.
        probability: 0 ≤ p < 1.
        training: False: the states are returned as they are.
    """
    if not training or not probability:
        return states
    if states.device.type != "cpu" or states.numel() < SMALLEST:
        return F.dropout(states, probability)
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.SFC64(seed).random_raw(-(-states.numel() // 4))  # 64 bits each, enough for four values
    bits = torch.from_numpy(words.view(np.int16))[: states.numel()].view(states.shape)
    dropped = round(probability * _STEPS)
    kept = bits >= dropped - _STEPS // 2
    return states * kept.to(states.dtype).mul_(_STEPS / (_STEPS - dropped))
