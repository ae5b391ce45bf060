"""How networks start when no checkpoint does it for them."""

from torch import nn


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
