"""Steps of a search that pass over the vocabulary less often choose the same tokens."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from support.pagesum_networks import SIZES, batch
from torch import Tensor
from transformers.generation import GenerationMixin

from longsumbench.modeling.nn.folded_attention import FoldedGeneration, leading_tokens
from longsumbench.models.pagesum.model import PageSumForConditionalGeneration, PageSumModelConfig

pytestmark = pytest.mark.usefixtures("float64")
LARGE = 4_099  # tokens: more than 30 blocks, and a part of one


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 2_000), count=st.integers(1, 12), seed=st.integers(0, 2**16))
def test_the_highest_scores_are_among_the_leading_tokens(size: int, count: int, seed: int) -> None:
    """Whatever the vocabulary, the best tokens of each row are found, and no token twice."""
    scores = torch.rand(3, size, generator=torch.Generator().manual_seed(seed))
    tokens, count = leading_tokens(scores, count), min(count, size)
    assert all(len(set(row)) == len(row) for row in tokens.tolist())
    found = tokens.gather(1, scores.gather(1, tokens).topk(count).indices)
    assert found.tolist() == scores.topk(count).indices.tolist()


@pytest.mark.parametrize("forced", [None, 2])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_search_writes_what_the_library_writes(
    beams: int, forced: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a minimum of tokens, and with an end token that is forced at the limit."""
    torch.manual_seed(3)
    sizes = {**SIZES, "vocab_size": LARGE, "forced_eos_token_id": forced}
    model = PageSumForConditionalGeneration(PageSumModelConfig(**sizes)).eval()
    model.final_logits_bias[:, 2] = 3.0  # texts would end early

    def write() -> Tensor:
        limits: dict[str, Any] = {"min_new_tokens": 5, "max_new_tokens": 9, "do_sample": False}
        with torch.inference_mode():
            return model.generate(**batch((30, 10), (20, 0)), num_beams=beams, **limits)

    ours = write()
    for name in ("_get_logits_processor", "_get_top_k_continuations"):
        monkeypatch.setattr(FoldedGeneration, name, getattr(GenerationMixin, name))
    assert ours.tolist() == write().tolist()
    assert ours.shape[1] > 5
