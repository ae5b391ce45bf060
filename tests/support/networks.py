"""What small networks of all families share: sizes, ragged batches and targets, the same every time."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from longsumbench.core import Decoding, Evidence, Example, registry
from longsumbench.modeling import neural_system
from longsumbench.modeling.generation import GeneratedText
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.units import Units

# The systems that read by units.
NEURAL = [
    name
    for name in sorted(registry.systems.targets())
    if issubclass(registry.systems.load(name), NeuralSystem)
]
SIZES: dict[str, Any] = {
    "d_model": 32,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "dropout": 0.0,
    "forced_eos_token_id": None,
}


def special_tokens(pad: int, start: int, end: int) -> dict[str, int]:
    """Return the entries of a configuration that name the special tokens."""
    return {"pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": start}


def perturb(model: Any) -> Any:
    """Change all weights, so that none is zero or one."""
    for weight in model.parameters():
        weight.data += (0.05 if weight.dim() == 1 else 0.15) * torch.randn_like(weight)
    return model


def ragged_units(
    examples: Sequence[Sequence[int]], vocabulary: int, pad: int, seed: int
) -> dict[str, Tensor]:
    """Return a batch of examples whose units have the given numbers of tokens; a unit of 0 is absent."""
    generator = torch.Generator().manual_seed(seed)
    num_units = max(map(len, examples))
    longest = max(max(example, default=0) for example in examples)
    ids = torch.full((len(examples), num_units, max(1, longest)), pad)
    mask = torch.zeros_like(ids, dtype=torch.bool)
    for row, example in enumerate(examples):
        for unit, length in enumerate(example):
            ids[row, unit, :length] = torch.randint(3, vocabulary, (length,), generator=generator)
            mask[row, unit, :length] = True
    return {"input_ids": ids, "unit_mask": mask}


def ragged_labels(lengths: Sequence[int], vocabulary: int, seed: int) -> Tensor:
    """Return targets of the given lengths."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.full((len(lengths), max(lengths)), -100)
    for label, length in zip(labels, lengths, strict=True):
        label[:length] = torch.randint(3, vocabulary, (length,), generator=generator)
    return labels


def score_by(
    evidence: Evidence, system: Any, example: Example, units: Units, patch: pytest.MonkeyPatch
) -> Any:
    """Return the scores of a source for which a system has evidence that is made by hand; nothing is decoded."""
    patch.setattr(system, "evidence", lambda written: evidence)
    system.model = None
    written = GeneratedText(example, units, [5, 6])
    patch.setattr(neural_system, "generate_texts", lambda *_: [written])
    (scored,) = system.score_source([example], Decoding(device="cpu"))
    return scored


def alone(inputs: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """Return one example of a batch, its padding cut away."""
    lengths = inputs["unit_mask"][row].sum(-1)
    units, length = int(lengths.nonzero().max()) + 1, int(lengths.max())
    sizes = {"unit_documents": (units,), "unit_graph": (units, units)}
    cut = {name: tuple(map(slice, sizes.get(name, (units, length)))) for name in inputs}
    return {name: value[(slice(row, row + 1), *cut[name])] for name, value in inputs.items()}
