"""FLOPs that are counted without computing are those of a computed pass."""

import pytest
import torch
from support.toys import build_tiny
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from longsumbench.modeling import flops
from longsumbench.modeling.flops import count_forward, counting_flops

NEWER = ("trunc", "ca", "ea", "seal", "pagesum", "etads")
SYSTEMS = (*NEWER, "hierarchical_transformer", "flat_transformer", "tdmca")
WORDS, TARGET = 320, 30  # of the source, cut by most of the systems; of the summary


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_count_without_numbers_is_that_of_a_computed_pass(name: str) -> None:
    """A pass of the same network with numbers has the same FLOPs; a training step has three times as many, about."""
    settings = build_tiny(name).config
    counted = count_forward(settings, WORDS, TARGET)
    system, batch = flops.made_batch(settings, WORDS, TARGET)
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
