"""How networks start when no checkpoint does it for them."""

import math
from abc import abstractmethod

import torch
from torch import nn

from longsumbench.modeling.nn.positions import sinusoid


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


def xavier_heads(weight: nn.Parameter) -> None:
    """Set a matrix for every head, [H, E, E], or a vector, [H, E], as Xavier's uniform does for one."""
    outputs = weight.shape[2] if weight.dim() == 3 else 1
    bound = math.sqrt(6 / (weight.shape[1] + outputs))
    nn.init.uniform_(weight, -bound, bound)


class SelfStarting(nn.Module):
    """A part whose weights the library does not know how to start."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Set the weights as they start."""


class StartsParts:
    """For the library's stacks with self-starting parts, where a checkpoint lacks these; stands before their class."""

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, SelfStarting):
            module.reset_parameters()
        else:
            super()._init_weights(module)  # type: ignore[misc]  # the library's class stands behind this one


def sinusoidal(*embeddings: nn.Embedding) -> None:
    """Let embeddings of positions, which will be learned, begin as sinusoids."""
    for embedding in embeddings:
        embedding.weight.data = sinusoid(torch.arange(len(embedding.weight)), embedding.weight.shape[1])
