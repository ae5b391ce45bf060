"""Small ETADSs, and batches for them."""

from typing import Any

import torch
from torch import Tensor

from longsumbench.models.etads.model import EtadsForConditionalGeneration, EtadsModelConfig

PAD, START, END = 0, 1, 2
SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 32,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "max_position_embeddings": 40,
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
    "basic": {},
    "focus": {"focus_layers": [1, 2]},
    "saliency": {"saliency_layers": [1, 2]},
    "both": {"focus_layers": [1, 2], "saliency_layers": [1, 2]},
    "some layers": {"focus_layers": [2], "saliency_layers": [1]},
}


def network(**changes: Any) -> Any:
    """Return a network whose weights are the same every time, none of them zero or one."""
    torch.manual_seed(0)
    model = EtadsForConditionalGeneration(EtadsModelConfig(**{**SIZES, **changes})).eval()
    for weight in model.parameters():
        weight.data += (0.05 if weight.dim() == 1 else 0.15) * torch.randn_like(weight)
    model.model.decoder.embed_positions.weight.data *= (
        30  # untrained, it would repeat its last token
    )
    return model


def batch(*lengths: int) -> dict[str, Tensor]:
    """Return a batch of texts of so many tokens, one unit each."""
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(
        3, SIZES["vocab_size"], (len(lengths), 1, max(lengths)), generator=generator
    )
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None]
    return {"input_ids": ids.masked_fill(~mask, PAD), "unit_mask": mask}


def labels(*lengths: int) -> Tensor:
    """Return targets of so many tokens."""
    generator = torch.Generator().manual_seed(11)
    ids = torch.randint(3, SIZES["vocab_size"], (len(lengths), max(lengths)), generator=generator)
    return ids.masked_fill(torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None], -100)
