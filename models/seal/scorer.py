"""The scorer: attention pooling → a Transformer layer over the pooled snippets → one score each (SEAL §3.4, §3.5).

Letters: r a few units, L unit tokens, B examples, Q selections (examples, or their segments or beams), U snippets,
J earlier segments, D width.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention

from longsumbench.modeling.nn.masks import at_least_single, attention_mask, never_empty
from longsumbench.modeling.nn.positions import SinusoidalPositions
from longsumbench.modeling.nn.transformer_layer import TransformerLayer, attend


class AttentionPooling(nn.Module):
    """Pool a unit's tokens by softmax(v·tanh(W h)), without biases; snippets and segments share weights (SEAL §3.4)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.projection = nn.Linear(width, width, bias=False)
        self.direction = nn.Linear(width, 1, bias=False)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Pool: [r, L, D], [r, L] → [r, D]."""
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
                self.embed_dim, config.encoder_attention_heads, config.attention_dropout, config=config
            )
            self.encoder_attn_layer_norm = nn.LayerNorm(self.embed_dim)

    def look_back(self, snippets: Tensor, history: Tensor, attention_mask: Tensor) -> Tensor:
        """Cross-attention to earlier segments: [Q, U, D], [Q, J, D] → [Q, U, D]."""
        norm, attention = self.encoder_attn_layer_norm, self.encoder_attn
        return self.residual(snippets, norm, lambda x: attend(attention, x, history, attention_mask))


class Scorer(nn.Module):
    """Score snippets by their content, their context and, with `looks_back`, the segments written so far.

    Args:
        config: names the sizes, `scorer_layers` and `max_documents` (0: one document, without an embedding).
        looks_back: True for SEAL, False for EA.
    """

    def __init__(self, config: PegasusConfig, looks_back: bool) -> None:
        super().__init__()
        self.config, width = config, config.d_model
        self.pooling = AttentionPooling(width)
        self.order = SinusoidalPositions(width)
        self.documents = nn.Embedding(config.max_documents, width) if config.max_documents else None
        self.layers = nn.ModuleList(ScorerLayer(config, looks_back) for _ in range(config.scorer_layers))
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
            snippets = snippets + self.documents(unit_documents.clamp(max=self.documents.num_embeddings - 1))
        return self._layers()[0].relate(snippets, self._allowed(mask, snippets))

    def forward(
        self, snippets: Tensor, mask: Tensor, history: Tensor | None = None, history_mask: Tensor | None = None
    ) -> Tensor:
        """Return scores [Q, U], linear and not bounded; those of absent snippets are undefined.

        Args:
            snippets: [Q, U, D], as `place` returns them.
            mask: [Q, U], True where a snippet is real.
            history: [Q, J, D], one pooled vector per earlier segment, without positions; None in the first segment,
                which skips the cross-attention.
            history_mask: [Q, J], True where a segment is real.
        """
        for index, layer in enumerate(self._layers()):
            if index:
                snippets = layer.relate(snippets, self._allowed(mask, snippets))
            if history is not None and history_mask is not None:
                snippets = layer.look_back(snippets, history, self._allowed(history_mask, snippets))
            snippets = layer.conclude(snippets)
        last = at_least_single(self.layer_norm(snippets))  # in half precision scores would be equal
        with torch.autocast(last.device.type, enabled=False):
            scores = F.linear(last, at_least_single(self.score.weight), at_least_single(self.score.bias))
        return scores.squeeze(-1)

    def _allowed(self, mask: Tensor, states: Tensor) -> Tensor:
        return attention_mask(never_empty(mask), self.config, states.dtype)

    def _layers(self) -> list[ScorerLayer]:
        return cast(list[ScorerLayer], list(self.layers))
