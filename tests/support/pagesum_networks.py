"""Small BARTs, PageSums with their weights, and batches for them."""

from typing import Any

import torch
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration

from longsumbench.models.pagesum.model import PageSumForConditionalGeneration, PageSumModelConfig
from support import networks

VOCABULARY, START, PAD, END = 60, 0, 1, 2
SIZES = {
    **networks.SIZES,
    **networks.special_tokens(PAD, END, END),
    "vocab_size": VOCABULARY,
    "bos_token_id": START,
    "max_position_embeddings": 40,
    "init_std": 0.2,
}
DECODINGS = ["page", "global"]


def stock(**changes: Any) -> Any:
    """Return a BART, its weights the same every time.

    No weight is zero or one, so that one that is missing or misplaced shows. Its decoder looks at positions more than
    at tokens: untrained, it would repeat its last one.
    """
    torch.manual_seed(2)
    model = BartForConditionalGeneration(BartConfig(**{**SIZES, **changes})).eval()
    for weight in model.parameters():
        if weight.dim() == 1:
            weight.data += 0.05 * torch.randn_like(weight)
    model.final_logits_bias.normal_()
    model.model.decoder.embed_positions.weight.data *= 10
    return model


def network(**changes: Any) -> Any:
    """Return a PageSum with the weights of `stock`, and a confidence that is sure of itself."""
    model = PageSumForConditionalGeneration(PageSumModelConfig(**{**SIZES, **changes})).eval()
    model.load_state_dict(stock().state_dict(), strict=False)
    generator = torch.Generator().manual_seed(1)
    model.confidence.weight.data = torch.randn(model.confidence.weight.shape, generator=generator)
    model.confidence.bias.data.fill_(0.3)
    return model


def batch(*examples: tuple[int, ...]) -> dict[str, Tensor]:
    """Return a batch of examples whose pages have the given numbers of tokens; a page of 0 is absent."""
    return networks.ragged_units(examples, VOCABULARY, PAD, seed=2)


RAGGED = ((8, 5, 8), (7,), (3, 0, 8, 1, 6))  # the third has an absent page between others


def targets(*lengths: int) -> Tensor:
    """Return labels of the given lengths, from the start token to the end token."""
    labels = networks.ragged_labels(lengths, VOCABULARY, seed=3)
    for label, length in zip(labels, lengths, strict=True):
        label[0], label[length - 1] = START, END
    return labels
