"""Base of networks from units to text: one `forward` around a system's encoder and decoder; its losses; steps of a search.

Letters: B examples, K beams, Q = B·K query rows, R memory rows, U units, L unit tokens, T target tokens, S memory
tokens, D width, V vocabulary; in the steps of a search, T new tokens, H heads, E width of a head.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.models.bart.modeling_bart import BartDecoderLayer, shift_tokens_right
from transformers.models.pegasus.modeling_pegasus import PegasusAttention, PegasusDecoderLayer

from longsumbench.modeling.nn.folded_attention import CACHE, FoldedAttention, FoldedCache
from longsumbench.modeling.nn.masks import at_least_single, attention_mask
from longsumbench.modeling.nn.penalties import RankedGeneration


def decode_steps(
    decoder: PreTrainedModel, ids: Tensor, memory: Tensor, mask: Tensor | None, cache: FoldedCache
) -> Tensor:
    """Run the stack of BART or Pegasus with folded cross-attention, without dropout: [Q, T] → [Q, T, D].

    As the library, except: self-attention has one product for queries, keys and values, its cache is written in place,
    and a single token has no mask, for which a GPU would be waited for. The cache gets the tokens. The memory is
    [R, S, D], its mask [R or Q, 1, 1, S] in the library's form.
    """
    positions = torch.arange(cache.length, cache.length + ids.shape[1], device=ids.device)
    states = decoder.embed_tokens(ids) * getattr(decoder, "embed_scale", 1.0)
    states = states + decoder.embed_positions(ids.shape, cache.length, position_ids=positions)
    states = getattr(decoder, "layernorm_embedding", nn.Identity())(states)
    for layer in decoder.layers:
        states = _run_layer(layer, states, memory, mask, cache)
    cache.length += ids.shape[1]
    output: Tensor = getattr(decoder, "layer_norm", nn.Identity())(states)
    return output


def _run_layer(
    layer: Any, states: Tensor, memory: Tensor, mask: Tensor | None, cache: FoldedCache
) -> Tensor:
    def attend_to_target(states: Tensor) -> Tensor:
        return _attend_to_target(layer.self_attn, states, cache)

    def attend_to_memory(states: Tensor) -> Tensor:
        attended: Tensor = layer.encoder_attn(
            states, key_value_states=memory, attention_mask=mask, **{CACHE: cache}
        )[0]
        return attended

    def feed_forward(states: Tensor) -> Tensor:
        changed: Tensor = layer.fc2(layer.activation_fn(layer.fc1(states)))
        return changed

    for norm, function in (
        (layer.self_attn_layer_norm, attend_to_target),
        (layer.encoder_attn_layer_norm, attend_to_memory),
        (layer.final_layer_norm, feed_forward),
    ):
        if isinstance(layer, PegasusDecoderLayer):
            states = states + function(norm(states))
        else:
            states = norm(states + function(states))
    return states


def _attend_to_target(attention: PegasusAttention, states: Tensor, cache: FoldedCache) -> Tensor:
    """Attend from new target tokens to all up to themselves: [Q, T, D] → [Q, T, D]."""
    queries, length, width = states.shape
    new = F.linear(states, *cache.join(attention)).view(queries, length, 3, attention.num_heads, -1)
    query, *keys_values = new.permute(2, 0, 3, 1, 4)
    keys, values = cache.append(attention.layer_idx, torch.stack(keys_values))
    total, mask = keys.shape[2], None
    if length > 1:
        mask = torch.ones(length, total, dtype=torch.bool, device=states.device).tril(
            total - length
        )
    attended = F.scaled_dot_product_attention(query, keys, values, mask, scale=attention.scaling)
    output: Tensor = attention.out_proj(attended.transpose(1, 2).reshape(queries, length, width))
    return output


# what a network's encoder returns: a `Memory`, or a tuple that its own `decode` takes
EncoderOutput: TypeAlias = Any


def token_cross_entropy(
    logits: Tensor, labels: Tensor, num_tokens: Tensor | int | None = None, smoothing: float = 0.0
) -> Tensor:
    """Return the mean cross-entropy over real target tokens, in nats per token.

    Args:
        logits: [B, T, V].
        labels: [B, T], -100 where there is no target token.
        num_tokens: the divisor of the sum; None: the real tokens of `labels`. Under gradient accumulation the Trainer
            passes the count of the whole step, so that all tokens have the same weight.
        smoothing: ε of label smoothing, ε/V for each entry of the vocabulary.
    """
    sums = F.cross_entropy(
        at_least_single(logits.flatten(0, -2)),
        labels.flatten(),
        ignore_index=-100,
        reduction="sum",
        label_smoothing=smoothing,
    )
    count = num_tokens if num_tokens is not None else labels.ne(-100).sum().clamp(min=1)
    return sums / count


class Decoded(NamedTuple):
    """Output of a decoder."""

    hidden: Tensor  # [Q, T, D]
    # what the network chose or weighted units by, for its loss and evidence; None if there is nothing
    unit_scores: Tensor | None = None


def fold_cross_attention(
    decoder: PreTrainedModel,
    config: PreTrainedConfig,
    kinds: Mapping[int, type[FoldedAttention]] | None = None,
) -> None:
    """Replace the cross-attention of a decoder like BART's by folded attention with new weights.

    `kinds` gives another class for some layers, counted from 0.
    """
    for index, layer in enumerate(decoder.layers):
        layer.encoder_attn = (kinds or {}).get(index, FoldedAttention)(
            config.d_model,
            config.decoder_attention_heads,
            config.attention_dropout,
            is_decoder=True,
            config=config,
            layer_idx=index,
        )


def use_post_norms(decoder: PreTrainedModel, config: PreTrainedConfig) -> None:
    """Move the norms of Pegasus's decoder after its sub-layers, as in BART, and remove the final norm."""
    decoder.layers = nn.ModuleList(
        BartDecoderLayer(config, layer_idx=i) for i in range(config.decoder_layers)
    )
    decoder.layer_norm = nn.Identity()


class UnitsToText(RankedGeneration):
    """Mixin for networks that read units; precedes a class of transformers with `model`, `lm_head` and `generate`.

    A network defines its encoder, and may override `shifted`, `decode`, `project` and the losses. `forward` passes
    other keyword arguments to the encoder, `decode` and `added_loss`.
    """

    lm_head: Any
    final_logits_bias: Tensor
    training: bool

    def forward(
        self,
        input_ids: Tensor | None = None,
        unit_mask: Tensor | None = None,
        unit_documents: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **context: Any,
    ) -> Seq2SeqLMOutput:
        """Predict every next target token.

        Args:
            input_ids: [B, U, L]; this and the next two are not read if `encoder_outputs` is given.
            unit_mask: [B, U, L], True where a token is real. Every example has a unit.
            unit_documents: [B, U], the index of a unit's document.
            labels: [B, T], -100 where there is no target token.
            decoder_input_ids: [Q, T]; None: the labels, shifted right after the start token.
            encoder_outputs: the encoder's output, B rows for any number of beams.
            use_cache: whether to fill the decoder's cache.
            num_items_in_batch: target tokens of the whole optimizer step (see `token_cross_entropy`).
            **context: the cache, by the library's name for it (`CACHE`); arguments of the network's encoder, `decode`
                and `added_loss`, and others of `generate`.

        Returns:
            `loss` in nats per target token if labels are given (plus `added_loss` in training); `logits` [Q, T, V];
            the cache.
        """
        cache: FoldedCache | None = context.pop(CACHE, None)
        if encoder_outputs is None:
            encoder_outputs = self.model.encoder(
                input_ids=input_ids, unit_mask=unit_mask, unit_documents=unit_documents, **context
            )
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.shifted(labels)
        assert decoder_input_ids is not None
        if not use_cache:
            cache = None
        elif cache is None:
            cache = self.new_cache()
        decoded = self.decode(encoder_outputs, decoder_input_ids, cache, **context)
        logits = self.project(decoded.hidden)
        loss = None
        if labels is not None:
            smoothing = self.config.label_smoothing if self.training else 0.0
            loss = self.token_loss(logits, labels, num_items_in_batch, smoothing)
            if self.training:
                loss = loss + self.added_loss(decoded, encoder_outputs, labels, **context)
        return Seq2SeqLMOutput(loss=loss, logits=logits, **{CACHE: cache})

    def shifted(self, labels: Tensor) -> Tensor:
        """Return the decoder input of training: [B, T] → [B, T], the labels shifted right after the start token."""
        ids: Tensor = shift_tokens_right(
            labels, self.config.pad_token_id, self.config.decoder_start_token_id
        )
        return ids

    def decode(
        self, reading: EncoderOutput, ids: Tensor, cache: FoldedCache | None = None, **context: Any
    ) -> Decoded:
        """Run the decoder over the tokens that follow those in the cache.

        Args:
            reading: the output of the encoder; by default a `Memory`.
            ids: [Q, T].
            cache: contains all earlier tokens; None: there are none.
            **context: other arguments of `forward`.
        """
        return Decoded(self.run_decoder(ids, reading.last_hidden_state, reading.mask, cache))

    def run_decoder(
        self, ids: Tensor, memory: Tensor, mask: Tensor | None, cache: FoldedCache | None
    ) -> Tensor:
        """Run the decoder's stack.

        Args:
            ids: [Q, T].
            memory: [R, S, D].
            mask: [R or Q, S], True where a token may be attended to; None: everywhere.
            cache: the decoder's cache.

        Returns:
            [Q, T, D].
        """
        memory_mask = None if mask is None else attention_mask(mask, self.config, memory.dtype)
        with self.following(ids, mask, cache):
            if isinstance(cache, FoldedCache):
                return decode_steps(self.model.decoder, ids, memory, memory_mask, cache)
            output: Tensor = self.model.decoder(
                input_ids=ids,
                encoder_hidden_states=memory,
                encoder_attention_mask=memory_mask,
                use_cache=cache is not None,
                **{CACHE: cache},
            ).last_hidden_state
        return output

    def project(self, hidden: Tensor) -> Tensor:
        """Return logits: [Q, T, D] → [Q, T, V]."""
        bias, own = self.final_logits_bias[0], self.lm_head.bias
        return F.linear(hidden, self.lm_head.weight, bias if own is None else own + bias)

    def token_loss(
        self, logits: Tensor, labels: Tensor, num_tokens: Tensor | int | None, smoothing: float
    ) -> Tensor:
        """Return the loss of the target tokens; by default `token_cross_entropy`."""
        return token_cross_entropy(logits, labels, num_tokens, smoothing)

    def added_loss(
        self, decoded: Decoded, reading: EncoderOutput, labels: Tensor, **context: Any
    ) -> Tensor | float:
        """Return the loss that training adds to the cross-entropy; by default 0.

        Args:
            decoded: the output of `decode`.
            reading: the output of the encoder.
            labels: [B, T].
            **context: other arguments of `forward`.
        """
        return 0.0
