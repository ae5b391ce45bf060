"""The scorer: attention pooling → one Transformer layer over the pooled snippets → a score each (SEAL §3.4, §3.5).

Letters: r a few units, L unit tokens, B examples, Q selections (examples, or their segments or beams), U snippets,
J earlier segments, D width.
"""

from collections.abc import Callable
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention, PegasusEncoderLayer

from longsumbench.nn.masks import attended, attention_mask
from longsumbench.nn.positions import SinusoidalPositions


class AttentionPooling(nn.Module):
    """Softmax of v·tanh(W h) over a unit's tokens, without biases; the same for snippets and segments (SEAL §3.4)."""

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


class ScorerLayer(PegasusEncoderLayer):
    """As PegasusEncoderLayer, except: its sub-layers can be called one by one, and it may look back.

    Args:
        config: names the sizes, and where the norms stand.
        looks_back: whether it has a cross-attention to earlier segments (SEAL §3.5).
    """

    def __init__(self, config: PegasusConfig, looks_back: bool) -> None:
        super().__init__(config)
        self.norm_first = config.norm == "pre"
        if looks_back:
            self.encoder_attn = PegasusAttention(
                self.embed_dim, config.encoder_attention_heads, config.attention_dropout, config=config
            )
            self.encoder_attn_layer_norm = nn.LayerNorm(self.embed_dim)

    def relate(self, snippets: Tensor, mask: Tensor) -> Tensor:
        """Self-attention among the snippets: [Q, U, D], [Q, U] → [Q, U, D]."""
        attend = partial(_attend, self.self_attn, None, mask)
        return self._residual(snippets, self.self_attn_layer_norm, attend)

    def look_back(self, snippets: Tensor, history: Tensor, mask: Tensor) -> Tensor:
        """Cross-attention to earlier segments: [Q, U, D], [Q, J, D], [Q, J] → [Q, U, D]."""
        attend = partial(_attend, self.encoder_attn, history, mask)
        return self._residual(snippets, self.encoder_attn_layer_norm, attend)

    def conclude(self, snippets: Tensor) -> Tensor:
        """The feed-forward: [Q, U, D] → [Q, U, D]."""
        return self._residual(snippets, self.final_layer_norm, self._feed_forward)

    def _feed_forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.fc2(self.activation_fn(self.fc1(states)))
        return output

    def _residual(self, states: Tensor, norm: nn.Module, function: Callable[[Tensor], Tensor]) -> Tensor:
        changed = function(norm(states) if self.norm_first else states)
        states = states + F.dropout(changed, self.dropout, self.training)
        return states if self.norm_first else norm(states)


def _attend(attention: PegasusAttention, keys: Tensor | None, mask: Tensor, states: Tensor) -> Tensor:
    """Attend from every state to the keys (None: to the states) where the mask is True."""
    allowed = attention_mask(attended(mask), attention.config, states.dtype)
    output: Tensor = attention(states, keys, attention_mask=allowed)[0]
    return output


class Scorer(nn.Module):
    """Scores snippets by what stands in them and around them and, looking back, by what is written already.

    Args:
        config: names the sizes, `scorer_layers` and `max_documents` (0: one document, which has no embedding).
        looks_back: SEAL's; without it, EA's.
    """

    def __init__(self, config: PegasusConfig, looks_back: bool) -> None:
        super().__init__()
        width = config.d_model
        self.pooling = AttentionPooling(width)
        self.order = SinusoidalPositions(width)
        self.documents = nn.Embedding(config.max_documents, width) if config.max_documents else None
        self.layers = nn.ModuleList(ScorerLayer(config, looks_back) for _ in range(config.scorer_layers))
        self.layer_norm = nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()
        self.score = nn.Linear(width, 1)

    def place(self, pooled: Tensor, unit_documents: Tensor, mask: Tensor) -> Tensor:
        """Tell pooled snippets their order and document, and each other.

        This is all of the scorer that does not depend on what is written: the first layer's self-attention included,
        it is done once a document.

        Args:
            pooled: [B, U, D].
            unit_documents: [B, U], the index of a snippet's document; those beyond the last embedding share it.
            mask: [B, U], True where a snippet is real.
        """
        snippets = pooled + self.order.upto(pooled.shape[1])
        if self.documents is not None:
            snippets = snippets + self.documents(unit_documents.clamp(max=self.documents.num_embeddings - 1))
        return self._layers()[0].relate(snippets, mask)

    def forward(
        self, snippets: Tensor, mask: Tensor, history: Tensor | None = None, history_mask: Tensor | None = None
    ) -> Tensor:
        """Score.

        Args:
            snippets: [Q, U, D], as `place` returns them.
            mask: [Q, U], True where a snippet is real.
            history: [Q, J, D], one pooled vector for each earlier segment, without positions; None for the first
                segment, whose cross-attention is skipped whole.
            history_mask: [Q, J], True where there is one.

        Returns:
            [Q, U]: linear, not bounded; what stands at absent snippets means nothing.
        """
        for index, layer in enumerate(self._layers()):
            if index:
                snippets = layer.relate(snippets, mask)
            if history is not None and history_mask is not None:
                snippets = layer.look_back(snippets, history, history_mask)
            snippets = layer.conclude(snippets)
        last = self.layer_norm(snippets).float()  # under autocast, too: in half precision scores would be equal
        with torch.autocast(last.device.type, enabled=False):
            scores = F.linear(last, self.score.weight.float(), self.score.bias.float())
        return scores.squeeze(-1)

    def _layers(self) -> list[ScorerLayer]:
        return cast(list[ScorerLayer], list(self.layers))
