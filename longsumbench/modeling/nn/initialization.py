"""Initialization of networks without a checkpoint."""

import math

import torch
from torch import nn
from transformers.models.bart.modeling_bart import BartLearnedPositionalEmbedding
from transformers.models.led.modeling_led import LEDLearnedPositionalEmbedding

from longsumbench.modeling.nn.transformer_layer import sinusoid


def xavier(model: nn.Module, width: int) -> None:
    """Initialize: Xavier-uniform matrices, zero biases, learned embeddings N(0, 1/width); norms stay at one.

    Learned positions like BART's start as sinusoids.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    # after the matrices, one of which may share its weights with the embeddings
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.weight.requires_grad:
            nn.init.normal_(module.weight, std=width**-0.5)
        if isinstance(module, BartLearnedPositionalEmbedding | LEDLearnedPositionalEmbedding):
            module.weight.data = sinusoid(torch.arange(len(module.weight)), module.weight.shape[1])


class OwnInitialization(nn.Module):
    """A module with its own initialization; by default, its parameters are matrices [H, E, E] or vectors [H, E]."""

    def reset_parameters(self) -> None:
        """Initialize the weights: each head as a separate layer, by Xavier's uniform distribution."""
        for weight in self.parameters(recurse=False):
            bound = math.sqrt(6 / (weight.shape[1] + (weight.shape[2] if weight.dim() == 3 else 1)))
            nn.init.uniform_(weight, -bound, bound)


class InitializesModules:
    """Mixin for stacks with `OwnInitialization` modules that a checkpoint may lack; precedes transformers' class."""

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, OwnInitialization):
            module.reset_parameters()
        else:
            super()._init_weights(module)  # type: ignore[misc]  # a method of transformers' class
