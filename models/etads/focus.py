"""Focus attention: each head weights the tokens around a learned centre, within a learned width (ETADS, Eqs. 5–8).

    queries → Focus → Windows: a centre and a width for every token and head → a bias on the scores

Letters: R rows, H heads, L tokens, E width of a head.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention
from transformers import PreTrainedConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention

from longsumbench.modeling.nn.initialization import SelfStarting, xavier_heads
from longsumbench.modeling.nn.precision import at_least_single

_NARROWEST = 0.5  # tokens; see `Focus`
# Keys with a bias below −64 are masked. The nearest key has a bias of −8 or more, so at equal scores such a key has at
# most e^−56 times its weight. Numbers that close to zero make processors many times slower.
_FARTHEST = 64.0
WIDE_ENOUGH = 1 / 16  # of the text: least width for which the rank-two form is exact to about 1e-5


class FocusWindows(NamedTuple):
    """The centre and the width of each head's focus for each token, in tokens.

    Attributes:
        centres: [R, H, L], 0 to m (μ̃ of ETADS, Eq. 6), float32.
        widths: [R, H, L], NARROWEST to m (σ̃), float32.
    """

    centres: Tensor
    widths: Tensor


class Focus(SelfStarting):
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

    def reset_parameters(self) -> None:
        """Initialize each head as a separate layer, by Xavier's uniform distribution."""
        for weight in (self.w_p, self.w_g, self.u_c, self.u_d):
            xavier_heads(weight)

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
            chosen = hidden @ at_least_single(torch.stack([self.u_c, self.u_d], -1))  # [R, H, L, 2]
            centres, widths = (lengths[..., None] * chosen.sigmoid()).unbind(-1)
            return FocusWindows(centres, widths.clamp(min=_NARROWEST))


def plain_focus(queries: Tensor, keys: Tensor, values: Tensor, windows: FocusWindows, real: Tensor) -> Tensor:
    """Attend with the bias as a matrix: the reference form, valid for every focus (ETADS, Eqs. 7–8).

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
    places = torch.arange(keys.shape[2], device=keys.device, dtype=torch.float32)
    steepness = math.sqrt(2) / windows.widths[..., None]  # [R, H, L, 1]
    penalty = (steepness * places - steepness * windows.centres[..., None]).square()  # [R, H, L, L]
    bias = torch.where((penalty < _FARTHEST) & real[:, None, None], -penalty, float("-inf"))
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias.to(queries.dtype))


def flex_focus(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    windows: FocusWindows,
    real: Tensor,
    kernel: Callable[..., Any] | None = None,
) -> Tensor:
    """As `plain_focus`, except: the kernel computes the bias, without a matrix in memory; for CUDA.

    `kernel` is a flex attention; None: the compiled one, which needs CUDA.
    """
    centres, widths = windows

    def focused(score: Tensor, row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        distance = (key - centres[row, head, query]) / widths[row, head, query]
        return torch.where(real[row, key], score - 2 * distance * distance, float("-inf"))

    output: Tensor = (kernel or _compiled_flex())(queries, keys, values, score_mod=focused)
    return output


@cache
def _compiled_flex() -> Callable[..., Any]:
    compiled: Callable[..., Any] = torch.compile(flex_attention, dynamic=True)
    return compiled


def rank_two_focus(queries: Tensor, keys: Tensor, values: Tensor, windows: FocusWindows, real: Tensor) -> Tensor:
    """As `plain_focus`, except: the bias comes from two more features of queries and keys.

    −2(x − c)²/s² = −(2/s²)·x² + (4c/s²)·x − 2c²/s², of which the last term is the same for all keys of a query. Places
    are in text lengths from the middle of the text, x = j/m − ½. The rounding error of the score is about 1e-7 / s².

    Raises:
        ValueError: a focus is narrower than WIDE_ENOUGH of its text, or the precision is below single.
    """
    if not _rank_two_is_valid(queries, windows, real):
        raise ValueError(f"the rank-two form takes foci of at least {WIDE_ENOUGH} of the text and single precision")
    rows, heads, length, width = queries.shape
    lengths = real.sum(-1).to(queries.dtype)[:, None, None]  # [R, 1, 1]
    places = torch.arange(length, device=keys.device, dtype=queries.dtype) / lengths - 0.5  # [R, 1, L]
    steepness = 2 / (windows.widths / lengths).square()  # [R, H, L]
    slopes = torch.stack([-steepness, 2 * steepness * (windows.centres / lengths - 0.5)], -1)
    powers = torch.stack([places.square(), places], -1).expand(rows, heads, length, 2)
    spare = queries.new_zeros(rows, heads, length, 6)  # kernels are fastest for multiples of eight
    return F.scaled_dot_product_attention(
        torch.cat([queries / math.sqrt(width), slopes, spare], -1),
        torch.cat([keys, powers, spare], -1),
        F.pad(values, (0, 8)),
        attn_mask=None if bool(real.all()) else real[:, None, None],
        scale=1.0,
    )[..., :width]


def _rank_two_is_valid(queries: Tensor, windows: FocusWindows, real: Tensor) -> bool:
    """Return True if the rank-two form is valid: precision at least single, and all foci wide enough."""
    lengths = real.sum(-1)[:, None, None]
    return queries.dtype in (torch.float32, torch.float64) and bool((windows.widths >= WIDE_ENOUGH * lengths).all())


class FocusAttention(PegasusAttention):
    """As PegasusAttention (self-attention), except: every head's scores are biased towards its focus.

    Args:
        config: names the sizes.
        form: plain, flex or rank_two; where it is not valid, plain, which equals the others to 1e-4.
    """

    def __init__(self, config: PreTrainedConfig, form: str = "plain") -> None:
        super().__init__(config.d_model, config.encoder_attention_heads, config=config)
        self.focus = Focus(self.num_heads, self.head_dim)
        self.form = form

    def forward(
        self,
        hidden_states: Tensor,
        key_value_states: Tensor | None = None,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        """Attend from every token to all: [R, L, D] → [R, L, D].

        Args:
            hidden_states: [R, L, D].
            key_value_states: not used.
            past_key_values: not used.
            attention_mask: [R, 1, L or 1, L], True or 0 where a token is real; None: all are real.
            **kwargs: not used.
        """
        rows, length, width = hidden_states.shape
        queries, keys, values = (
            project(hidden_states).view(rows, length, self.num_heads, self.head_dim).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        real = _real_tokens(attention_mask, hidden_states)
        windows = self.focus(queries, real)
        attended = self.attend(queries, keys, values, windows, real)
        return self.out_proj(attended.transpose(1, 2).reshape(rows, length, width)), None

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, windows: FocusWindows, real: Tensor) -> Tensor:
        """Attend in the chosen form where it is valid, else in the plain form."""
        if self.form == "flex" and queries.device.type == "cuda":
            return flex_focus(queries, keys, values, windows, real)
        wide = self.form == "rank_two" and _rank_two_is_valid(queries, windows, real)
        return (rank_two_focus if wide else plain_focus)(queries, keys, values, windows, real)


def _real_tokens(attention_mask: Tensor | None, states: Tensor) -> Tensor:
    """Return a mask [R, L], True where a token is real, from a mask in the library's form."""
    if attention_mask is None:
        return torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    key_mask = attention_mask[:, 0, 0]
    return key_mask if key_mask.dtype == torch.bool else key_mask == 0
