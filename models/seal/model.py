"""The four networks of the SEAL family: one encoder-decoder, four ways to what the decoder attends to.

    Trunc (§3.2)  the leading snippets as one unit           → its tokens
    CA    (§3.3)  groups of snippets                          → a few vectors of each
    EA    (§3.4)  snippets alone → scores → gate              → the tokens of the best ones
    SEAL  (§3.5)  as EA, anew for every segment of the output → the tokens of the best ones for this segment

Letters: B examples, K beams, Q = B·K rows, U units, L unit tokens, T target tokens, m segments of s tokens, N real
tokens of the batch, S memory tokens, D width, V vocabulary.
"""

from typing import Any, ClassVar, NamedTuple

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PegasusConfig
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.models.bart.modeling_bart import BartDecoderLayer
from transformers.models.pegasus.modeling_pegasus import (
    PegasusForConditionalGeneration,
    shift_tokens_right,
)

from longsumbench.models.seal.encoders import Compressor, Extractor, Snippets
from longsumbench.models.seal.gate import Selection, select
from longsumbench.nn.folded_attention import FoldedAttention, FoldedCache, FoldedGeneration
from longsumbench.nn.losses import token_cross_entropy
from longsumbench.nn.masks import attended, attention_mask
from longsumbench.nn.positions import SinusoidalPositions
from longsumbench.nn.unit_encoder import Memory, UnitEncoder, gather, spread


@strict
class TruncModelConfig(PegasusConfig):
    """As PegasusConfig, plus where the norms stand and the label smoothing of training."""

    model_type = "longsumbench-trunc"

    norm: str = "pre"
    label_smoothing: float = 0.0


@strict
class CAModelConfig(TruncModelConfig):
    """As TruncModelConfig, plus the vectors kept of a group."""

    model_type = "longsumbench-ca"

    compressed_length: int = 1


@strict
class EAModelConfig(TruncModelConfig):
    """As TruncModelConfig, plus the gate's limit, the scorer's depth and its document embeddings (0: none)."""

    model_type = "longsumbench-ea"

    extractive_length: int = 1024
    scorer_layers: int = 1
    max_documents: int = 0


@strict
class SealModelConfig(EAModelConfig):
    """As EAModelConfig, plus the length of a segment of the output."""

    model_type = "longsumbench-seal"

    segment_length: int = 96


class SelectionCache(FoldedCache):
    """As FoldedCache, except: it knows what each beam may attend to, and the segments that it has written.

    Attributes:
        mask: [Q, S], over the memory whose keys and values the cache holds; None before there is one.
        history: [Q, j, D], the pooled segments behind each beam; None before there is one.
        history_mask: [Q, j], True where a segment holds a token.
    """

    def __init__(self, *caches: Any) -> None:
        super().__init__(*caches)
        self.mask: Tensor | None = None
        self.history: Tensor | None = None
        self.history_mask: Tensor | None = None

    def forget_memory(self) -> None:
        """Drop the memory's keys and values: a segment begins."""
        self.mask = None
        self.cross_attention_cache.reset()
        self.is_updated.clear()

    def remember(self, segment: Tensor, mask: Tensor) -> None:
        """Append a pooled segment: [Q, 1, D], [Q, 1]."""
        if self.history is not None and self.history_mask is not None:
            segment, mask = torch.cat([self.history, segment], 1), torch.cat([self.history_mask, mask], 1)
        self.history, self.history_mask = segment, mask

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder all that belongs to a beam."""
        super().reorder_cache(beam_idx)
        for name in ("mask", "history", "history_mask"):
            if (of_beams := getattr(self, name)) is not None:
                setattr(self, name, of_beams.index_select(0, beam_idx))


class Decoded(NamedTuple):
    """What a decoder made of its input.

    Attributes:
        hidden: [Q, T, D].
        scores: [Q, m, U], the scores behind the selections; None where there are none, or none new.
    """

    hidden: Tensor
    scores: Tensor | None = None


class TruncForConditionalGeneration(FoldedGeneration, PegasusForConditionalGeneration):
    """As Pegasus (pre-norm, sinusoidal positions, tied scaled embeddings), except: it reads units.

    The beams of an example share the keys and values of its memory. With `norm="post"` the norms stand where BART has
    them, and the stacks end without one of their own.
    """

    config_class = TruncModelConfig
    config: TruncModelConfig
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [
        r"embed_positions\.weight"
    ]  # of version 1: a fixed table

    def __init__(self, config: TruncModelConfig) -> None:
        super().__init__(config)
        self.model.encoder = self.build_encoder(config)
        decoder = self.model.decoder
        decoder.embed_positions = SinusoidalPositions(config.d_model)
        if config.norm == "post":
            decoder.layers = nn.ModuleList(BartDecoderLayer(config, layer_idx=i) for i in range(config.decoder_layers))
            decoder.layer_norm = nn.Identity()
        for index, layer in enumerate(decoder.layers):
            layer.encoder_attn = FoldedAttention(
                config.d_model,
                config.decoder_attention_heads,
                config.attention_dropout,
                is_decoder=True,
                config=config,
                layer_idx=index,
            )
        self.post_init()

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the encoder, which decides what the decoder attends to."""
        return UnitEncoder(config, config.norm == "pre")

    def forward(
        self,
        input_ids: Tensor | None = None,
        unit_mask: Tensor | None = None,
        unit_documents: Tensor | None = None,
        labels: Tensor | None = None,
        proxy_labels: Tensor | None = None,
        num_proxy_labels: Tensor | int | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_history_ids: Tensor | None = None,
        encoder_outputs: Memory | Snippets | None = None,
        past_key_values: FoldedCache | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Predict every next target token.

        Args:
            input_ids: [B, U, L]; not read when `encoder_outputs` are given.
            unit_mask: [B, U, L], True where a token is real; likewise.
            unit_documents: [B, U], the index of a unit's document; likewise.
            labels: [B, T], -100 where there is no target token.
            proxy_labels: [B, m, U], what the scores should have been; None: the loss is l_a alone. Not read by systems
                without a scorer.
            num_proxy_labels: real ones of the whole optimizer step; None: those of this batch.
            decoder_input_ids: [Q, T]; None: the labels, shifted right behind the start token.
            decoder_history_ids: [Q, all tokens so far], when `past_key_values` hold the earlier ones; None: what is
                given as `decoder_input_ids` is all.
            encoder_outputs: the encoder's, B rows, however many beams there are.
            past_key_values: the decoder's cache.
            use_cache: whether to fill it.
            num_items_in_batch: target tokens of the whole optimizer step (see `token_cross_entropy`).
            **kwargs: what `generate` hands over beside.

        Returns:
            `loss` in nats per target token, when labels are given (in training with the extractive loss of systems that
            have one); `logits` [Q, T, V]; the cache.
        """
        if encoder_outputs is None:
            encoder_outputs = self.model.encoder(
                input_ids=input_ids, unit_mask=unit_mask, unit_documents=unit_documents
            )
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                config = self.config
                decoder_input_ids = shift_tokens_right(labels, config.pad_token_id, config.decoder_start_token_id)
        if not use_cache:
            past_key_values = None
        elif past_key_values is None:
            past_key_values = self.new_cache()
        if decoder_input_ids is None:
            raise TypeError("labels or decoder_input_ids are needed: the decoder predicts what follows them")
        history = decoder_input_ids if decoder_history_ids is None else decoder_history_ids
        decoded = self.decode(encoder_outputs, decoder_input_ids, past_key_values, history)
        logits = self.lm_head(decoded.hidden)  # [Q, T, V]
        loss = None
        if labels is not None:
            smoothing = self.config.label_smoothing if self.training else 0.0
            loss = token_cross_entropy(logits, labels, num_items_in_batch, smoothing)
            if self.training:
                loss = loss + self.added_loss(decoded, encoder_outputs, labels, proxy_labels, num_proxy_labels)
        return Seq2SeqLMOutput(loss=loss, logits=logits, past_key_values=past_key_values)

    def decode(self, reading: Any, decoder_input_ids: Tensor, cache: FoldedCache | None, history: Tensor) -> Decoded:
        """Run the decoder over tokens that follow those in the cache.

        Args:
            reading: what the encoder returned.
            decoder_input_ids: [Q, T].
            cache: with a cache, all earlier tokens are in it.
            history: [Q, tokens so far], those of `decoder_input_ids` included.
        """
        return Decoded(self.run_decoder(decoder_input_ids, reading.last_hidden_state, reading.mask, cache))

    def run_decoder(self, ids: Tensor, memory: Tensor, mask: Tensor, cache: FoldedCache | None) -> Tensor:
        """Run the decoder's stack: [Q, T], memory [R, S, D], mask [R or Q, S] → [Q, T, D]."""
        output: Tensor = self.model.decoder(
            input_ids=ids,
            encoder_hidden_states=memory,
            encoder_attention_mask=attention_mask(mask, self.config, memory.dtype),
            past_key_values=cache,
            use_cache=cache is not None,
        ).last_hidden_state
        return output

    def added_loss(
        self,
        decoded: Decoded,
        reading: Any,
        labels: Tensor,
        proxy_labels: Tensor | None,
        num_proxy_labels: Tensor | int | None,
    ) -> Tensor | float:
        """Return what training adds to l_a (arguments: see `forward`); here nothing."""
        return 0.0


class CAForConditionalGeneration(TruncForConditionalGeneration):
    """As Trunc, except: a group of snippets is compressed to a few vectors (SEAL §3.3)."""

    config_class = CAModelConfig
    config: CAModelConfig

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the compressing encoder."""
        return Compressor(config)


class EAForConditionalGeneration(TruncForConditionalGeneration):
    """As Trunc, except: the decoder attends to the snippets that the scorer likes best (SEAL §3.4)."""

    config_class = EAModelConfig
    cache_class = SelectionCache
    config: EAModelConfig

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the encoder with a scorer beside it."""
        return Extractor(config)

    def decode(
        self, reading: Snippets, decoder_input_ids: Tensor, cache: SelectionCache | None, history: Tensor
    ) -> Decoded:
        """Select once, then decode; the beams of an example share the selection."""
        if cache is not None and cache.mask is not None:
            return Decoded(self.run_decoder(decoder_input_ids, reading.unread(), cache.mask, cache))
        scores, selection = self.select(reading, history)
        memory = gather(reading.last_hidden_state, selection.positions, selection.mask)
        if cache is not None:
            cache.mask = memory.mask.repeat_interleave(len(history) // len(memory.mask), 0)
        return Decoded(self.run_decoder(decoder_input_ids, memory.last_hidden_state, memory.mask, cache), scores)

    def select(self, reading: Snippets, history: Tensor) -> tuple[Tensor, Selection]:
        """Score all snippets and select, for every segment of a summary; here the whole summary is one.

        Args:
            reading: the encoded snippets, Q rows.
            history: [Q, tokens so far], the start token first.

        Returns:
            Scores [Q, m, U], and a selection of Q·m rows.
        """
        scores: Tensor = self.model.encoder.scorer(reading.related, reading.mask)
        limit = self.config.extractive_length
        return scores[:, None], select(scores, reading.starts, reading.lengths, limit)

    def segments_of(self, length: int) -> tuple[int, int]:
        """Return how many segments a summary of `length` tokens has, and the length of one."""
        return 1, length

    def added_loss(
        self,
        decoded: Decoded,
        reading: Snippets,
        labels: Tensor,
        proxy_labels: Tensor | None,
        num_proxy_labels: Tensor | int | None,
    ) -> Tensor | float:
        """Return l_e, where proxy labels are given."""
        if decoded.scores is None or proxy_labels is None:
            return 0.0
        errors, count = self.extractive_errors(decoded.scores, proxy_labels, reading, labels)
        return errors / (count if num_proxy_labels is None else num_proxy_labels)

    def extractive_errors(
        self, scores: Tensor, proxy_labels: Tensor, reading: Snippets, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the sum of (score − proxy label)² over real snippets and segments, and how many there are.

        Their quotient is l_e (SEAL §3.4, §3.5).

        Args:
            scores: [B, m, U].
            proxy_labels: [B, m, U].
            reading: the encoded snippets.
            labels: [B, T]; a segment is real when it holds a target token.
        """
        count, length = self.segments_of(labels.shape[1])
        tokens = F.pad(labels, (0, count * length - labels.shape[1]), value=-100)
        segments = tokens.view(len(labels), count, length).ne(-100).any(-1)  # [B, m]
        real = segments[..., None] & reading.mask[:, None]  # [B, m, U]
        errors = (scores - proxy_labels).square().masked_fill(~real, 0.0)
        return errors.sum(), real.sum().clamp(min=1)


class SealForConditionalGeneration(EAForConditionalGeneration):
    """As EA, except: it selects anew for every segment of the output, knowing the earlier ones (SEAL §3.5).

    Given whole targets, all segments are decoded side by side, each with its own memory. Writing token by token, the
    keys and values of the memory are rebuilt where a segment begins: of what any beam of the example selected, once; a
    beam's mask shows it its own selection.
    """

    config_class = SealModelConfig
    config: SealModelConfig

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the encoder with a scorer that looks back."""
        return Extractor(config, looks_back=True)

    def segments_of(self, length: int) -> tuple[int, int]:
        """Return how many segments a summary of `length` tokens has, and the length of one."""
        return -(-length // self.config.segment_length), min(length, self.config.segment_length)

    def decode(
        self, reading: Snippets, decoder_input_ids: Tensor, cache: SelectionCache | None, history: Tensor
    ) -> Decoded:
        """Decode all segments side by side, or, with a cache, one after the other."""
        if cache is not None:
            return Decoded(self._decode_in_order(reading, decoder_input_ids, cache, history))
        beams = len(decoder_input_ids) // len(reading.starts)
        scores, selection = self.select(reading.repeated(beams), decoder_input_ids)
        memory = gather(reading.last_hidden_state, selection.positions, selection.mask)
        width = decoder_input_ids.shape[1]
        count, length = self.segments_of(width)
        padded = F.pad(decoder_input_ids, (0, count * length - width), value=self.config.pad_token_id)
        hidden = self.run_decoder(padded, memory.last_hidden_state, memory.mask, None)
        return Decoded(hidden[:, :width], scores)

    def select(self, reading: Snippets, history: Tensor) -> tuple[Tensor, Selection]:
        """Score all snippets and select, for every segment of a summary, given the earlier ones.

        Args:
            reading: the encoded snippets, Q rows.
            history: [Q, T], the start token first: the tokens behind which T tokens are predicted.

        Returns:
            Scores [Q, m, U], and a selection of Q·m rows.
        """
        queries, width = history.shape
        count, length = self.segments_of(width)
        snippets, real, score = reading.related, reading.mask, self.model.encoder.scorer
        scores = score(snippets, real)[:, None]  # [Q, 1, U]: the first segment has no history
        if (earlier := count - 1) > 0:
            written = history[:, 1 : 1 + earlier * length].reshape(queries, earlier, length)
            vectors, there = self.pool_segments(written)  # [Q, m - 1, D], [Q, m - 1]
            before = torch.ones(earlier, earlier, dtype=torch.bool, device=there.device).tril()
            looked_at = (there[:, None] & before).flatten(0, 1)  # [Q·(m - 1), m - 1]
            snippets, real, vectors = (
                rows[:, None].expand(-1, earlier, *rows.shape[1:]).flatten(0, 1) for rows in (snippets, real, vectors)
            )
            later = score(snippets, real, vectors, looked_at).view(queries, earlier, -1)
            scores = torch.cat([scores, later], 1)  # [Q, m, U]
        starts, lengths = (of.repeat_interleave(count, 0) for of in (reading.starts, reading.lengths))
        return scores, select(scores.flatten(0, 1), starts, lengths, self.config.extractive_length)

    def pool_segments(self, written: Tensor) -> tuple[Tensor, Tensor]:
        """Encode earlier segments and pool each: [Q, j, s] → [Q, j, D], and [Q, j], True where one holds a token."""
        mask = written.ne(self.config.pad_token_id)
        pooled: Tensor = self.model.encoder.encode(written, mask).pooled
        return pooled, mask.any(-1)

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        """Add the whole prefix: the scorer reads it where a segment begins."""
        inputs: dict[str, Any] = super().prepare_inputs_for_generation(input_ids, **kwargs)
        return {**inputs, "decoder_history_ids": input_ids}

    def _decode_in_order(self, reading: Snippets, ids: Tensor, cache: SelectionCache, history: Tensor) -> Tensor:
        """Decode tokens that follow those in the cache, and begin a segment wherever it is due: [Q, T] → [Q, T, D]."""
        length, done, hidden = self.config.segment_length, cache.get_seq_length(), []
        for following in torch.split(ids, split_at_segments(done, ids.shape[1], length), 1):
            memory = reading.unread()
            if done % length == 0:
                memory = self._begin_segment(reading, cache, history[:, : 1 + done])
            assert cache.mask is not None
            hidden.append(self.run_decoder(following, memory, cache.mask, cache))
            done += following.shape[1]
        return torch.cat(hidden, 1)

    def _begin_segment(self, reading: Snippets, cache: SelectionCache, history: Tensor) -> Tensor:
        """Select for the next segment, given the tokens so far [Q, 1 + j·s]; return the examples' memory [B, S, D]."""
        length, beams = self.config.segment_length, len(history) // len(reading.starts)
        if history.shape[1] > 1:
            cache.remember(*self.pool_segments(history[:, None, -length:]))
        of_beams = reading.repeated(beams)
        scores = self.model.encoder.scorer(of_beams.related, of_beams.mask, cache.history, cache.history_mask)
        taken = select(scores, of_beams.starts, of_beams.lengths, self.config.extractive_length).taken  # [Q, U]
        by_any = taken.view(-1, beams, taken.shape[1]).amax(1)  # [B, U]
        tokens = spread(reading.starts, by_any)
        memory = gather(reading.last_hidden_state, tokens.positions, tokens.mask)
        _, there, units, offsets = (of_example.repeat_interleave(beams, 0) for of_example in tokens)
        cache.forget_memory()
        cache.mask = attended(there & (offsets < taken.gather(1, units)))
        return memory.last_hidden_state


def split_at_segments(done: int, count: int, length: int) -> list[int]:
    """Cut `count` tokens that follow `done` ones where segments begin: 3 done, 6 more, segments of 4 → [1, 4, 1]."""
    sizes = []
    while count > 0:
        sizes.append(min(count, length - done % length))
        done, count = done + sizes[-1], count - sizes[-1]
    return sizes
