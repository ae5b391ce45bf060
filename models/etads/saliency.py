"""Saliency selection: each head weights every source token by its saliency (ETADS, Eqs. 9–10).

Letters: R rows, K queries of a row's beams, H heads, T target tokens, S source tokens, E width of a head.
"""

from copy import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface

from longsumbench.modeling.nn.folded_attention import FoldedAttention
from longsumbench.modeling.nn.initialization import SelfStarting, xavier_heads
from longsumbench.modeling.nn.masks import masked_scores

_GATED = "longsumbench-gated"  # the library's name for `_gated`


class Gate(SelfStarting):
    """Score the saliency of every source token (ETADS, Eq. 9), with separate matrices per head.

    g = sigmoid((W_h Q)(W_s K)ᵀ), unscaled. Both matrices are applied to the queries, (Q W_h W_sᵀ) Kᵀ: only the keys are
    cached, and targets are shorter than sources.
    """

    def __init__(self, num_heads: int, head_width: int) -> None:
        super().__init__()
        self.w_h = nn.Parameter(torch.empty(num_heads, head_width, head_width))
        self.w_s = nn.Parameter(torch.empty(num_heads, head_width, head_width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize each head as a separate layer, by Xavier's uniform distribution."""
        xavier_heads(self.w_h)
        xavier_heads(self.w_s)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return saliencies, 0–1: [R, H, T, E], [R, H, S, E] → [R, H, T, S]."""
        projected_queries = queries @ self.w_h @ self.w_s.transpose(-1, -2)
        saliencies: Tensor = torch.sigmoid(projected_queries @ keys.transpose(-1, -2))
        return saliencies


def _gated(
    module: "SaliencyAttention",
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """Attend, every weight times its token's saliency, without new normalization (ETADS, Eq. 10); the library calls it.

    Args:
        module: has the gate.
        queries: [R, H, K·T, E].
        keys: [R, H, S, E].
        values: [R, H, S, E].
        attention_mask: [R, 1, K·T or 1, S], boolean or additive.
        scaling: of the scores.
        dropout: of the weights.
        **kwargs: not used.

    Returns:
        [R, K·T, H, E], and the weights before the gate [R, H, K·T, S].
    """
    weights = masked_scores(queries @ keys.transpose(-1, -2) * scaling, attention_mask).softmax(-1)
    selected = module.gate(queries, keys) * F.dropout(weights, dropout, module.training)
    return (selected @ values).transpose(1, 2).contiguous(), weights


AttentionInterface.register(_GATED, _gated)


class SaliencyAttention(FoldedAttention):
    """As FoldedAttention, except: the weights are multiplied by saliencies (ETADS §3.3)."""

    def __init__(self, *args: Any, config: Any, **kwargs: Any) -> None:
        super().__init__(*args, config=config, **kwargs)
        self.gate = Gate(self.num_heads, self.head_dim)
        self.config = copy(config)  # so that only this layer uses the gated attention
        self.config._attn_implementation = _GATED
