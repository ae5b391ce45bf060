import pytest
import torch

from longsumbench.modeling.nn.transformer_layer import SinusoidalPositions

pytestmark = pytest.mark.usefixtures("float64")


def test_they_grow_and_continue() -> None:
    """Asked for more, the first positions stay; behind a past, they go on; no checkpoint holds any."""
    positions = SinusoidalPositions(8)
    few, many = positions.upto(3), positions.upto(40)
    assert torch.equal(many[:3], few)
    assert torch.equal(positions(torch.Size((2, 5)), 7), many[7:12])
    assert positions.state_dict() == {}


def test_they_follow_the_model() -> None:
    """In half precision they are, too; what was first needed for writing serves training."""
    assert SinusoidalPositions(8).bfloat16().upto(3).dtype == torch.bfloat16
    positions = SinusoidalPositions(8)
    with torch.inference_mode():
        positions.upto(5)
    weight = torch.ones(8, requires_grad=True)
    (positions.upto(5) * weight).sum().backward()
    assert weight.grad is not None
