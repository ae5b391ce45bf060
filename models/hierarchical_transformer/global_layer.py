"""The global layer: pool every paragraph to one vector per head, relate the vectors, and add contexts to the tokens.

Letters: B examples, P paragraphs of an example, R real paragraphs of the batch, r a few of them, L paragraph tokens,
N real tokens of the batch, H heads, D width, E = D/H width of a head.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PegasusConfig

from longsumbench.modeling.nn.device import on_host, to_device
from longsumbench.modeling.nn.initialization import OwnInitialization
from longsumbench.modeling.nn.masks import at_least_single, never_empty
from longsumbench.modeling.nn.transformer_layer import TransformerLayer, dropout
from longsumbench.modeling.nn.unit_encoder import TokenTable, piece_tokens, pieces

_PADDING_SHARE = 0.5  # approximate share of a piece that may be padding: pooling is cheap


class Piece(NamedTuple):
    """A few paragraphs of similar length."""

    indices: Tensor  # [r], indices of the real paragraphs
    rows: Tensor  # [r, L], the rows of their tokens among all N
    mask: Tensor  # [r, L], True where a token is real


class PackedParagraphs(NamedTuple):
    """The real paragraphs of a batch, and the rows of their concatenated tokens."""

    real: Tensor  # [B, P], True where a paragraph is real
    owners: Tensor  # [N], the paragraph of each token: 0 … R - 1, in the order of `real`
    pieces: tuple[Piece, ...]  # all paragraphs, grouped by length

    @classmethod
    def of(cls, table: TokenTable) -> "PackedParagraphs":
        """Return the paragraphs of a table of encoded tokens."""
        device, starts, lengths = table.starts.device, on_host(table.starts), on_host(table.lengths)
        real = lengths > 0
        # From here on, on the CPU.
        starts, lengths = starts[real], lengths[real]  # [R]
        in_table = starts.argsort()
        order = lengths.argsort(descending=True, stable=True)
        grouped = []
        for some, longest in pieces(lengths[order].tolist(), _PADDING_SHARE, piece_tokens(device)):
            indices = order[some]
            offsets = torch.arange(longest)
            mask = offsets < lengths[indices][:, None]
            rows = (starts[indices][:, None] + offsets).where(mask, 0)
            grouped.append(Piece(*(to_device(part, device) for part in (indices, rows, mask))))
        owners = in_table.repeat_interleave(lengths[in_table])
        return cls(to_device(real, device), to_device(owners, device), tuple(grouped))

    @property
    def places(self) -> Tensor:
        """[R], the indices of the real paragraphs among all B · P."""
        return to_device(on_host(self.real).flatten().nonzero()[:, 0], self.real.device)


class PerHead(OwnInitialization):
    """One matrix per head (H heads of width E): [..., H, E] → [..., H, E]."""

    def __init__(self, num_heads: int, head_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_heads, head_width, head_width))
        self.reset_parameters()

    def forward(self, heads: Tensor) -> Tensor:
        """Multiply."""
        return torch.einsum("...he,hef->...hf", heads, self.weight)


class Pooling(nn.Module):
    """Pool a paragraph's tokens, with separate weights per head (Hierarchical Transformer, Eqs. 13–16).

    Eq. 16 prints the scores as weights; the normalized weights of Eq. 15 are meant. The values are pooled before they
    are projected: this gives the same sum, and saves a product of every token with a matrix. `official`: as the
    released code, with biases and without W_c.
    """

    def __init__(self, width: int, num_heads: int, official: bool) -> None:
        super().__init__()
        self.scores = nn.Linear(width, num_heads, bias=official)  # W_a of all heads
        self.values = nn.Linear(width, width, bias=official)  # W_b of all heads
        self.outputs = nn.Identity() if official else PerHead(num_heads, width // num_heads)  # W_c
        self.norm = nn.LayerNorm(width // num_heads)

    def forward(self, states: Tensor, paragraphs: PackedParagraphs) -> Tensor:
        """Pool: [N, D] → [R, H, E]."""
        scores = self.scores(states)  # [N, H]
        num, width, heads = int(on_host(paragraphs.real).sum()), states.shape[1], scores.shape[1]
        # Paragraphs of similar length are pooled together, to reduce padding.
        sums = states.new_zeros(num, heads, width)
        for indices, rows, mask in paragraphs.pieces:
            tokens = states.index_select(0, rows.flatten()).view(*rows.shape, width)  # [r, L, D]
            pooled = self.weights(scores, rows, mask).to(tokens.dtype) @ tokens  # [r, H, D]
            sums = sums.index_copy(0, indices, pooled.to(sums.dtype))
        # The weights sum to one, so the sums are projected instead of the tokens.
        weight = self.values.weight.view(heads, -1, width)  # [H, E, D]
        values = torch.einsum("rhd,hed->rhe", sums, weight.to(sums.dtype))
        if self.values.bias is not None:
            values = values + self.values.bias.view(heads, -1)
        normalized: Tensor = self.norm(self.outputs(values))
        return normalized

    def weights(self, scores: Tensor, rows: Tensor, mask: Tensor) -> Tensor:
        """Normalize the scores over each paragraph's tokens (Eq. 15): [N, H], [r, L], [r, L] → [r, H, L]."""
        token_scores = scores.index_select(0, rows.flatten()).view(*rows.shape, -1)  # [r, L, H]
        return (
            at_least_single(token_scores)
            .masked_fill(~mask[..., None], float("-inf"))
            .softmax(1)
            .transpose(1, 2)
        )


class ParagraphAttention(nn.Module):
    """Pool the paragraphs, relate them, and return a context for each (Hierarchical Transformer, Eqs. 13–21, 24).

    `official`: as the released code, with biases, without W_c, one projection for all heads.
    """

    def __init__(self, width: int, num_heads: int, official: bool) -> None:
        super().__init__()
        head_width = width // num_heads

        def projection() -> nn.Module:
            return nn.Linear(head_width, head_width) if official else PerHead(num_heads, head_width)

        self.pooling = Pooling(width, num_heads, official)
        self.query, self.key, self.value = projection(), projection(), projection()
        self.out_proj = nn.Linear(width, width, bias=official)

    def forward(
        self, states: Tensor, paragraphs: PackedParagraphs, graph: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return each paragraph's context (Eq. 21), and the attention weights.

        Args:
            states: [N, D].
            paragraphs: the paragraphs of the N tokens.
            graph: [B, P, P], rows that sum to one (see `normalized`), used as the weights of the first head.

        Returns:
            [R, D], and the weights of the paragraphs for each other, [B, H, P, P].
        """
        heads, real, places = self.pooling(states, paragraphs), paragraphs.real, paragraphs.places
        queries, keys, values = (
            _spread_out(part(heads), real, places) for part in (self.query, self.key, self.value)
        )
        # An example without paragraphs attends to zeros.
        weights = self.weights(queries, keys, never_empty(real))
        if graph is not None:
            weights = torch.cat([graph.to(weights.dtype)[:, None], weights[:, 1:]], 1)
        contexts = (
            (weights.to(values.dtype) @ values).transpose(1, 2).flatten(2).flatten(0, 1)
        )  # [B · P, D]
        return self.out_proj(contexts.index_select(0, places)), weights

    def weights(self, queries: Tensor, keys: Tensor, real: Tensor) -> Tensor:
        """Return the paragraphs' weights for each other (Eq. 20): [B, H, P, E], …, [B, P] → [B, H, P, P].

        Scores are divided by √E, as in attention; Eq. 20 prints no scaling.
        """
        scores = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
        weights: Tensor = (
            at_least_single(scores).masked_fill(~real[:, None, None], float("-inf")).softmax(-1)
        )
        return weights


def _spread_out(heads: Tensor, real: Tensor, places: Tensor) -> Tensor:
    """Spread real paragraphs over the examples, zeros for absent ones: [R, H, E], [B, P], [R] → [B, H, P, E]."""
    dense = heads.new_zeros(real.numel(), *heads.shape[1:]).index_copy(0, places, heads)
    return dense.view(*real.shape, *heads.shape[1:]).transpose(1, 2)


def normalized(graph: Tensor, real: Tensor) -> Tensor:
    """Divide the rows of a graph by their sums over the real paragraphs (Hierarchical Transformer, Eq. 24).

    A paragraph without edges attends to itself.

    Args:
        graph: [B, P, P], weights of the edges, none negative.
        real: [B, P], True where a paragraph is real.
    """
    edges = graph * real[:, None]
    sums = edges.sum(-1, keepdim=True)
    alone = torch.eye(real.shape[1], dtype=graph.dtype, device=graph.device)
    return torch.where(sums > 0, edges / sums.where(sums > 0, 1), alone)


class GlobalLayer(TransformerLayer):
    """As TransformerLayer, except: instead of self-attention, a token gets its paragraph's context (Eqs. 22–23).

    The tokens are concatenated, without padding. The output of the feed-forward is added to the token without its
    context, as Eq. 23 prints; in the released code (`official`), to the token with it.
    """

    def __init__(self, config: PegasusConfig, num_heads: int, official: bool) -> None:
        super().__init__(config, norm_first=official)
        self.self_attn = ParagraphAttention(config.d_model, num_heads, official)
        if not official:
            self.self_attn_layer_norm = nn.Identity()

    def forward(  # type: ignore[override]  # its tokens are packed
        self, states: Tensor, paragraphs: PackedParagraphs, graph: Tensor | None
    ) -> Tensor:
        """Run the layer: [N, D] → [N, D]; `graph` as `ParagraphAttention` takes it."""
        context, _ = self.self_attn(self.self_attn_layer_norm(states), paragraphs, graph)  # [R, D]
        context = dropout(context, self.dropout, self.training)
        informed = states + context.index_select(0, paragraphs.owners).to(states.dtype)
        if self.norm_first:
            return self.conclude(informed)
        changed = dropout(self.feed_forward(informed), self.dropout, self.training)
        output: Tensor = self.final_layer_norm(changed + states)
        return output
