"""Small ETADSs, and batches for them."""

from typing import Any

import torch
from torch import Tensor

from longsumbench.models.etads.model import EtadsForConditionalGeneration, EtadsModelConfig
from support import networks
from support.toys import settings_of

PAD, START, END = 0, 1, 2
SIZES = {
    **networks.SIZES,
    **networks.special_tokens(PAD, START, END),
    "vocab_size": 40,
    "bos_token_id": START,
    "max_position_embeddings": 40,
    "activation_function": "relu",
    "scale_embedding": True,
}
VARIANTS = {
    "basic": {},
    "focus": settings_of("focus_layers=[1,2]"),
    "saliency": settings_of("saliency_layers=[1,2]"),
    "both": settings_of("focus_layers=[1,2] saliency_layers=[1,2]"),
    "some layers": settings_of("focus_layers=[2] saliency_layers=[1]"),
}


def network(**changes: Any) -> Any:
    """Return a network whose weights are the same every time, none of them zero or one."""
    torch.manual_seed(0)
    config = EtadsModelConfig(**{**SIZES, **changes})
    model = networks.perturb(EtadsForConditionalGeneration(config).eval())
    # Untrained, it would repeat its last token.
    model.model.decoder.embed_positions.weight.data *= 30
    return model


def batch(*lengths: int) -> dict[str, Tensor]:
    """Return a batch of texts of so many tokens, one unit each."""
    return networks.ragged_units([[length] for length in lengths], SIZES["vocab_size"], PAD, seed=7)


def targets(*lengths: int) -> Tensor:
    """Return targets of so many tokens."""
    return networks.ragged_labels(lengths, SIZES["vocab_size"], seed=11)
