import math

import pytest
import torch

from longsumbench.modeling.nn.encoder_decoder import token_cross_entropy

pytestmark = pytest.mark.usefixtures("float64")


def test_hand_worked_smoothing() -> None:
    """ε/V on every column: two columns, p = .75/.25, gold first, ε .2 → -(.9 ln .75 + .1 ln .25)."""
    logits = torch.tensor([[[math.log(3.0), 0.0]]])
    loss = token_cross_entropy(logits, torch.tensor([[0]]), smoothing=0.2)
    torch.testing.assert_close(loss.item(), -(0.9 * math.log(0.75) + 0.1 * math.log(0.25)))
