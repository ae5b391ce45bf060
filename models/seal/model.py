"""Trunc's network: one joined unit, an ordinary encoder and decoder (SEAL §3.2).

Letters: B examples, U units (one, for Trunc), L unit tokens, T target tokens, D width, V vocabulary.
"""

from typing import Any

from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import PegasusConfig
from transformers.cache_utils import Cache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.models.bart.modeling_bart import BartDecoderLayer, BartEncoderLayer
from transformers.models.pegasus.modeling_pegasus import (
    PegasusForConditionalGeneration,
    shift_tokens_right,
)

from longsumbench.nn.losses import token_cross_entropy
from longsumbench.nn.unit_encoder import UnitEncoder, joined_mask


@strict
class TruncModelConfig(PegasusConfig):
    """As PegasusConfig, plus where the norms stand and the label smoothing of training."""

    model_type = "longsumbench-trunc"

    norm: str = "pre"
    label_smoothing: float = 0.0


class TruncForConditionalGeneration(PegasusForConditionalGeneration):
    """As Pegasus (pre-norm, sinusoidal positions, tied scaled embeddings), except: it reads units.

    With `norm="post"` the layers are BART's and the stacks end without a norm of their own.
    """

    config_class = TruncModelConfig
    config: TruncModelConfig

    def __init__(self, config: TruncModelConfig) -> None:
        super().__init__(config)
        self.model.encoder = UnitEncoder(config)
        if config.norm == "post":
            for stack, layer in ((self.model.encoder, BartEncoderLayer), (self.model.decoder, BartDecoderLayer)):
                stack.layers = nn.ModuleList(layer(config, layer_idx=i) for i in range(len(stack.layers)))
                stack.layer_norm = nn.Identity()
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        unit_mask: Tensor | None = None,
        unit_documents: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Predict every next target token.

        Args:
            input_ids: [B, U, L]; not read when `encoder_outputs` are given.
            unit_mask: [B, U, L], True where a token is real.
            unit_documents: [B, U]; one unit is joined from several documents, so it says nothing here.
            labels: [B, T], -100 where there is no target token.
            decoder_input_ids: [B, T]; None: the labels, shifted right behind the start token.
            encoder_outputs: the encoder's, states [B, U·L, D].
            past_key_values: the decoder's cache.
            use_cache: whether to fill it.
            num_items_in_batch: target tokens of the whole optimizer step (see `token_cross_entropy`).
            **kwargs: what the library's decoder takes.

        Returns:
            `loss` in nats per target token, when labels are given; `logits` [B, T, V]; the cache.
        """
        if unit_mask is None:
            raise TypeError("unit_mask [B, U, L] is needed: the decoder reads the real tokens alone")
        if encoder_outputs is None:
            encoder_outputs = self.model.encoder(input_ids=input_ids, unit_mask=unit_mask)
        if labels is not None and decoder_input_ids is None:
            decoder_input_ids = shift_tokens_right(labels, self.config.pad_token_id, self.config.decoder_start_token_id)
        decoded = self.model.decoder(
            input_ids=decoder_input_ids,
            encoder_hidden_states=encoder_outputs.last_hidden_state,
            encoder_attention_mask=joined_mask(unit_mask),
            past_key_values=past_key_values,
            use_cache=use_cache if labels is None else False,
            **kwargs,
        )
        logits = self.lm_head(decoded.last_hidden_state)  # [B, T, V]
        loss = None
        if labels is not None:
            smoothing = self.config.label_smoothing if self.training else 0.0
            loss = token_cross_entropy(logits, labels, num_items_in_batch, smoothing)
        return Seq2SeqLMOutput(loss=loss, logits=logits, past_key_values=decoded.past_key_values)
