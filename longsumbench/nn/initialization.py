"""How networks start when no checkpoint does it for them."""

import torch
from torch import nn

from longsumbench.nn.positions import sinusoid


def xavier(model: nn.Module, width: int) -> None:
    """Set weights as Transformers trained from scratch usually start.

    Xavier-uniform matrices, zero biases, N(0, 1/width) for embeddings that are learned; norms stay at one.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():  # after the matrices, one of which may be the embeddings' own
        if isinstance(module, nn.Embedding) and module.weight.requires_grad:
            nn.init.normal_(module.weight, std=width**-0.5)


def sinusoidal(*embeddings: nn.Embedding) -> None:
    """Let embeddings of positions, which will be learned, begin as sinusoids."""
    for embedding in embeddings:
        embedding.weight.data = sinusoid(torch.arange(len(embedding.weight)), embedding.weight.shape[1])
