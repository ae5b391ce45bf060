"""FLOPs that are counted without computing are those of a computed pass."""

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from longsumbench.core import registry
from longsumbench.modeling import flops
from longsumbench.modeling.flops import count_forward, counting_flops

SMALL = {
    "vocabulary_size": 300,
    "d_model": 32,
    "d_ff": 64,
    "num_heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 2,
}
SNIPPETS = {**SMALL, "snippet_length": 32, "num_snippets": 6, "decode_length": 40}
SYSTEMS: dict[str, dict[str, Any]] = {  # name → settings
    "trunc": {**SNIPPETS, "input_length": 100},
    "ca": {**SNIPPETS, "extractive_length": 64},
    "ea": {**SNIPPETS, "extractive_length": 64},
    "seal": {**SNIPPETS, "extractive_length": 64, "segment_length": 16},
    "pagesum": {**SMALL, "init": "random", "num_pages": 3, "page_size": 64, "decode_length": 40},
    "etads": {**SMALL, "input_length": 100, "decode_length": 40},
    "hierarchical_transformer": {**SMALL, "input_length": 300, "decode_length": 40},
    "flat_transformer": {**SMALL, "input_length": 100, "decode_length": 40},
    "tdmca": {
        "vocabulary_size": 300,
        "d_model": 32,
        "d_ff": 64,
        "num_heads": 2,
        "input_length": 300,
        "num_layers": 2,
    },
}
WORDS, TARGET = 320, 30  # of the source, cut by most of the systems; of the summary


def settings_of(name: str) -> Any:
    return registry.config_of(name)(name=name, **SYSTEMS[name])


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_count_without_numbers_is_that_of_a_computed_pass(name: str) -> None:
    """A pass of the same network with numbers has the same FLOPs; a training step has three times as many, about."""
    counted = count_forward(settings_of(name), WORDS, TARGET)
    system, batch = flops.made_batch(settings_of(name), WORDS, TARGET)
    model = system.builder.blank_model((0, 1, 2)).eval()
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as computed:
        model(**batch)
    assert counted.flops == computed.get_total_flops()
    assert counted.parameters == sum(parameter.numel() for parameter in model.parameters())
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as step:
        model.train()(**batch).loss.backward()
    assert 1 / 2 < step.get_total_flops() / (3 * counted.flops) < 2


def test_only_rows_of_a_mask_are_counted() -> None:
    """A mask of integers chooses 3 of 5 rows of width 4; their product with 2 columns has 2 × 3 × 4 × 2 FLOPs."""
    ids = torch.tensor([7, 0, 7, 7, 0])
    with counting_flops() as counter:
        rows = torch.ones(5, 4)[ids > 0].unsqueeze_(0)
        product = rows @ torch.ones(1, 4, 2)
    assert product.shape == (1, 3, 2)
    assert counter.get_total_flops() == 48
