import pytest
import torch

from longsumbench.modeling.nn.masks import at_least_single


@pytest.mark.parametrize("given", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_half_precision_becomes_single_and_double_stays(given: torch.dtype) -> None:
    """Numbers are in float32 then, or in float64 if they were, and keep their values."""
    found = at_least_single(torch.tensor([0.5, -2.0], dtype=given))
    assert found.dtype == (torch.float64 if given == torch.float64 else torch.float32)
    assert found.tolist() == [0.5, -2.0]
