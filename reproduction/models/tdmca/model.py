"""T-DMCA's network (Liu et al. 2018, §4.2): one stack of causal layers over a source, a separator and its summary.

    local attention       (layers 1, 3, 5)  a token attends to the tokens of its block, up to itself
    compressed attention  (layers 2, 4)     a token attends to windows of 3 tokens, each of one key and one value

It is a language model of the whole sequence, without an encoder. It runs in two passes with the same weights. The first
is over the source (`model.encoder`), whose windows are all that the summary sees of it. The second is over the target
(`decode`), so the beam search of all other networks fits. Two passes equal one because attention is causal.

Choice, where the paper is silent:

* Norms are before the sub-layers, with one more after the last, as in tensor2tensor, the authors' code, for these kinds
  of attention.
* The target begins a block and a window, so that nothing of the source depends on the target.
* A token sees complete windows; its own window only if it is the window's last token. It also sees the first token of
  its pass, uncompressed, so that it always sees something. A target token also sees all windows of the source and the
  source's first token.
* An incomplete last window of the source is padded with zero keys and values.
* Keys and values are each compressed by a convolution over all heads, without an activation.
* Positions are sinusoids with consecutive numbers: the separator follows the source's last token.

Letters: B examples, K beams, Q = B·K rows, S source tokens, T target tokens, w tokens of a window, W windows of the
source, n complete windows of the target, H heads, E width of a head, D width, V vocabulary.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import GenerationMixin, PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusPreTrainedModel

from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.nn.device import on_host, to_device
from longsumbench.modeling.nn.encoder_decoder import Decoded, UnitsToText, token_cross_entropy
from longsumbench.modeling.nn.folded_attention import FoldedCache
from longsumbench.modeling.nn.initialization import InitializesModules
from longsumbench.modeling.nn.transformer_layer import (
    SinusoidalPositions,
    TransformerLayer,
    dropout,
)
from longsumbench.modeling.nn.unit_encoder import real_rows
from longsumbench_reproduction.models.tdmca.attention import (
    CompressedAttention,
    CompressedWindows,
    LocalAttention,
)

_PIECE_TOKENS = 512  # source tokens with logits in memory at once: 64 MB for 32,000 entries


@strict
class TdmcaModelConfig(PegasusConfig):
    """As PegasusConfig, with the paper's sizes, plus block and window lengths, source loss and label smoothing.

    `decoder_layers` is the depth of the stack; `encoder_attention_heads` and `encoder_ffn_dim` are its heads and its
    feed-forward's width.
    """

    model_type = "longsumbench-tdmca"

    d_model: int = 512
    encoder_layers: int = 5
    decoder_layers: int = 5
    encoder_attention_heads: int = 8
    decoder_attention_heads: int = 8
    encoder_ffn_dim: int = 2048
    decoder_ffn_dim: int = 2048
    activation_function: str = "relu"
    scale_embedding: bool = True
    block_length: int = 256
    compression: int = 3
    source_loss: bool = True
    label_smoothing: float = 0.0


class Prefix(NamedTuple):
    """An encoded source."""

    # [B, S, D], from which the source's next tokens are predicted. If no loss needs these, it is from an earlier layer:
    # layers that no target needs are skipped.
    last_hidden_state: Tensor
    mask: Tensor  # [B, S], True where a token is real; real tokens come first
    input_ids: Tensor  # [B, S]
    windows: tuple[CompressedWindows | None, ...]  # one per layer; None for a local layer


class TdmcaLayer(TransformerLayer):
    """As TransformerLayer, except: `forward` takes the attention of the pass; layers with an odd index compress."""

    self_attn: Any  # LocalAttention or CompressedAttention

    def __init__(self, config: TdmcaModelConfig, index: int) -> None:
        super().__init__(config, norm_first=True)
        if index % 2:
            self.self_attn = CompressedAttention(config, index, config.compression)
        else:
            self.self_attn = LocalAttention(config, index, config.block_length)

    def remember(self, states: Tensor, mask: Tensor) -> CompressedWindows | None:
        """Return the source's windows in this layer: [B, S, D], [B, S]."""
        windows: CompressedWindows | None = self.self_attn.remember(
            self.self_attn_layer_norm(states), mask
        )
        return windows

    def forward(self, states: Tensor, attend: Callable[[Tensor], Tensor]) -> Tensor:  # type: ignore[override]
        """Run the layer: [R, L, D] → [R, L, D]."""
        return self.conclude(self.residual(states, self.self_attn_layer_norm, attend))


class TdmcaStack(nn.Module):
    """Embeddings and layers, run over a source (`forward`) and over its target (`follow`)."""

    main_input_name = "input_ids"

    def __init__(self, config: TdmcaModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model, config.pad_token_id)
        self.embed_positions = SinusoidalPositions(config.d_model)
        self.layers = nn.ModuleList(
            TdmcaLayer(config, index) for index in range(config.decoder_layers)
        )
        self.layer_norm = nn.LayerNorm(config.d_model)

    def forward(self, input_ids: Tensor, unit_mask: Tensor, **kwargs: Any) -> Prefix:
        """Run over the source.

        The last compressed layer's windows are the last that a target token sees. That layer and later ones run only
        in training with `source_loss`, to predict the source's next tokens.

        Args:
            input_ids: [B, 1, S].
            unit_mask: [B, 1, S], True where a token is real; real tokens come first.
            **kwargs: not used; `generate` passes all its arguments.
        """
        ids, mask = input_ids[:, 0], to_device(on_host(unit_mask)[:, 0], input_ids.device)
        states = self.embed(ids, self.embed_positions.upto(ids.shape[1]))
        windows: list[CompressedWindows | None] = []
        for index, layer in enumerate(self.stacked):
            windows.append(layer.remember(states, mask))
            if index < self.needed:
                states = layer(states, partial(layer.self_attn.over_source, windows=windows[-1]))
        return Prefix(self.layer_norm(states), mask, ids, tuple(windows))

    @property
    def stacked(self) -> list[TdmcaLayer]:
        """The layers, in order."""
        return cast(list[TdmcaLayer], list(self.layers))

    @property
    def needed(self) -> int:
        """The number of layers that must run over the source."""
        if self.training and self.config.source_loss:
            return len(self.layers)
        return max(len(self.layers) // 2 * 2 - 1, 0)  # those before the last compressed one

    def follow(self, prefix: Prefix, ids: Tensor, cache: FoldedCache | None) -> Tensor:
        """Run over the target tokens after those in the cache: [Q, T] → [Q, T, D]."""
        # Numbers go on after the source, whose real length differs.
        past = 0 if cache is None else cache.length
        sizes = prefix.mask.sum(-1).repeat_interleave(len(ids) // len(prefix.mask))  # [Q]
        step = torch.arange(past, past + ids.shape[1], device=ids.device)
        table = self.embed_positions.upto(prefix.mask.shape[1] + past + ids.shape[1])
        states = self.embed(ids, F.embedding(sizes[:, None] + step, table))
        for layer, windows in zip(self.stacked, prefix.windows, strict=True):
            states = layer(
                states, partial(layer.self_attn.over_target, windows=windows, cache=cache)
            )
        if cache is not None:
            cache.length += ids.shape[1]
        output: Tensor = self.layer_norm(states)
        return output

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return scaled embeddings with positions: [R, L], [L, D] or [R, L, D] → [R, L, D]."""
        scale = math.sqrt(self.config.d_model) if self.config.scale_embedding else 1.0
        return dropout(
            self.embed_tokens(ids) * scale + positions, self.config.dropout, self.training
        )


class TdmcaForConditionalGeneration(
    InitializesModules, UnitsToText, PegasusPreTrainedModel, GenerationMixin
):
    """T-DMCA: reads one unit, the whole source; its output is tied to the embeddings.

    With `source_loss`, training also predicts the source's next tokens, as Liu et al. do. Choice: the mean
    cross-entropies of source and target have equal weight. Liu et al. take one mean over all tokens, most of which are
    the source's.
    """

    config_class = TdmcaModelConfig
    config: TdmcaModelConfig
    base_model_prefix = "model"
    _tied_weights_keys: ClassVar[dict[str, str]] = {
        "lm_head.weight": "model.encoder.embed_tokens.weight"
    }

    def __init__(self, config: TdmcaModelConfig) -> None:
        super().__init__(config)
        # Names that the library expects.
        self.model = nn.ModuleDict({"encoder": TdmcaStack(config)})
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.post_init()

    def get_encoder(self, modality: str | None = None) -> nn.Module:
        """Return the stack, which reads the source."""
        stack: nn.Module = self.model.encoder
        return stack

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings of source and target."""
        embeddings: nn.Module = self.model.encoder.embed_tokens
        return embeddings

    def decode(self, reading: Prefix, ids: Tensor, cache: Any = None, **context: Any) -> Decoded:
        """Run the stack over the target tokens after those in the cache: [Q, T]."""
        return Decoded(self.model.encoder.follow(reading, ids, cache))

    def project(self, hidden: Tensor) -> Tensor:
        """Return logits: [..., D] → [..., V]."""
        logits: Tensor = self.lm_head(hidden)
        return logits

    def added_loss(
        self,
        decoded: Decoded,
        reading: Prefix,
        labels: Tensor,
        num_source_tokens: Tensor | int | None = None,
        **context: Any,
    ) -> Tensor | float:
        """Return the mean cross-entropy of the source's next tokens; the separator follows the last token.

        The mean is over `num_source_tokens`, those of the whole optimizer step; None: of this batch.
        """
        if not self.config.source_loss:
            return 0.0
        has_next = F.pad(reading.mask[:, 1:], (0, 1))  # [B, S], True where a source token follows
        next_ids = F.pad(reading.input_ids[:, 1:], (0, 1)).masked_fill(
            ~has_next, self.config.decoder_start_token_id
        )
        # In pieces, so that the logits of a long source are never in memory together.
        states = real_rows(reading.last_hidden_state, reading.mask)  # [N, D]
        targets = real_rows(next_ids[..., None], reading.mask)[:, 0]  # [N]
        total = states.new_zeros((), dtype=torch.float32)
        pieces = torch.split(states, _PIECE_TOKENS), torch.split(targets, _PIECE_TOKENS)
        for some, target in zip(*pieces, strict=True):
            total += checkpoint(self._summed_cross_entropy, some, target, use_reentrant=False)
        return total / (max(len(targets), 1) if num_source_tokens is None else num_source_tokens)

    def _summed_cross_entropy(self, states: Tensor, targets: Tensor) -> Tensor:
        return token_cross_entropy(self.project(states), targets, 1, self.config.label_smoothing)


class SourceCountingCollator(UnitCollator):
    """As UnitCollator, plus `num_source_tokens` for batches with labels: the mean is over an optimizer step."""

    def __call__(self, rows: Any) -> dict[str, Tensor]:
        """Collate a batch and count its source tokens."""
        batch = super().__call__(rows)
        if "labels" in batch:
            batch["num_source_tokens"] = batch["unit_mask"].sum()
        return batch
