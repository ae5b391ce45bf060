"""Small T-DMCAs, and batches for them."""

from typing import Any

import torch
from support import networks
from torch import Tensor

from longsumbench_reproduction.models.tdmca.model import (
    TdmcaForConditionalGeneration,
    TdmcaModelConfig,
)

PAD, START, END = 0, 1, 2
VOCABULARY = 40
BLOCK, WINDOW = 4, 3
_SIZES = {
    **networks.SIZES,
    **networks.special_tokens(PAD, START, END),
    "vocab_size": VOCABULARY,
    "bos_token_id": START,
    "d_model": 16,
    "decoder_layers": 5,
    "block_length": BLOCK,
    "compression": WINDOW,
}


def network(**changes: Any) -> Any:
    """Return a network whose weights are the same every time, none of them zero or one."""
    torch.manual_seed(0)
    config = TdmcaModelConfig(**{**_SIZES, **changes})
    model = networks.perturb(TdmcaForConditionalGeneration(config).eval())
    for name, weight in model.named_parameters():
        # Untrained, it would repeat its last token.
        if "layers" in name and weight.dim() > 1:
            weight.data += 0.5 * torch.randn_like(weight)
    return model


def batch(*lengths: int) -> dict[str, Tensor]:
    """Return a batch of sources of so many tokens, one unit each."""
    return networks.ragged_units([[length] for length in lengths], VOCABULARY, PAD, seed=7)


def labels(*lengths: int) -> Tensor:
    """Return targets of so many tokens."""
    return networks.ragged_labels(lengths, VOCABULARY, seed=11)


targets = labels  # as the other families call them
