"""Small Hierarchical Transformers, and batches for them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
)
from support import networks

PAD, START, END = 0, 1, 2
VOCABULARY = 40
SIZES = {
    **networks.SIZES,
    **networks.special_tokens(PAD, START, END),
    "vocab_size": VOCABULARY,
    "bos_token_id": START,
    "global_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "pooling_heads": 4,
    "activation_function": "relu",
    "scale_embedding": True,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "official": {"official": True},
    "without PP": {"paragraph_positions": False},
    "without MP": {"pooling_heads": 1},
    "without GT": {"global_layers": 0},
}


def network(**changes: Any) -> Any:
    """Return a network whose weights are the same every time, none of them zero or one."""
    torch.manual_seed(0)
    config = HierarchicalTransformerModelConfig(**{**SIZES, **changes})
    return networks.perturb(HierarchicalTransformerForConditionalGeneration(config).eval())


def batch(*lengths: Sequence[int], graph: bool = False) -> dict[str, Tensor]:
    """Return a batch of examples of paragraphs of so many tokens; 0: it is absent."""
    inputs = networks.ragged_units(lengths, VOCABULARY, PAD, seed=7)
    if graph:
        num_examples, num_units, _ = inputs["input_ids"].shape
        generator = torch.Generator().manual_seed(7)
        inputs["unit_graph"] = torch.rand(num_examples, num_units, num_units, generator=generator)
    return inputs


def targets(*lengths: int) -> Tensor:
    """Return targets of so many tokens."""
    return networks.ragged_labels(lengths, VOCABULARY, seed=11)
