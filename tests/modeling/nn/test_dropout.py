import pytest
import torch
from torch.utils.checkpoint import checkpoint

from longsumbench.modeling.nn.transformer_layer import SMALLEST, dropout

LARGE, SMALL = (4, SMALLEST), (4, 8)


def dropped(shape: tuple[int, ...], probability: float = 0.1, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    return dropout(torch.ones(shape), probability, training=True)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.01])
def test_the_probability_and_the_mean_are_kept(probability: float) -> None:
    """Of many values the asked share is zero, the others are scaled by 1 / (1 − p), and the mean stays 1."""
    values = dropped(LARGE, probability)
    assert (values == 0).float().mean().item() == pytest.approx(probability, abs=0.003)
    assert values.max().item() == pytest.approx(1 / (1 - probability), rel=1e-4)
    assert values.mean().item() == pytest.approx(1, abs=0.01)


def test_gradients_flow_where_values_do() -> None:
    """A kept value's gradient is its scale, a dropped one's is zero, also when the values are computed twice."""
    for compute in (
        lambda x: dropout(x, 0.5, True),
        lambda x: checkpoint(dropout, x, 0.5, True, use_reentrant=False),
    ):
        torch.manual_seed(3)
        states = torch.ones(LARGE, requires_grad=True)
        values = compute(states)
        values.sum().backward()
        assert states.grad is not None
        assert torch.equal(states.grad, values.detach())
