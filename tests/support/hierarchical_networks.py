"""Small Hierarchical Transformers, and batches for them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
)

PAD, START, END = 0, 1, 2
VOCABULARY = 40
SIZES = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_layers": 2,
    "global_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "pooling_heads": 4,
    "dropout": 0.0,
    "activation_function": "relu",
    "scale_embedding": True,
    "pad_token_id": PAD,
    "bos_token_id": START,
    "eos_token_id": END,
    "decoder_start_token_id": START,
    "forced_eos_token_id": None,
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
    model = HierarchicalTransformerForConditionalGeneration(config).eval()
    for weight in model.parameters():
        weight.data += (0.05 if weight.dim() == 1 else 0.15) * torch.randn_like(weight)
    return model


def batch(*lengths: Sequence[int], graph: bool = False) -> dict[str, Tensor]:
    """Return a batch of examples of paragraphs of so many tokens; 0: it is absent."""
    generator = torch.Generator().manual_seed(7)
    most, longest = max(map(len, lengths)), max(max(one, default=1) for one in lengths)
    sizes = torch.tensor([[*one, *[0] * (most - len(one))] for one in lengths])
    mask = torch.arange(max(1, longest)) < sizes[..., None]
    ids = torch.randint(3, VOCABULARY, mask.shape, generator=generator)
    given = {"input_ids": ids.masked_fill(~mask, PAD), "unit_mask": mask}
    if graph:
        given["unit_graph"] = torch.rand(len(lengths), most, most, generator=generator)
    return given


def labels(*lengths: int) -> Tensor:
    """Return targets of so many tokens."""
    generator = torch.Generator().manual_seed(11)
    ids = torch.randint(3, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    return ids.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], -100)
