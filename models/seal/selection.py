"""The encoders of CA, EA and SEAL; the scorer and the gate, which select what the decoder attends to.

    Compressor (§3.3)    groups of snippets → a few vectors of each
    Extractor (§3.4)     snippets alone, pooled → a Transformer layer over the pooled snippets → one score each
    select (§3.4)        the tokens of the snippets with the best scores

Letters: r a few units, L unit tokens, B examples, Q selections (examples, or their segments or beams), U snippets,
J earlier segments, N real tokens of the batch, S memory tokens, D width.
"""

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention

from longsumbench.modeling.nn.device import on_host, to_device
from longsumbench.modeling.nn.masks import at_least_single, attention_mask, never_empty
from longsumbench.modeling.nn.transformer_layer import SinusoidalPositions, TransformerLayer, attend
from longsumbench.modeling.nn.unit_encoder import TokenTable, UnitEncoder, spread_units


class AttentionPooling(nn.Module):
    """Pool a unit's tokens by softmax(v·tanh(W h)), without biases; snippets and segments share weights (SEAL §3.4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.projection = nn.Linear(width, width, bias=False)
        self.direction = nn.Linear(width, 1, bias=False)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Pool: [r, L, D], [r, L] → [r, D]."""
        with torch.autocast(states.device.type, enabled=False):
            states = states.to(self.projection.weight.dtype)
            energies = self.direction(torch.tanh(self.projection(states))).squeeze(-1)  # [r, L]
            weights = energies.masked_fill(~mask, torch.finfo(energies.dtype).min).softmax(-1)
            pooled: Tensor = (weights.unsqueeze(1) @ states).squeeze(1)
        return pooled


class ScorerLayer(TransformerLayer):
    """As TransformerLayer, except: with `looks_back` it has a cross-attention to earlier segments (SEAL §3.5)."""

    def __init__(self, config: PegasusConfig, looks_back: bool) -> None:
        super().__init__(config, config.norm == "pre")
        if looks_back:
            self.encoder_attn = PegasusAttention(
                self.embed_dim,
                config.encoder_attention_heads,
                config.attention_dropout,
                config=config,
            )
            self.encoder_attn_layer_norm = nn.LayerNorm(self.embed_dim)

    def look_back(self, snippets: Tensor, history: Tensor, attention_mask: Tensor) -> Tensor:
        """Cross-attention to earlier segments: [Q, U, D], [Q, J, D] → [Q, U, D]."""
        norm, attention = self.encoder_attn_layer_norm, self.encoder_attn
        return self.residual(
            snippets, norm, lambda x: attend(attention, x, history, attention_mask)
        )


class Scorer(nn.Module):
    """Score snippets by their content, their context and, with `looks_back`, the segments written so far.

    SEAL looks back at earlier segments, EA does not. Without `max_documents` there is no embedding of documents.
    """

    def __init__(self, config: PegasusConfig, looks_back: bool) -> None:
        super().__init__()
        self.config, width = config, config.d_model
        self.pooling = AttentionPooling(width)
        self.order = SinusoidalPositions(width)
        self.documents = nn.Embedding(config.max_documents, width) if config.max_documents else None
        self.layers = nn.ModuleList(
            ScorerLayer(config, looks_back) for _ in range(config.scorer_layers)
        )
        self.layer_norm = nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()
        self.score = nn.Linear(width, 1)

    def place(self, pooled: Tensor, unit_documents: Tensor, mask: Tensor) -> Tensor:
        """Add order and document embeddings to pooled snippets, and relate the snippets: [B, U, D] → [B, U, D].

        This part of the scorer does not depend on the output. It includes the first layer's self-attention, and is done
        once per example.

        Args:
            pooled: [B, U, D].
            unit_documents: [B, U], the index of a snippet's document; indices beyond the last embedding share it.
            mask: [B, U], True where a snippet is real.
        """
        snippets = pooled + self.order.upto(pooled.shape[1])
        if self.documents is not None:
            snippets = snippets + self.documents(
                unit_documents.clamp(max=self.documents.num_embeddings - 1)
            )
        with torch.autocast(pooled.device.type, enabled=False):
            return self._layers()[0].relate(snippets, self._allowed(mask, snippets))

    def forward(
        self,
        snippets: Tensor,
        mask: Tensor,
        history: Tensor | None = None,
        history_mask: Tensor | None = None,
    ) -> Tensor:
        """Return scores [Q, U], linear and not bounded; those of absent snippets are undefined.

        Args:
            snippets: [Q, U, D], as `place` returns them.
            mask: [Q, U], True where a snippet is real.
            history: [Q, J, D], one pooled vector per earlier segment, without positions; None in the first segment,
                which skips the cross-attention.
            history_mask: [Q, J], True where a segment is real.
        """
        with torch.autocast(snippets.device.type, enabled=False):
            for index, layer in enumerate(self._layers()):
                if index:
                    snippets = layer.relate(snippets, self._allowed(mask, snippets))
                if history is not None and history_mask is not None:
                    snippets = layer.look_back(
                        snippets, history, self._allowed(history_mask, snippets)
                    )
                snippets = layer.conclude(snippets)
            last = at_least_single(
                self.layer_norm(snippets)
            )  # in half precision scores would be equal
            scores = F.linear(
                last, at_least_single(self.score.weight), at_least_single(self.score.bias)
            )
        return scores.squeeze(-1)

    def _allowed(self, mask: Tensor, states: Tensor) -> Tensor:
        return attention_mask(never_empty(mask), self.config, states.dtype)

    def _layers(self) -> list[ScorerLayer]:
        return cast(list[ScorerLayer], list(self.layers))


class Compressor(UnitEncoder):
    """As UnitEncoder, except: it keeps only `compressed_length` vectors of every group of snippets (SEAL §3.3).

    As many learned vectors precede the group's tokens, without positions. The vectors and the tokens attend to each
    other; the final states of the vectors are the group's memory.
    """

    def __init__(self, config: PegasusConfig) -> None:
        super().__init__(config, config.norm == "pre")
        self.vectors = nn.Embedding(config.compressed_length, config.d_model)

    def read(
        self, input_ids: Tensor, mask: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compress a few groups: [r, L] → [r · compressed_length, D]."""
        count = self.vectors.num_embeddings
        learned = (self.vectors.weight * self.embed_scale).expand(len(input_ids), -1, -1)
        states = torch.cat([learned, self.embed(input_ids, places)], 1)  # [r, c + L, D]
        states = self.run_layers(
            states, to_device(F.pad(on_host(mask), (count, 0), value=True), mask.device)
        )
        vectors, sizes = states[:, :count].flatten(0, 1), torch.full((len(mask),), count)
        return vectors, sizes, self.pool(states[:, count:], mask)


class Extractor(UnitEncoder):
    """As UnitEncoder, except: it has the scorer and pools every snippet; decoding selects the snippets."""

    def __init__(self, config: PegasusConfig, looks_back: bool = False) -> None:
        super().__init__(config, config.norm == "pre")
        self.scorer = Scorer(config, looks_back)

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """Pool a unit: [r, L, D] → [r, D]."""
        pooled: Tensor = self.scorer.pooling(states, mask)
        return pooled

    def forward(  # type: ignore[override]  # it selects no memory yet
        self, input_ids: Tensor, unit_mask: Tensor, unit_documents: Tensor, **kwargs: Any
    ) -> TokenTable:
        """Encode and pool every snippet, and relate the snippets in the scorer.

        In the output, `pooled` [B, U, D] is that of `Scorer.place`.

        Args:
            input_ids: [B, U, L].
            unit_mask: [B, U, L], True where a token is real.
            unit_documents: [B, U], the index of a snippet's document.
            **kwargs: not used; `generate` passes all its arguments.
        """
        table = self.encode(input_ids, unit_mask)
        return table._replace(pooled=self.scorer.place(table.pooled, unit_documents, table.real))


class GateSelection(NamedTuple):
    """The tokens that the gate selected."""

    positions: Tensor  # [Q, S], rows of the table of token states, best snippet first; 0 where the mask is False
    mask: Tensor  # [Q, S], True where a token is real
    counts: Tensor  # [Q, U], how many of a snippet's tokens are selected


def select(
    scores: Tensor,
    starts: Tensor,
    lengths: Tensor,
    extractive_length: int,
    longest: int | None = None,
) -> GateSelection:
    """Sort snippets by score and concatenate their real tokens up to `extractive_length` tokens (SEAL §3.4).

    Of equal scores, the earlier snippet comes first. The snippet that crosses the limit is cut. The scores get no
    gradient: only their order counts.

    Args:
        scores: [Q, U]; those of absent snippets are ignored.
        starts: [Q, U], the row of a snippet's first token in the table of states.
        lengths: [Q, U], the number of a snippet's tokens; 0 for an absent snippet.
        extractive_length: the most tokens to select.
        longest: the largest sum of a row of `lengths`; None: it is computed, for which a GPU may have to wait.
    """
    order = (
        scores.detach()
        .masked_fill(lengths == 0, -torch.inf)
        .argsort(dim=-1, descending=True, stable=True)
    )
    sorted_lengths = lengths.gather(1, order)
    tokens_above = sorted_lengths.cumsum(-1) - sorted_lengths  # [Q, U], in score order
    counts = (extractive_length - tokens_above).clamp(min=0).minimum(sorted_lengths)
    tokens = spread_units(
        starts.gather(1, order),
        counts,
        None if longest is None else min(extractive_length, longest),
    )
    return GateSelection(
        tokens.positions, tokens.mask, torch.zeros_like(lengths).scatter(1, order, counts)
    )
