"""Attention masks, True where something is real; sums in float32.

Letters: R rows, H heads, T query tokens, S key tokens.
"""

import torch
from torch import Tensor
from transformers import PreTrainedConfig


def never_empty(mask: Tensor) -> Tensor:
    """Return a mask with at least one True a row, because a softmax needs one: [R, S] → [R, S]."""
    first = torch.arange(mask.shape[-1], device=mask.device) == 0
    return mask | (first & ~mask.any(-1, keepdim=True))


def attention_mask(mask: Tensor, config: PreTrainedConfig, dtype: torch.dtype) -> Tensor:
    """Return a mask in the form that transformers' attention takes: [R, S] → [R, 1, 1, S].

    Eager attention adds its mask to the scores; the other implementations take a boolean mask.
    """
    real = mask[:, None, None]
    if config._attn_implementation != "eager":
        return real
    return torch.zeros(real.shape, dtype=dtype, device=mask.device).masked_fill(
        ~real, torch.finfo(dtype).min
    )


def masked_scores(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Mask attention scores.

    Args:
        scores: [R, H, T, S].
        mask: [R, 1, T or 1, S], boolean, or added to the scores; None: no mask.
    """
    if mask is None:
        return scores
    if mask.dtype != torch.bool:
        return scores + mask
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def at_least_single(numbers: Tensor) -> Tensor:
    """Convert half precision to float32; keep float32 and float64."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))
