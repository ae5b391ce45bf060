"""The Hierarchical Transformer and the Flat Transformer, started from an encoder of transformers."""

from pathlib import Path
from typing import Any

import torch
from support.tiny_encoders import write_encoder
from support.toys import fit_tiny

from longsumbench.modeling.nn.transformer_layer import sinusoid
from longsumbench.models.hierarchical_transformer.config import (
    FlatTransformerConfig,
    HierarchicalTransformerConfig,
)

FREE = {"d_model": None, "encoder_layers": None, "rank": "none", "input_length": 20}


def test_ranks_are_added_to_what_the_encoder_says(tmp_path: Path) -> None:
    """A paragraph's states at rank 3 and rank 0 differ by the positions of these ranks; without positions not at all."""
    start = write_encoder(tmp_path / "start")
    ids, is_real = torch.tensor([[7, 9, 8]]), torch.ones(1, 3, dtype=torch.bool)
    ranks = sinusoid(torch.tensor([0, 3]), 32, interleaved=True)
    for positions in (True, False):
        settings: dict[str, Any] = {**FREE, "init": str(start), "paragraph_positions": positions}
        system = fit_tiny("hierarchical_transformer", tmp_path / "cache", steps=0, **settings)
        encoder = system.model.eval().model.encoder
        first, fourth = (encoder.states(ids, is_real, torch.tensor([rank])) for rank in (0, 3))
        expected = (ranks[1] - ranks[0]) * positions
        torch.testing.assert_close(fourth - first, expected.expand(1, 3, 32), rtol=0, atol=1e-5)


def test_sizes_are_the_papers() -> None:
    """Without an encoder d is 256, with 5 local layers, or 6 of the Flat Transformer."""
    hierarchical = HierarchicalTransformerConfig(d_model=None)
    flat = FlatTransformerConfig(encoder_layers=None)
    assert (hierarchical.d_model, hierarchical.encoder_layers) == (256, 5)
    assert (flat.d_model, flat.encoder_layers) == (256, 6)


def test_the_release_has_one_decoder_layer() -> None:
    """With fidelity=official the decoder is as shallow as the release's default, unless a depth is given."""
    assert HierarchicalTransformerConfig(fidelity="official").decoder_layers == 1
    assert HierarchicalTransformerConfig(fidelity="official", decoder_layers=4).decoder_layers == 4
