"""Losses, in nats per target token."""

from torch import Tensor
from torch.nn import functional as F

from longsumbench.modeling.nn.precision import at_least_single


def token_cross_entropy(
    logits: Tensor, labels: Tensor, num_tokens: Tensor | int | None = None, smoothing: float = 0.0
) -> Tensor:
    """Return the mean cross-entropy over real target tokens, in nats per token.

    Args:
        logits: [B, T, V].
        labels: [B, T], -100 where there is no target token.
        num_tokens: the divisor of the sum; None: the real tokens of `labels`. Under gradient accumulation the Trainer
            passes the count of the whole step, so that all tokens have the same weight.
        smoothing: ε of label smoothing, ε/V for each entry of the vocabulary.
    """
    sums = F.cross_entropy(
        at_least_single(logits.flatten(0, -2)),
        labels.flatten(),
        ignore_index=-100,
        reduction="sum",
        label_smoothing=smoothing,
    )
    count = num_tokens if num_tokens is not None else labels.ne(-100).sum().clamp(min=1)
    return sums / count
