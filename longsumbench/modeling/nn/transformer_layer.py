"""A Transformer layer with separately callable sub-layers.

Letters: R rows, L tokens (or pooled units), D width.
"""

from collections.abc import Callable

from torch import Tensor, nn
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention, PegasusEncoderLayer

from longsumbench.modeling.nn.dropout import dropout


class TransformerLayer(PegasusEncoderLayer):
    """As PegasusEncoderLayer, except: without `norm_first`, the norms follow the sub-layers, as in BART."""

    def __init__(self, config: PegasusConfig, norm_first: bool) -> None:
        super().__init__(config)
        self.norm_first = norm_first

    def forward(self, states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Run the whole layer: [R, L, D] → [R, L, D]."""
        return self.conclude(self.relate(states, attention_mask))

    def relate(self, states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Run self-attention, with a mask in transformers' form: [R, L, D] → [R, L, D]."""
        return self.residual(
            states, self.self_attn_layer_norm, lambda x: attend(self.self_attn, x, None, attention_mask)
        )

    def conclude(self, states: Tensor) -> Tensor:
        """Run the feed-forward sub-layer: [R, L, D] → [R, L, D]."""
        return self.residual(states, self.final_layer_norm, self.feed_forward)

    def feed_forward(self, states: Tensor) -> Tensor:
        """Run the feed-forward network without norm and residual: [R, L, D] → [R, L, D]."""
        activated = dropout(self.activation_fn(self.fc1(states)), self.activation_dropout, self.training)
        changed: Tensor = self.fc2(activated)
        return changed

    def residual(self, states: Tensor, norm: nn.Module, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the output of a sub-layer to the states; the norm precedes or follows it."""
        changed = dropout(function(norm(states) if self.norm_first else states), self.dropout, self.training)
        sums = states + changed
        return sums if self.norm_first else norm(sums)


def attend(attention: PegasusAttention, states: Tensor, keys: Tensor | None, attention_mask: Tensor | None) -> Tensor:
    """Attend from the states to the keys; None: self-attention."""
    output: Tensor = attention(states, keys, attention_mask=attention_mask)[0]
    return output
