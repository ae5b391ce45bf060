"""The four networks of the SEAL family: one encoder-decoder with four memories for the decoder to attend to.

    Trunc (§3.2)  the leading snippets as one unit        → its tokens
    CA    (§3.3)  groups of snippets                      → a few vectors of each
    EA    (§3.4)  snippets alone → scores → gate          → the tokens of the best ones
    SEAL  (§3.5)  as EA, for every segment of the output  → the tokens of the best ones for this segment

Letters: B examples, K beams, Q = B·K rows, U units, L unit tokens, T target tokens, m segments of s tokens, N real
tokens of the batch, S memory tokens, D width, V vocabulary.
"""

from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor
from torch.nn import functional as F
from transformers import DynamicCache, PegasusConfig
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.models.pegasus.modeling_pegasus import PegasusForConditionalGeneration

from longsumbench.modeling.nn.device import on_host
from longsumbench.modeling.nn.encoder_decoder import (
    Decoded,
    UnitsToText,
    fold_cross_attention,
    use_post_norms,
)
from longsumbench.modeling.nn.folded_attention import FoldedCache
from longsumbench.modeling.nn.masks import never_empty
from longsumbench.modeling.nn.transformer_layer import SinusoidalPositions
from longsumbench.modeling.nn.unit_encoder import TokenTable, UnitEncoder, gather, spread_units
from longsumbench.models.seal.selection import Compressor, Extractor, GateSelection, select


@strict
class TruncModelConfig(PegasusConfig):
    """As PegasusConfig, plus the position of the norms and the label smoothing."""

    model_type = "longsumbench-trunc"

    activation_function: str = "relu"
    norm: str = "pre"
    label_smoothing: float = 0.0
    pretrained_encoder: dict[str, Any] | None = None  # arguments of `PretrainedEncoder`


@strict
class CAModelConfig(TruncModelConfig):
    """As TruncModelConfig, plus the number of vectors of a group."""

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
    """As FoldedCache, plus the tokens that each beam may attend to and the segments that it has written."""

    mask: Tensor | None = (
        None  # [Q, S], True where a beam may attend to the memory; None before the first selection
    )
    history: Tensor | None = (
        None  # [Q, j, D], the pooled earlier segments of each beam; None in the first segment
    )
    history_mask: Tensor | None = None  # [Q, j], True where a segment holds a token

    def forget_memory(self) -> None:
        """Drop the memory's keys and values, when a segment begins."""
        self.mask = None
        self.cross_attention_cache = DynamicCache()
        self.is_updated.clear()

    def remember(self, segment: Tensor, mask: Tensor) -> None:
        """Append a pooled segment: [Q, 1, D], [Q, 1]."""
        if self.history is not None and self.history_mask is not None:
            segment, mask = (
                torch.cat([self.history, segment], 1),
                torch.cat([self.history_mask, mask], 1),
            )
        self.history, self.history_mask = segment, mask

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the caches of the beams."""
        super().reorder_cache(beam_idx)
        if self.mask is not None:
            self.mask = self.mask.index_select(0, beam_idx)
        if self.history is not None and self.history_mask is not None:
            self.history = self.history.index_select(0, beam_idx)
            self.history_mask = self.history_mask.index_select(0, beam_idx)


class TruncForConditionalGeneration(UnitsToText, PegasusForConditionalGeneration):
    """As Pegasus (pre-norm, sinusoidal positions, tied scaled embeddings), except: it reads units.

    The beams of an example share the keys and values of its memory. With `norm="post"` the norms are where BART has
    them, and the stacks have no final norm.
    """

    config_class = TruncModelConfig
    config: TruncModelConfig

    def __init__(self, config: TruncModelConfig) -> None:
        super().__init__(config)
        self.model.encoder = self.build_encoder(config)
        decoder = self.model.decoder
        decoder.embed_positions = SinusoidalPositions(config.d_model)
        if config.norm == "post":
            use_post_norms(decoder, config)
        fold_cross_attention(decoder, config)
        self.post_init()

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the encoder, whose output is the decoder's memory."""
        return UnitEncoder(config, config.norm == "pre")


class CAForConditionalGeneration(TruncForConditionalGeneration):
    """As Trunc, except: a group of snippets is compressed to a few vectors (SEAL §3.3)."""

    config_class = CAModelConfig
    config: CAModelConfig

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the compressing encoder."""
        return Compressor(config)


class EAForConditionalGeneration(TruncForConditionalGeneration):
    """As Trunc, except: the decoder attends to the snippets with the best scores (SEAL §3.4)."""

    config_class = EAModelConfig
    cache_class = SelectionCache
    config: EAModelConfig

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the encoder with a scorer."""
        return Extractor(config)

    def decode(
        self,
        reading: TokenTable,
        ids: Tensor,
        cache: SelectionCache | None = None,
        decoder_history_ids: Tensor | None = None,
        **context: Any,
    ) -> Decoded:
        """Select once, then decode; the beams of an example share the selection.

        Args:
            reading: the encoded snippets.
            ids: [Q, T].
            cache: has all earlier tokens.
            decoder_history_ids: [Q, tokens so far], with the earlier tokens; None: there are no earlier tokens.
            **context: not used.
        """
        if cache is not None and cache.mask is not None:
            return Decoded(self.run_decoder(ids, _unread(reading), cache.mask, cache))
        history = ids if decoder_history_ids is None else decoder_history_ids
        scores, selection = self.select(reading, history)
        memory = gather(reading.last_hidden_state, selection.positions, selection.mask)
        if cache is not None:
            cache.mask = memory.mask.repeat_interleave(len(history) // len(memory.mask), 0)
        return Decoded(self.run_decoder(ids, memory.last_hidden_state, memory.mask, cache), scores)

    def select(self, reading: TokenTable, history: Tensor) -> tuple[Tensor, GateSelection]:
        """Score all snippets and select, once for each segment of a summary; here the whole summary is one.

        Args:
            reading: the encoded snippets, Q rows.
            history: [Q, tokens so far], from the start token.

        Returns:
            Scores [Q, m, U], and a selection of Q·m rows.
        """
        scores = self.unit_scores(reading, history)
        count = scores.shape[1]
        starts, lengths = (
            rows.repeat_interleave(count, 0) for rows in (reading.starts, reading.lengths)
        )
        longest = int(on_host(reading.lengths).sum(-1).max())
        return scores, select(
            scores.flatten(0, 1), starts, lengths, self.config.extractive_length, longest
        )

    def unit_scores(self, reading: TokenTable, history: Tensor) -> Tensor:
        """Score all snippets, once for each segment of a summary: [Q, m, U] (arguments: see `select`)."""
        scores: Tensor = self.model.encoder.scorer(reading.pooled, reading.real)
        return scores[:, None]

    def scores_to_extract(self, reading: TokenTable, input_ids: Tensor) -> Tensor:
        """Score all snippets for an extract: [B, U]; those of absent snippets are undefined.

        `input_ids` [B, U, L] are the tokens of the snippets.
        """
        return self.unit_scores(reading, input_ids)[:, 0]

    def score_alone(
        self,
        input_ids: Tensor,
        unit_mask: Tensor,
        unit_documents: Tensor,
        labels: Tensor,
        proxy_labels: Tensor,
        num_proxy_labels: Tensor | float,
        **context: Any,
    ) -> Seq2SeqLMOutput:
        """Compute l_e alone, without decoding: it trains encoder and scorer (arguments: see `added_loss`)."""
        reading = self.model.encoder(input_ids, unit_mask, unit_documents)
        scores = self.unit_scores(reading, self.shifted(labels))
        errors, _ = self.extractive_errors(scores, proxy_labels, reading, labels)
        return Seq2SeqLMOutput(loss=errors / num_proxy_labels)

    def count_segments(self, length: int) -> tuple[int, int]:
        """Return the number of segments in a summary of `length` tokens, and the length of a segment."""
        return 1, length

    def added_loss(
        self,
        decoded: Decoded,
        reading: TokenTable,
        labels: Tensor,
        proxy_labels: Tensor | None = None,
        num_proxy_labels: Tensor | int | None = None,
        **context: Any,
    ) -> Tensor | float:
        """Return l_e if proxy labels are given, else 0.

        Args:
            decoded: its `unit_scores` [Q, m, U] are the scores of new selections; None: there are none.
            reading: the encoded snippets.
            labels: [B, T].
            proxy_labels: [B, m, U], the targets of the scores; None: the loss is l_a alone.
            num_proxy_labels: number of real ones in the whole optimizer step; None: in this batch.
            **context: not used.
        """
        if decoded.unit_scores is None or proxy_labels is None:
            return 0.0
        errors, count = self.extractive_errors(decoded.unit_scores, proxy_labels, reading, labels)
        return errors / (count if num_proxy_labels is None else num_proxy_labels)

    def extractive_errors(
        self, scores: Tensor, proxy_labels: Tensor, reading: TokenTable, labels: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the sum of (score − proxy label)² over real snippets and segments, and the number of terms.

        Their quotient is l_e (SEAL §3.4, §3.5).

        Args:
            scores: [B, m, U].
            proxy_labels: [B, m, U].
            reading: the encoded snippets.
            labels: [B, T]; a segment is real if it has a target token.
        """
        count, length = self.count_segments(labels.shape[1])
        tokens = F.pad(labels, (0, count * length - labels.shape[1]), value=-100)
        segments = tokens.view(len(labels), count, length).ne(-100).any(-1)  # [B, m]
        real = segments[..., None] & reading.real[:, None]  # [B, m, U]
        errors = (scores - proxy_labels).square().masked_fill(~real, 0.0)
        return errors.sum(), real.sum().clamp(min=1)


class SealForConditionalGeneration(EAForConditionalGeneration):
    """As EA, except: it selects again for every segment of the output, given the earlier ones (SEAL §3.5).

    With whole targets, all segments are decoded in parallel, each with its own memory. In generation, the memory's keys
    and values are rebuilt when a segment begins. They cover what any beam of the example selected, once; a beam's mask
    shows it only its own selection.
    """

    config_class = SealModelConfig
    config: SealModelConfig

    def build_encoder(self, config: TruncModelConfig) -> UnitEncoder:
        """Return the encoder with a scorer that attends to earlier segments."""
        return Extractor(config, looks_back=True)

    def count_segments(self, length: int) -> tuple[int, int]:
        """Return the number of segments in a summary of `length` tokens, and the length of a segment."""
        return -(-length // self.config.segment_length), min(length, self.config.segment_length)

    def decode(
        self,
        reading: TokenTable,
        ids: Tensor,
        cache: SelectionCache | None = None,
        decoder_history_ids: Tensor | None = None,
        **context: Any,
    ) -> Decoded:
        """Decode all segments in parallel, or, with a cache, one after the other (arguments: see EA's)."""
        if cache is not None:
            history = ids if decoder_history_ids is None else decoder_history_ids
            return Decoded(self._decode_in_order(reading, ids, cache, history))
        beams = len(ids) // len(reading.starts)
        scores, selection = self.select(_repeated(reading, beams), ids)
        memory = gather(reading.last_hidden_state, selection.positions, selection.mask)
        width = ids.shape[1]
        count, length = self.count_segments(width)
        padded = F.pad(ids, (0, count * length - width), value=self.config.pad_token_id)
        hidden = self.run_decoder(padded, memory.last_hidden_state, memory.mask, None)
        return Decoded(hidden[:, :width], scores)

    def unit_scores(self, reading: TokenTable, history: Tensor) -> Tensor:
        """Score all snippets, once for each segment of a summary, given the earlier segments: [Q, m, U].

        `history` [Q, T] is the decoder input that predicts T tokens.
        """
        queries, width = history.shape
        count, length = self.count_segments(width)
        snippets, real, score = reading.pooled, reading.real, self.model.encoder.scorer
        scores: Tensor = score(snippets, real)[
            :, None
        ]  # [Q, 1, U]: the first segment has no history
        if (num_past := count - 1) > 0:
            segments = history[:, 1 : 1 + num_past * length].reshape(queries, num_past, length)
            vectors, real_segments = self.pool_segments(segments)  # [Q, m - 1, D], [Q, m - 1]
            causal = torch.ones(
                num_past, num_past, dtype=torch.bool, device=real_segments.device
            ).tril()
            looked_at = (real_segments[:, None] & causal).flatten(0, 1)  # [Q·(m - 1), m - 1]
            snippets, real, vectors = (
                rows[:, None].expand(-1, num_past, *rows.shape[1:]).flatten(0, 1)
                for rows in (snippets, real, vectors)
            )
            scores_of_later = score(snippets, real, vectors, looked_at).view(queries, num_past, -1)
            scores = torch.cat([scores, scores_of_later], 1)  # [Q, m, U]
        return scores

    def scores_to_extract(self, reading: TokenTable, input_ids: Tensor) -> Tensor:
        """Score all snippets for an extract by the order in which they are chosen; the last one has 1.

        Choice: the paper extracts no summaries. Every chosen snippet is a segment of the output, and the next one is
        the best given those before.
        """
        free = reading.real.clone()  # [B, U]
        rows, scores = (
            torch.arange(len(free), device=free.device),
            free.new_zeros(free.shape, dtype=torch.float),
        )
        history: list[Tensor] = []
        masks: list[Tensor] = []
        while free.any():
            segments = (torch.cat(history, 1), torch.cat(masks, 1)) if history else ()
            unit_scores = self.model.encoder.scorer(
                reading.pooled, reading.real, *segments
            )  # [B, U]
            best = unit_scores.masked_fill(~free, -torch.inf).argmax(-1)  # [B]
            scores[rows, best] = torch.where(free[rows, best], free.sum(-1), scores[rows, best])
            free[rows, best] = False
            pooled, is_text = self.pool_segments(input_ids[rows, best][:, None])
            history.append(pooled)
            masks.append(is_text)
        return scores

    def pool_segments(self, segments: Tensor) -> tuple[Tensor, Tensor]:
        """Encode and pool earlier segments: [Q, j, s] → [Q, j, D], and [Q, j], True where a segment has a token."""
        mask = segments.ne(self.config.pad_token_id)
        pooled: Tensor = self.model.encoder.encode(segments, mask).pooled
        return pooled, mask.any(-1)

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        """Add the whole prefix, which the scorer reads when a segment begins."""
        inputs: dict[str, Any] = super().prepare_inputs_for_generation(input_ids, **kwargs)
        return {**inputs, "decoder_history_ids": input_ids}

    def _decode_in_order(
        self, reading: TokenTable, ids: Tensor, cache: SelectionCache, history: Tensor
    ) -> Tensor:
        """Decode the tokens after those in the cache, segment by segment: [Q, T] → [Q, T, D]."""
        length, num_done, hidden = self.config.segment_length, cache.get_seq_length(), []
        for piece in torch.split(ids, split_at_segments(num_done, ids.shape[1], length), 1):
            memory = _unread(reading)
            if num_done % length == 0:
                memory = self._begin_segment(reading, cache, history[:, : 1 + num_done])
            assert cache.mask is not None
            hidden.append(self.run_decoder(piece, memory, cache.mask, cache))
            num_done += piece.shape[1]
        return torch.cat(hidden, 1)

    def _begin_segment(self, reading: TokenTable, cache: SelectionCache, history: Tensor) -> Tensor:
        """Select for the next segment, given the tokens so far [Q, 1 + j·s]; return the memory [B, S, D]."""
        length, beams = self.config.segment_length, len(history) // len(reading.starts)
        if history.shape[1] > 1:
            cache.remember(*self.pool_segments(history[:, None, -length:]))
        per_beam = _repeated(reading, beams)
        scores = self.model.encoder.scorer(
            per_beam.pooled, per_beam.real, cache.history, cache.history_mask
        )
        # The memory has what any beam selected; a beam's mask shows it its own selection.
        counts = select(
            scores, per_beam.starts, per_beam.lengths, self.config.extractive_length
        ).counts  # [Q, U]
        by_any = counts.view(-1, beams, counts.shape[1]).amax(1)  # [B, U]
        tokens = spread_units(reading.starts, by_any)
        memory = gather(reading.last_hidden_state, tokens.positions, tokens.mask)
        _, real_tokens, units, offsets = (rows.repeat_interleave(beams, 0) for rows in tokens)
        cache.forget_memory()
        cache.mask = never_empty(real_tokens & (offsets < counts.gather(1, units)))
        return memory.last_hidden_state


def _repeated(reading: TokenTable, beams: int) -> TokenTable:
    """Repeat every example's rows for its beams: [B · beams, …]."""
    if beams == 1:
        return reading
    return TokenTable(
        reading.last_hidden_state, *(rows.repeat_interleave(beams, 0) for rows in reading[1:])
    )


def _unread(reading: TokenTable) -> Tensor:
    """Return a placeholder [B, 1, D] for a memory whose keys and values are cached: only its shape is used."""
    return reading.pooled[:, :1]


def split_at_segments(num_done: int, count: int, length: int) -> list[int]:
    """Split `count` tokens after `num_done` ones at segment boundaries: 3 done, 6 more, segments of 4 → [1, 4, 1]."""
    sizes = []
    while count > 0:
        sizes.append(min(count, length - num_done % length))
        num_done, count = num_done + sizes[-1], count - sizes[-1]
    return sizes


def draw_units(batch: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """Return a batch with a random share of its units; the others are absent, and their labels do not count.

    Choice, not in the paper: a step then costs less, and the snippets of one text are much alike. `num_proxy_labels`
    becomes the expected number, so the loss has the expectation of that of all units.
    """
    in_sample = torch.rand(batch["unit_mask"].shape[:2]) < share
    expected = (batch["num_proxy_labels"] * share).round().clamp(min=1).long()
    return {
        **batch,
        "unit_mask": batch["unit_mask"] & in_sample[..., None],
        "num_proxy_labels": expected,
    }
