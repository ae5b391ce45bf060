"""Small networks of the SEAL family and batches for them."""

from typing import Any

import torch
from torch import Tensor
from transformers.models.pegasus.modeling_pegasus import shift_tokens_right

from longsumbench.modeling.nn.initialization import xavier
from longsumbench.models.seal.model import (
    CAForConditionalGeneration,
    CAModelConfig,
    EAForConditionalGeneration,
    EAModelConfig,
    SealForConditionalGeneration,
    SealModelConfig,
    TruncForConditionalGeneration,
    TruncModelConfig,
)
from support import networks

VOCABULARY, PAD, START, END = 60, 0, 1, 2
SIZES = {
    **networks.SIZES,
    **networks.special_tokens(PAD, START, END),
    "vocab_size": VOCABULARY,
    "decoder_layers": 3,
    "max_position_embeddings": 64,
    "scale_embedding": True,
    "activation_function": "relu",
}
SELECTING = {"extractive_length": 30, "max_documents": 4}
FAMILY = {
    "trunc": (TruncForConditionalGeneration, TruncModelConfig, {}),
    "ca": (CAForConditionalGeneration, CAModelConfig, {"compressed_length": 3}),
    "ea": (EAForConditionalGeneration, EAModelConfig, SELECTING),
    "seal": (SealForConditionalGeneration, SealModelConfig, {**SELECTING, "segment_length": 6}),
}


def network(name: str, **changes: Any) -> Any:
    """Return a network of the family, its weights the same every time.

    Its output matrix is not the embeddings', and it looks at its memory more than at itself: untrained, it would repeat
    its last token whatever it reads.
    """
    model_class, config_class, own = FAMILY[name]
    torch.manual_seed(0)
    model = model_class(config_class(**{**SIZES, **own, **changes})).eval()
    xavier(model, SIZES["d_model"])
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCABULARY, SIZES["d_model"]))
    for layer in model.model.decoder.layers:
        layer.encoder_attn.out_proj.weight.data *= 5
    for layer in model.model.encoder.scorer.layers if name == "seal" else ():
        layer.encoder_attn.out_proj.weight.data *= 5
    return model


def batch(*examples: tuple[int, ...]) -> dict[str, Tensor]:
    """Return a batch of examples whose units have the given numbers of tokens; unit i belongs to document i // 2."""
    inputs = networks.ragged_units(examples, VOCABULARY, PAD, seed=1)
    real = inputs["unit_mask"].any(-1)
    inputs["unit_documents"] = (torch.arange(real.shape[1]) // 2).expand_as(real) * real
    return inputs


RAGGED = ((8, 5, 8, 7, 8, 8, 3, 8, 8), (8, 8, 1, 8), (6, 7, 3, 8, 8, 2))


def targets(*lengths: int) -> Tensor:
    """Return targets of the given lengths, which end with the end token."""
    labels = networks.ragged_labels(lengths, VOCABULARY, seed=2)
    for label, length in zip(labels, lengths, strict=True):
        label[length - 1] = END
    return labels


def shifted(labels: Tensor) -> Tensor:
    """Return the decoder's input for some labels."""
    ids: Tensor = shift_tokens_right(labels, PAD, START)
    return ids
