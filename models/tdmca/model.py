"""T-DMCA's network (Liu et al. 2018, §4.2): one stack of causal layers over a source, a separator and its summary.

    local attention       (layers 1, 3, 5)  a token attends to the tokens of its block, up to itself
    compressed attention  (layers 2, 4)     a token attends to windows of 3 tokens, each of one key and one value

It is a language model of the whole sequence, without an encoder. It runs in two passes with the same weights: over the
source (`model.encoder`), whose windows are what the summary sees of it, and over the target (`decode`), so that the
search that writes is the one of all other networks. Only causal attention makes that the same as one pass.

Choice, where the paper is silent:

* Norms stand before the sub-layers, with one more behind the last, as tensor2tensor, its authors' code, has them for
  these kinds of attention.
* The target begins a block and a window, so that nothing of the source depends on the target.
* A token sees the windows that are complete, its own if it is the last one there, and besides, so that it always sees
  something, the first token of its pass uncompressed. A target token sees all windows of the source, too, and the
  source's first token.
* A last window of the source that is not complete is filled up with zero keys and values.
* Keys and values are compressed by a convolution each, over all heads, without an activation.
* Positions are sinusoids, and numbered through: the separator follows the source's last token.

Letters: B examples, K beams, Q = B·K rows, S source tokens, T target tokens, w tokens of a window, W windows of the
source, n complete windows of the target, H heads, E width of a head, D width, V vocabulary.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import GenerationMixin, PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusPreTrainedModel

from longsumbench.errors import UsageError
from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.nn.dropout import dropout
from longsumbench.modeling.nn.encoder_decoder import Decoded, UnitsToText
from longsumbench.modeling.nn.initialization import StartsParts
from longsumbench.modeling.nn.losses import token_cross_entropy
from longsumbench.modeling.nn.penalties import Penalties
from longsumbench.modeling.nn.positions import SinusoidalPositions
from longsumbench.modeling.nn.transformer_layer import TransformerLayer
from longsumbench.models.tdmca.attention import CompressedAttention, CompressedWindows, LocalAttention, Past, TdmcaCache

_PIECE_TOKENS = 512  # source tokens whose logits are there at once: 64 MB of them, at 32,000 entries


@strict
class TdmcaModelConfig(PegasusConfig):
    """As PegasusConfig, with the paper's sizes, plus blocks, windows, the source's loss, and the label smoothing.

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
    """A source that was read.

    Attributes:
        last_hidden_state: [B, S, D], from which the source's next tokens are predicted; where no loss asks for these,
            of an earlier layer: what no target needs is not computed.
        mask: [B, S], True where a token is real; real ones come first.
        input_ids: [B, S].
        windows: of each layer; None of a local one.
    """

    last_hidden_state: Tensor
    mask: Tensor
    input_ids: Tensor
    windows: tuple[CompressedWindows | None, ...]


class TdmcaLayer(TransformerLayer):
    """As TransformerLayer, except: what attends is handed over, for it differs from pass to pass.

    Args:
        config: names the sizes.
        index: from 0; odd ones compress.
    """

    self_attn: Any  # LocalAttention or CompressedAttention

    def __init__(self, config: TdmcaModelConfig, index: int) -> None:
        super().__init__(config, norm_first=True)
        self.self_attn = (
            CompressedAttention(config, index, config.compression)
            if index % 2
            else LocalAttention(config, index, config.block_length)
        )

    def remember(self, states: Tensor, mask: Tensor) -> CompressedWindows | None:
        """Return what the layer's attention knows of the source: [B, S, D], [B, S]."""
        windows: CompressedWindows | None = self.self_attn.remember(self.self_attn_layer_norm(states), mask)
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
        self.layers = nn.ModuleList(TdmcaLayer(config, index) for index in range(config.decoder_layers))
        self.layer_norm = nn.LayerNorm(config.d_model)

    def forward(self, input_ids: Tensor, unit_mask: Tensor, **kwargs: Any) -> Prefix:
        """Run over the source.

        From the last compressed layer on, whose windows are the last that a target token sees, layers run only in
        training with `source_loss`, where the source's next tokens are predicted.

        Args:
            input_ids: [B, 1, S].
            unit_mask: [B, 1, S], True where a token is real; real tokens come first.
            **kwargs: not used; `generate` hands over all it was given.

        Raises:
            ValueError: an example has several units.
        """
        if input_ids.shape[1] != 1:
            raise ValueError(f"T-DMCA reads one unit an example, not {input_ids.shape[1]}")
        ids, mask = input_ids[:, 0], unit_mask[:, 0]
        states = self.embed(ids, self.embed_positions.upto(ids.shape[1]))
        windows: list[CompressedWindows | None] = []
        for index, layer in enumerate(self.stacked):
            windows.append(layer.remember(states, mask))
            if index < self.needed:
                states = layer(states, partial(layer.self_attn.over_source, windows=windows[-1]))
        return Prefix(self.layer_norm(states), mask, ids, tuple(windows))

    @property
    def stacked(self) -> list[TdmcaLayer]:
        """The layers, in their order."""
        return cast(list[TdmcaLayer], list(self.layers))

    @property
    def needed(self) -> int:
        """How many layers have to run over the source."""
        if self.training and self.config.source_loss:
            return len(self.layers)
        return max(len(self.layers) // 2 * 2 - 1, 0)  # those before the last compressed one

    def follow(self, prefix: Prefix, ids: Tensor, cache: TdmcaCache | None) -> Tensor:
        """Run over target tokens, which follow those in the cache: [Q, T] → [Q, T, D]."""
        past = Past(0 if cache is None else cache.get_seq_length(), cache)
        sizes = prefix.mask.sum(-1).repeat_interleave(len(ids) // len(prefix.mask))  # [Q]
        step = torch.arange(past.length, past.length + ids.shape[1], device=ids.device)
        table = self.embed_positions.upto(prefix.mask.shape[1] + past.length + ids.shape[1])
        states = self.embed(ids, F.embedding(sizes[:, None] + step, table))
        for layer, windows in zip(self.stacked, prefix.windows, strict=True):
            states = layer(states, partial(layer.self_attn.over_target, windows=windows, past=past))
        output: Tensor = self.layer_norm(states)
        return output

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return scaled embeddings with positions: [R, L], [L, D] or [R, L, D] → [R, L, D]."""
        scale = math.sqrt(self.config.d_model) if self.config.scale_embedding else 1.0
        return dropout(self.embed_tokens(ids) * scale + positions, self.config.dropout, self.training)


class TdmcaForConditionalGeneration(StartsParts, UnitsToText, PegasusPreTrainedModel, GenerationMixin):
    """T-DMCA: it reads one unit, the whole source, and its output shares the embeddings' matrix.

    With `source_loss` training predicts the source's next tokens, too, as Liu et al. do. Choice: its mean
    cross-entropy weighs as much as the target's; theirs is one mean over all tokens, most of which are the source's.
    """

    config_class = TdmcaModelConfig
    config: TdmcaModelConfig
    cache_class = TdmcaCache
    base_model_prefix = "model"
    _tied_weights_keys: ClassVar[dict[str, str]] = {"lm_head.weight": "model.encoder.embed_tokens.weight"}

    def __init__(self, config: TdmcaModelConfig) -> None:
        super().__init__(config)
        self.model = nn.ModuleDict({"encoder": TdmcaStack(config)})  # by the names that the library looks for
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.post_init()

    def get_encoder(self, modality: str | None = None) -> nn.Module:
        """Return what reads the source."""
        stack: nn.Module = self.model.encoder
        return stack

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings of source and target."""
        embeddings: nn.Module = self.model.encoder.embed_tokens
        return embeddings

    def decode(self, reading: Prefix, ids: Tensor, cache: Any = None, **context: Any) -> Decoded:
        """Run the stack over target tokens, which follow those in the cache: [Q, T]."""
        return Decoded(self.model.encoder.follow(reading, ids, cache))

    def project(self, hidden: Tensor) -> Tensor:
        """Return logits: [..., D] → [..., V]."""
        logits: Tensor = self.lm_head(hidden)
        return logits

    def added_loss(
        self,
        decoded: Any,
        reading: Prefix,
        labels: Tensor,
        num_source_tokens: Tensor | int | None = None,
        **context: Any,
    ) -> Tensor | float:
        """Return the mean cross-entropy of what follows the source's tokens, the separator behind the last.

        Args:
            decoded: not used.
            reading: the source.
            labels: not used.
            num_source_tokens: of the whole optimizer step; None: of this batch.
            **context: not used.
        """
        if not self.config.source_loss:
            return 0.0
        goes_on = F.pad(reading.mask[:, 1:], (0, 1))  # [B, S], True where a source token follows
        following = F.pad(reading.input_ids[:, 1:], (0, 1)).masked_fill(~goes_on, self.config.decoder_start_token_id)
        states, targets = reading.last_hidden_state[reading.mask], following[reading.mask]  # [N, D], [N]
        total = states.new_zeros((), dtype=torch.float32)
        for some, wanted in zip(torch.split(states, _PIECE_TOKENS), torch.split(targets, _PIECE_TOKENS), strict=True):
            total = total + checkpoint(self._summed_cross_entropy, some, wanted, use_reentrant=False)
        return total / (max(len(targets), 1) if num_source_tokens is None else num_source_tokens)

    def _summed_cross_entropy(self, states: Tensor, targets: Tensor) -> Tensor:
        return token_cross_entropy(self.project(states), targets, 1, self.config.label_smoothing)

    @contextmanager
    def ranked_by(self, penalties: Penalties) -> Iterator[None]:
        """Let `generate` rank by penalties as long as the context lasts.

        Raises:
            UsageError: by coverage, of which there is none without attention over source tokens.
        """
        if penalties.covers:
            problem = "T-DMCA attends to windows of the source, not to its tokens"
            raise UsageError(f"decode.coverage={penalties.coverage}: {problem}; choose decode.coverage=none")
        with super().ranked_by(penalties):
            yield


class SourceCountingCollator(UnitCollator):
    """As UnitCollator, plus `num_source_tokens` of a batch with labels, for the mean over an optimizer step."""

    def __call__(self, rows: Any) -> dict[str, Tensor]:
        """Collate, and count."""
        batch = super().__call__(rows)
        if "labels" in batch:
            batch["num_source_tokens"] = batch["unit_mask"].sum()
        return batch
