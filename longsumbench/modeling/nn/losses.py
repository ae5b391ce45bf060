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
        num_tokens: what the sum is divided by; None: the real tokens of `labels`. Under gradient accumulation the
            Trainer hands over the count of the whole step, so that every token weighs the same.
        smoothing: ε of label smoothing, spread as ε/V over every column.
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
