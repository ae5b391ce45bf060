"""Masks, True where something is real, as attention takes them.

Letters: R rows, H heads, T what attends, S what is attended to.
"""

import torch
from torch import Tensor
from transformers import PreTrainedConfig


def never_empty(mask: Tensor) -> Tensor:
    """Return a mask with at least one True a row, for a softmax over nothing has no value: [R, S] → [R, S]."""
    first = torch.arange(mask.shape[-1], device=mask.device) == 0
    return mask | (first & ~mask.any(-1, keepdim=True))


def attention_mask(mask: Tensor, config: PreTrainedConfig, dtype: torch.dtype) -> Tensor:
    """Return a mask in the form that the library's chosen attention takes: [R, S] → [R, 1, 1, S].

    Its eager attention adds what it is given to the scores; the others take truth values.
    """
    real = mask[:, None, None]
    if config._attn_implementation != "eager":
        return real
    return torch.zeros(real.shape, dtype=dtype, device=mask.device).masked_fill(~real, torch.finfo(dtype).min)


def masked_scores(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Hide from attention's scores what a mask in either of the library's forms hides.

    Args:
        scores: [R, H, T, S].
        mask: [R, 1, T or 1, S], truth values or what is added to the scores; None: it hides nothing.
    """
    if mask is None:
        return scores
    if mask.dtype != torch.bool:
        return scores + mask
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
