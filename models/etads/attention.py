"""ETADS's two kinds of attention: focus in the encoder (Eqs. 5–8), saliency selection in the decoder (Eqs. 9–10).

    focus     queries → Focus → Windows: a centre and a width for every token and head → a bias on the scores
    saliency  each head weights every source token by its saliency

Letters: R rows, K queries of a row's beams, H heads, L tokens, T target tokens, S source tokens, E width of a head.
"""

import math
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, PreTrainedConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention

from longsumbench.modeling.nn.folded_attention import FoldedAttention
from longsumbench.modeling.nn.initialization import OwnInitialization
from longsumbench.modeling.nn.masks import at_least_single, masked_scores

_NARROWEST = 0.5  # tokens; see `Focus`
# Keys with a bias below −64 are masked. The nearest key has a bias of −8 or more, so at equal scores such a key has at
# most e^−56 times its weight. Numbers that close to zero make processors many times slower.
_FARTHEST = 64.0
_GATED = "longsumbench-gated"  # the library's name for `_gated`


class FocusWindows(NamedTuple):
    """The centre and the width of each head's focus for each token, in tokens."""

    centres: Tensor  # [R, H, L], 0 to m (μ̃ of ETADS, Eq. 6), float32.
    widths: Tensor  # [R, H, L], NARROWEST to m (σ̃), float32


class Focus(OwnInitialization):
    """Compute centres and widths from the queries (ETADS, Eqs. 5–6), with separate matrices for each of the H heads.

    Choice: a width is at least half a token; a narrower bias does not separate two neighbours better.
    """

    def __init__(self, num_heads: int, head_width: int) -> None:
        super().__init__()
        self.w_p = nn.Parameter(torch.empty(num_heads, head_width, head_width))
        self.w_g = nn.Parameter(torch.empty(num_heads, head_width, head_width))
        self.u_c = nn.Parameter(torch.empty(num_heads, head_width))
        self.u_d = nn.Parameter(torch.empty(num_heads, head_width))
        self.reset_parameters()

    def forward(self, queries: Tensor, real: Tensor) -> FocusWindows:
        """Compute the focus, at least in single precision: near 400, bfloat16 steps by two.

        Args:
            queries: [R, H, L, E].
            real: [R, L], True where a token is real; m is the number of real tokens.
        """
        with torch.autocast(queries.device.type, enabled=False):
            queries = at_least_single(queries)
            lengths = real.sum(-1).to(queries.dtype)[:, None, None]  # [R, 1, 1]
            mean = (queries * real[:, None, :, None]).sum(2) / lengths  # [R, H, E]
            means = mean[:, :, None] @ at_least_single(self.w_g)  # [R, H, 1, E]
            hidden = torch.tanh(queries @ at_least_single(self.w_p) + means)
            projected = hidden @ at_least_single(
                torch.stack([self.u_c, self.u_d], -1)
            )  # [R, H, L, 2]
            centres, widths = (lengths[..., None] * projected.sigmoid()).unbind(-1)
            return FocusWindows(centres, widths.clamp(min=_NARROWEST))


def focus_attention(
    queries: Tensor, keys: Tensor, values: Tensor, windows: FocusWindows, real: Tensor
) -> Tensor:
    """Attend with a bias towards each query's focus (ETADS, Eqs. 7–8).

    f_ij = −(j − μ̃_i)² / (σ̃_i² / 2), with j counted from 0.

    Args:
        queries: [R, H, L, E].
        keys: [R, H, L, E].
        values: [R, H, L, E].
        windows: centres and widths.
        real: [R, L], True where a token is real, at least one per row.

    Returns:
        [R, H, L, E].
    """
    # (√2 / σ̃ · (j − μ̃))², which is −f.
    places = torch.arange(keys.shape[2], device=keys.device, dtype=torch.float32)
    steepness = math.sqrt(2) / windows.widths[..., None]  # [R, H, L, 1]
    penalty = (steepness * places - steepness * windows.centres[..., None]).square()  # [R, H, L, L]
    bias = torch.where((penalty < _FARTHEST) & real[:, None, None], -penalty, float("-inf"))
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias.to(queries.dtype))


class FocusAttention(PegasusAttention):
    """As PegasusAttention (self-attention), except: every head's scores are biased towards its focus."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config.d_model, config.encoder_attention_heads, config=config)
        self.focus = Focus(self.num_heads, self.head_dim)

    def forward(
        self,
        hidden_states: Tensor,
        key_value_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        """Attend from every token to all: [R, L, D] → [R, L, D].

        The mask [R, 1, L or 1, L] is True or 0 where a token is real; without one all are real. Other arguments are not
        used.
        """
        rows, length, width = hidden_states.shape
        queries, keys, values = (
            project(hidden_states).view(rows, length, self.num_heads, self.head_dim).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        real = _real_tokens(attention_mask, hidden_states)
        attended = focus_attention(queries, keys, values, self.focus(queries, real), real)
        return self.out_proj(attended.transpose(1, 2).reshape(rows, length, width)), None


def _real_tokens(attention_mask: Tensor | None, states: Tensor) -> Tensor:
    """Return a mask [R, L], True where a token is real, from a mask in the library's form."""
    if attention_mask is None:
        return torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    key_mask = attention_mask[:, 0, 0]
    return key_mask if key_mask.dtype == torch.bool else key_mask == 0


class Gate(OwnInitialization):
    """Score the saliency of every source token (ETADS, Eq. 9), with separate matrices per head.

    g = sigmoid((W_h Q)(W_s K)ᵀ), unscaled. Both matrices are applied to the queries, (Q W_h W_sᵀ) Kᵀ: only the keys are
    cached, and targets are shorter than sources.
    """

    def __init__(self, num_heads: int, head_width: int) -> None:
        super().__init__()
        self.w_h = nn.Parameter(torch.empty(num_heads, head_width, head_width))
        self.w_s = nn.Parameter(torch.empty(num_heads, head_width, head_width))
        self.reset_parameters()

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

    Queries are [R, H, K·T, E], keys and values [R, H, S, E]. Returns [R, K·T, H, E], and the weights before the gate.
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
