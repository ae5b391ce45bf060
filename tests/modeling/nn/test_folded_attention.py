import pytest
import torch
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention

from longsumbench.modeling.nn.folded_attention import FoldedAttention
from longsumbench.modeling.nn.masks import attention_mask, never_empty

pytestmark = pytest.mark.usefixtures("float64")


def both(implementation: str) -> tuple[FoldedAttention, PegasusAttention, PegasusConfig]:
    """Return ours and the library's with the same weights."""
    torch.manual_seed(0)
    config = PegasusConfig(d_model=16, decoder_attention_heads=2)
    config._attn_implementation = implementation
    ours, stock = (
        kind(16, 2, config=config, layer_idx=0).eval()
        for kind in (FoldedAttention, PegasusAttention)
    )
    stock.load_state_dict(ours.state_dict())
    return ours, stock, config


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("per_beam", [False, True])
def test_beams_read_one_memory(per_beam: bool, implementation: str) -> None:
    """Six beams over two memories give what six copies of the memories give, each beam behind its own mask."""
    ours, stock, config = both(implementation)
    queries, memory = torch.randn(6, 4, 16), torch.randn(2, 7, 16)
    mask = never_empty(torch.rand(6 if per_beam else 2, 7) > 0.4)
    form = lambda one: attention_mask(one, config, torch.float32)  # noqa: E731
    folded = ours(queries, key_value_states=memory, attention_mask=form(mask))[0]
    whole = mask if per_beam else mask.repeat_interleave(3, 0)
    plain = stock(queries, memory.repeat_interleave(3, 0), attention_mask=form(whole))[0]
    torch.testing.assert_close(folded, plain)
