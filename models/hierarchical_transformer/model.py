"""The Hierarchical Transformer's network: encode paragraphs separately, relate them, and decode from all their tokens.

    local layers (§3.2.2)   encode every paragraph separately
    global layers (§3.2.3)  pool paragraphs, relate them, and add their contexts to their tokens
    decoder                 attends to all real tokens of all paragraphs, concatenated

With a single unit, no global layers and no paragraph positions, it is the Flat Transformer.

Letters: B examples, P paragraphs, r a few of them, L paragraph tokens, N real tokens of the batch, T target tokens,
D width, V vocabulary.
"""

from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusForConditionalGeneration

from longsumbench.modeling.nn.device import on_host, to_device
from longsumbench.modeling.nn.encoder_decoder import (
    UnitsToText,
    fold_cross_attention,
    use_post_norms,
)
from longsumbench.modeling.nn.initialization import InitializesModules
from longsumbench.modeling.nn.masks import at_least_single
from longsumbench.modeling.nn.transformer_layer import SinusoidalPositions
from longsumbench.modeling.nn.unit_encoder import Memory, UnitEncoder
from longsumbench.models.hierarchical_transformer.global_layer import (
    GlobalLayer,
    PackedParagraphs,
    normalized,
)

_OFFICIAL_EPSILON = 1e-6  # of the released code's norms
_PADDING = 0.15  # approximate share of a piece that may be padding: paragraphs differ in length more than snippets


@strict
class HierarchicalTransformerModelConfig(PegasusConfig):
    """As PegasusConfig, plus the global layers, the kinds of positions, and the label smoothing."""

    model_type = "longsumbench-hierarchical-transformer"

    activation_function: str = "relu"
    global_layers: int = 2
    pooling_heads: int = 8
    paragraph_positions: bool = True
    official: bool = False
    label_smoothing: float = 0.0
    pretrained_encoder: dict[str, Any] | None = None  # arguments of `PretrainedEncoder`


class HierarchicalEncoder(InitializesModules, UnitEncoder):
    """As UnitEncoder, except: global layers follow, and positions include the paragraph's rank (Eqs. 7–10).

    The rank's positions are added to the states of a pretrained encoder, which has positions of tokens.
    """

    padding = _PADDING

    def __init__(self, config: HierarchicalTransformerModelConfig) -> None:
        super().__init__(config, norm_first=config.official)
        self.global_layers = nn.ModuleList(
            GlobalLayer(config, config.pooling_heads, config.official)
            for _ in range(config.global_layers)
        )
        # It follows the global layers.
        self.last_norm = nn.LayerNorm(config.d_model) if config.official else nn.Identity()
        if self.pretrained is None:
            self.layer_norm = nn.Identity()
        joins_ranks = config.paragraph_positions and self.pretrained is None
        width = config.d_model // 2 if joins_ranks else config.d_model
        self.embed_positions = SinusoidalPositions(width, interleaved=True)

    def states(self, input_ids: Tensor, mask: Tensor, places: Tensor) -> Tensor:
        """Return the states of paragraphs: [r, L], [r, L], [r] → [r, L, D]."""
        states = super().states(input_ids, mask, places)
        if self.pretrained is None or not self.config.paragraph_positions:
            return states
        return states + self.ranks(places)[:, None]

    def embed(self, input_ids: Tensor, places: Tensor) -> Tensor:
        """Return scaled embeddings with positions: [r, L], [r] → [r, L, D]."""
        placed: Tensor = self.embed_alone(input_ids) + self.positions(places, input_ids.shape[1])
        return placed

    def positions(self, places: Tensor, length: int) -> Tensor:
        """Return the positions of ranks and of tokens, concatenated (Eq. 9): [r] → [r, L, D], or [L, D]."""
        tokens = self.embed_positions.upto(length)
        if not self.config.paragraph_positions:
            return tokens
        halves = (
            self.ranks(places)[:, None].expand(-1, length, -1),
            tokens.expand(len(places), -1, -1),
        )
        return torch.cat(halves[::-1] if self.config.official else halves, -1)

    def ranks(self, places: Tensor) -> Tensor:
        """Return the positions of ranks: [r] → [r, D/2], or [r, D] with a pretrained encoder."""
        return self.embed_positions.upto(int(on_host(places).max()) + 1)[places]

    def forward(
        self, input_ids: Tensor, unit_mask: Tensor, unit_graph: Tensor | None = None, **kwargs: Any
    ) -> Memory:
        """Encode every real paragraph, and concatenate all states of an example in order.

        Args:
            input_ids: [B, P, L]; the index of a paragraph is its rank, even after absent ones.
            unit_mask: [B, P, L], True where a token is real; a paragraph's real tokens come first.
            unit_graph: [B, P, P], weights of edges between paragraphs; replaces a head of every global layer.
            **kwargs: not used; `generate` passes all its arguments.
        """
        table = self.encode(input_ids, unit_mask)
        states, paragraphs = table.last_hidden_state, PackedParagraphs.of(table)
        graph = None if unit_graph is None else normalized(unit_graph, paragraphs.real)
        for layer in self.global_layers if len(states) else ():
            states = layer(states, paragraphs, graph)
        return table._replace(last_hidden_state=self.last_norm(states)).memory()


class HierarchicalTransformerForConditionalGeneration(UnitsToText, PegasusForConditionalGeneration):
    """As Pegasus, except: the encoder is hierarchical, the positions are interleaved, and the output has a bias.

    Post-norm, as in the paper; `official`: pre-norm, with a norm after each stack. Source, target and output share the
    embeddings, which are scaled by √D at the inputs.
    """

    config_class = HierarchicalTransformerModelConfig
    config: HierarchicalTransformerModelConfig

    def __init__(self, config: HierarchicalTransformerModelConfig) -> None:
        super().__init__(config)
        self.model.encoder = HierarchicalEncoder(config)
        decoder = self.model.decoder
        decoder.embed_positions = SinusoidalPositions(config.d_model, interleaved=True)
        if not config.official:
            use_post_norms(decoder, config)
        fold_cross_attention(decoder, config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)
        for norm in self.modules() if config.official else ():
            if isinstance(norm, nn.LayerNorm):
                norm.eps = _OFFICIAL_EPSILON
        self.post_init()

    def token_loss(
        self, logits: Tensor, labels: Tensor, num_tokens: Tensor | int | None, smoothing: float
    ) -> Tensor:
        """Return the cross-entropy; with `official`, smoothed as in the released code (`smoothed_as_released`)."""
        if not (self.config.official and smoothing):
            return super().token_loss(logits, labels, num_tokens, smoothing)
        return smoothed_as_released(logits, labels, num_tokens, smoothing, self.config.pad_token_id)


def smoothed_as_released(
    logits: Tensor, labels: Tensor, num_tokens: Tensor | int | None, smoothing: float, pad: int
) -> Tensor:
    """Return the divergence from smoothed targets, in nats per token, as in the released code: KL(q ‖ p).

    q is 1 - ε for the target, 0 for the padding, and ε / (V - 2) for any other token. Logits are [B, T, V], labels [B,
    T], -100 where there is no target token. Without `num_tokens`, the real tokens of the labels divide the sum.
    """
    rows = to_device(on_host(labels).flatten().ne(-100).nonzero()[:, 0], logits.device)  # [n]
    logs = at_least_single(logits.flatten(0, 1)[rows]).log_softmax(-1)  # [n, V]
    share_of_others = smoothing / (logits.shape[-1] - 2)
    target_logs = logs.gather(1, labels.flatten()[rows, None])[:, 0]
    other_logs = logs.sum(-1) - target_logs - logs[:, pad]
    entropy = (1 - smoothing) * torch.tensor(1 - smoothing).log()
    entropy = entropy + smoothing * torch.tensor(share_of_others).log()
    expected_logs = (1 - smoothing) * target_logs + share_of_others * other_logs
    sums = len(logs) * entropy - expected_logs.sum()
    return sums / (max(len(rows), 1) if num_tokens is None else num_tokens)
