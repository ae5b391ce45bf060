from collections import Counter
from typing import Any

import pytest
import torch
from support import etads_networks
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache

from longsumbench.core import Decoding
from longsumbench.modeling.generation import decode
from longsumbench.modeling.nn import decoder_steps, folded_attention

WAITS = (
    "is_nonzero",
    "item",
    "nonzero",
    "masked_select",
    "equal",
)  # operators whose result the host needs


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


class Counting(TorchDispatchMode):
    """Counts operators by name."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = [part for part in (args[1] if name == "index" else ()) if part is not None]
        self.calls["nonzero" if any(part.dtype == torch.bool for part in masks) else name] += 1
        return func(*args, **(kwargs or {}))


def test_a_gpu_is_waited_for_once_a_token() -> None:
    """Beams with coverage and n-grams of the source wait as often as the library's stopping check does."""
    model, batch = etads_networks.network(), etads_networks.batch(23, 9, 15)
    model.config.bos_token_id = None
    settings: dict[str, Any] = {"num_beams": 3, "coverage": "summary", "length_norm": "wu"}
    counts = []
    for length in (8, 12):
        decoding = Decoding(
            min_length=length, encoder_no_repeat_ngram=2, no_repeat_ngram=3, **settings
        )
        with Counting() as counting:
            decode(model, batch, decoding, limit=length)
        counts.append(sum(counting.calls[name] for name in WAITS))
    assert counts[1] - counts[0] == 12 - 8
