"""The Hierarchical Transformer and the Flat Transformer, started from an encoder of transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from support.tiny_encoders import write_encoder
from support.toys import ToySplit, build_tiny, tiny_recipe

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import FitContext
from longsumbench.errors import UsageError
from longsumbench.modeling.nn.transformer_layer import sinusoid
from longsumbench.models.hierarchical_transformer.config import (
    FlatTransformerConfig,
    HierarchicalTransformerConfig,
)

NAMES = ("hierarchical_transformer", "flat_transformer")
FREE = {"d_model": None, "encoder_layers": None, "rank": "none", "input_length": 20}


def fitted(name: str, folder: Path, init: Path, steps: int = 3, **settings: Any) -> Any:
    """Return a small system that starts from an encoder."""
    system = build_tiny(name, **{**FREE, "init": str(init), **settings})
    recipe = tiny_recipe(max_steps=steps)
    system.fit(FitContext(ToySplit.of("train", 16), None, recipe, ArtifactCache(folder)))
    return system


def test_ranks_are_added_to_what_the_encoder_says(tmp_path: Path) -> None:
    """A paragraph's states at rank 3 and rank 0 differ by the positions of these ranks; without positions not at all."""
    start = write_encoder(tmp_path / "start")
    ids, is_real = torch.tensor([[7, 9, 8]]), torch.ones(1, 3, dtype=torch.bool)
    ranks = sinusoid(torch.tensor([0, 3]), 32, interleaved=True)
    for positions in (True, False):
        settings = {"paragraph_positions": positions}
        system = fitted(NAMES[0], tmp_path / "cache", start, steps=0, **settings)
        encoder = system.model.eval().model.encoder
        first, fourth = (encoder.states(ids, is_real, torch.tensor([rank])) for rank in (0, 3))
        expected = (ranks[1] - ranks[0]) * positions
        torch.testing.assert_close(fourth - first, expected.expand(1, 3, 32), rtol=0, atol=1e-5)


def test_sizes_are_the_papers_or_the_encoders(tmp_path: Path) -> None:
    """Without an encoder d is 256, with 5 local layers, or 6 of the Flat Transformer; an encoder has its own."""
    hierarchical = HierarchicalTransformerConfig(d_model=None)
    flat = FlatTransformerConfig(encoder_layers=None)
    assert (hierarchical.d_model, hierarchical.encoder_layers) == (256, 5)
    assert (flat.d_model, flat.encoder_layers) == (256, 6)
    start = write_encoder(tmp_path / "start")
    for settings, message in (
        ({"paragraph_length": 23}, r"model\.paragraph_length=23: .* only 22"),
        ({"pooling_heads": 3}, r"d_model=32 cannot be shared equally by model\.pooling_heads=3"),
    ):
        with pytest.raises(UsageError, match=message):
            fitted(NAMES[0], tmp_path / "cache", start, **settings)
