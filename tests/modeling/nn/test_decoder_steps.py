import pytest
import torch
from torch.nn import functional as F

from longsumbench.modeling.nn import decoder_steps


@pytest.mark.parametrize("rows", [1, 4, 8, 64, 65])
@pytest.mark.parametrize("bias", [False, True])
def test_few_rows_give_the_same_product(
    rows: int, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weight may be the left or the right factor, in a large or a small product."""
    states, weight = (
        torch.randn(rows, 1, 6, dtype=torch.float64),
        torch.randn(5, 6, dtype=torch.float64),
    )
    offset = torch.randn(5, dtype=torch.float64) if bias else None
    for large in (0, 2_000_000):
        monkeypatch.setattr(decoder_steps, "_LARGE", large)
        with torch.inference_mode():
            product = decoder_steps.multiply(states, weight, offset)
            torch.testing.assert_close(product, F.linear(states, weight, offset))
            assert product.is_contiguous()
