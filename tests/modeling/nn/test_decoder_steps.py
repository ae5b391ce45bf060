import pytest
import torch
from torch.nn import functional as F
from transformers import DynamicCache

from longsumbench.modeling.nn import decoder_steps, folded_attention


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


def test_a_cache_grows_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two tokens at a time, five tokens of two rows are all there, and move with their beams."""
    monkeypatch.setattr(folded_attention, "_ROOM", 2)
    cache = folded_attention.FoldedCache(DynamicCache(), DynamicCache())
    for number in range(5):
        new = (
            number
            + 10 * torch.arange(2).view(2, 1, 1, 1, 1)
            + 100 * torch.arange(2).view(1, 2, 1, 1, 1)
        )
        rows = cache.append(0, new)
        cache.length += 1
        assert rows[0, 0].flatten().tolist() == list(range(number + 1))
    cache.reorder_cache(torch.tensor([1, 1]))
    rows = cache.append(0, torch.zeros(2, 2, 1, 1, 1, dtype=torch.long))
    assert rows[:, :, 0, :5, 0].tolist() == [
        [[100, 101, 102, 103, 104]] * 2,
        [[110, 111, 112, 113, 114]] * 2,
    ]
