import pytest
import torch
from transformers import PegasusConfig
from transformers.models.bart.modeling_bart import BartEncoderLayer
from transformers.models.pegasus.modeling_pegasus import PegasusEncoderLayer

from longsumbench.modeling.nn.transformer_layer import TransformerLayer

pytestmark = pytest.mark.usefixtures("float64")

CONFIG = PegasusConfig(
    d_model=16,
    encoder_attention_heads=2,
    encoder_ffn_dim=24,
    activation_function="relu",
    dropout=0.4,
)


@pytest.mark.parametrize(
    ("norm_first", "library"), [(True, PegasusEncoderLayer), (False, BartEncoderLayer)]
)
def test_it_is_the_librarys_layer(norm_first: bool, library: type) -> None:
    """With the same weights, and a mask, it does what Pegasus's layer does (norms first) or BART's (norms behind)."""
    torch.manual_seed(0)
    CONFIG._attn_implementation = "sdpa"
    ours, stock = TransformerLayer(CONFIG, norm_first).eval(), library(CONFIG).eval()
    stock.load_state_dict(ours.state_dict())
    states, mask = torch.randn(3, 5, 16), torch.rand(3, 1, 1, 5) > 0.3
    mask[..., 0] = True
    torch.testing.assert_close(ours(states, mask), stock(states, mask))
