"""A search whose outputs may end later chooses the tokens of the library."""

from typing import Any

import pytest
import torch
from support.pagesum_networks import SIZES, batch
from torch import Tensor
from transformers.generation import GenerationMixin

from longsumbench.modeling.nn.folded_attention import FoldedGeneration
from longsumbench.models.pagesum.model import PageSumForConditionalGeneration, PageSumModelConfig

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("forced", [None, 2])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_search_writes_what_the_library_writes(
    beams: int, forced: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a minimum of tokens, and with an end token that is forced at the limit."""
    torch.manual_seed(3)
    sizes = {**SIZES, "forced_eos_token_id": forced}
    model = PageSumForConditionalGeneration(PageSumModelConfig(**sizes)).eval()
    model.final_logits_bias[:, 2] = 3.0  # texts would end early

    def write() -> Tensor:
        limits: dict[str, Any] = {"min_new_tokens": 5, "max_new_tokens": 9, "do_sample": False}
        with torch.inference_mode():
            return model.generate(**batch((30, 10), (20, 0)), num_beams=beams, **limits)

    ours = write()
    processor = GenerationMixin._get_logits_processor
    monkeypatch.setattr(FoldedGeneration, "_get_logits_processor", processor)
    assert ours.tolist() == write().tolist()
    assert ours.shape[1] > 5
