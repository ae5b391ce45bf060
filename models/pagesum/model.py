"""PageSum's network: a BART whose encoder and decoder see one page at a time, and whose pages are mixed at every step.

    page-wise (§3)   every page: encoder → decoder → hidden state and confidence; mixed → one output projection
    global (Table 7) every page: encoder; all pages one behind the other → one ordinary decoder → output projection

Letters: B examples, K beams, Q = B·K rows, P pages of an example, R real pages of the batch, L page tokens, T target
tokens, N real tokens of the batch, S memory tokens, D width, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import BartConfig
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.models.bart.modeling_bart import (
    BartForConditionalGeneration,
    BartLearnedPositionalEmbedding,
    shift_tokens_right,
)

from longsumbench.nn.folded_attention import FoldedAttention, FoldedCache, FoldedGeneration
from longsumbench.nn.losses import token_cross_entropy
from longsumbench.nn.masks import attention_mask
from longsumbench.nn.unit_encoder import Memory, UnitEncoder, gather, pieces, spread

# Share of a piece that may be padding, about: pages differ in length more than snippets do. In the decoder most of the
# work is the target's, the same for every page.
PADDING, DECODER_PADDING = 0.15, 0.5
RECOMPUTED = 512  # tokens that checkpointing computes twice: of larger pieces it would hold more than of whole layers


@strict
class PageSumModelConfig(BartConfig):
    """As BartConfig, plus how pages are decoded, what training feeds first, and its label smoothing."""

    model_type = "longsumbench-pagesum"

    decoding: str = "page"
    official: bool = False
    label_smoothing: float = 0.0


class Pages(NamedTuple):
    """Encoded pages.

    Attributes:
        last_hidden_state: [N, D], the states of all real tokens of the batch.
        starts: [B, P], the row of a page's first token in it.
        lengths: [B, P], a page's tokens; 0 for an absent one.
    """

    last_hidden_state: Tensor
    starts: Tensor
    lengths: Tensor

    @property
    def real(self) -> Tensor:
        """[B, P], True where a page is there."""
        return self.lengths > 0

    def memory(self, together: bool, cached: bool = False) -> Memory:
        """Return what a decoder attends to.

        Args:
            together: whether a row is an example's pages, one behind the other, [B, S, D], or a real page, [R, L, D].
            cached: whether a cache holds its keys and values: then only its mask and its number of rows are right.
        """
        starts, lengths = self.starts, self.lengths
        if not together:
            starts, lengths = starts[self.real][:, None], lengths[self.real][:, None]
        tokens = spread(starts, lengths)
        if cached:
            return Memory(self.last_hidden_state[:1].expand(len(starts), 1, -1), tokens.mask)
        return gather(self.last_hidden_state, tokens.positions, tokens.mask)


class Decoded(NamedTuple):
    """What the decoder made of its input.

    Attributes:
        hidden: [Q, T, D], the pages mixed (PageSum, Eq. 9).
        confidences: [B, P, K, T], 0 for an absent page; None where there are none, as in global decoding.
    """

    hidden: Tensor
    confidences: Tensor | None = None


class PageEncoder(UnitEncoder):
    """As BartEncoder, except: it takes pages, encodes each alone from position 0, and never computes absent ones."""

    padding = PADDING
    recomputed = RECOMPUTED

    def __init__(self, config: PageSumModelConfig) -> None:
        super().__init__(config, norm_first=False)
        self.embed_positions = BartLearnedPositionalEmbedding(config.max_position_embeddings, config.d_model)
        self.layernorm_embedding = nn.LayerNorm(config.d_model)

    def forward(  # type: ignore[override]  # pages are not joined yet
        self, input_ids: Tensor, unit_mask: Tensor, **kwargs: Any
    ) -> Pages:
        """Encode every real page alone.

        Args:
            input_ids: [B, P, L].
            unit_mask: [B, P, L], True where a token is real.
            **kwargs: not used; `generate` hands over all it was given.
        """
        table = self.encode(input_ids, unit_mask)
        return Pages(table.states, table.starts, table.lengths)

    def embed(self, input_ids: Tensor) -> Tensor:
        """Return embeddings with positions, normalized: [r, L] → [r, L, D]."""
        positions = self.embed_positions(input_ids)
        embedded: Tensor = self.layernorm_embedding(self.embed_alone(input_ids) + positions)
        return embedded


class PageCache(FoldedCache):
    """As FoldedCache, except: a beam's own keys and values stand in a row for each page of its document.

    Attributes:
        documents: [R], whose page a row is; None before there is one.
        num_documents: B.
    """

    def __init__(self, *caches: Any) -> None:
        super().__init__(*caches)
        self.documents: Tensor | None = None
        self.num_documents = 0

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the beams' own keys and values: `beam_idx` [B·K] names beams, the cache holds R·K rows."""
        if self.documents is not None:
            beams = len(beam_idx) // self.num_documents
            chosen = beam_idx.view(-1, beams)[self.documents] - self.documents[:, None] * beams  # [R, K], 0 … K - 1
            first = torch.arange(len(chosen), device=beam_idx.device)[:, None] * beams
            beam_idx = (first + chosen).flatten()
        super().reorder_cache(beam_idx)


def is_filled(cache: FoldedCache | None) -> bool:
    """Tell whether a cache holds the memory's keys and values."""
    return cache is not None and bool(cache.is_updated.get(0))


def confidences(scores: Tensor, real: Tensor) -> Tensor:
    """Normalize scores over an example's pages (PageSum, Eq. 8).

    Args:
        scores: [R, K, T], of the real pages in their order.
        real: [B, P], True where a page is there.

    Returns:
        [B, P, K, T], 0 for an absent page.
    """
    dense = scores.new_full((*real.shape, *scores.shape[1:]), float("-inf"), dtype=torch.float32)
    dense[real] = scores.float()
    return dense.softmax(1)


def mix(hidden: Tensor, weights: Tensor, real: Tensor) -> Tensor:
    """Add up an example's pages, each by its confidence (PageSum, Eq. 9).

    Args:
        hidden: [R, K, T, D].
        weights: [B, P, K, T].
        real: [B, P].

    Returns:
        [B, K, T, D].
    """
    documents = real.nonzero()[:, 0]  # [R]
    weighted = weights[real].to(hidden.dtype)[..., None] * hidden
    return hidden.new_zeros(len(real), *hidden.shape[1:]).index_add(0, documents, weighted)


class PageSumForConditionalGeneration(FoldedGeneration, BartForConditionalGeneration):
    """As BART, except: it reads pages, and one linear layer more weighs what each page's decoder says (Eqs. 6–9).

    The beams of an example share the keys and values of its pages.
    """

    config_class = PageSumModelConfig
    config: PageSumModelConfig
    cache_class = PageCache

    def __init__(self, config: PageSumModelConfig) -> None:
        super().__init__(config)
        self.model.encoder = PageEncoder(config)
        for index, layer in enumerate(self.model.decoder.layers):
            layer.encoder_attn = FoldedAttention(
                config.d_model,
                config.decoder_attention_heads,
                config.attention_dropout,
                is_decoder=True,
                config=config,
                layer_idx=index,
            )
        self.confidence = nn.Linear(config.d_model, 1)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        unit_mask: Tensor | None = None,
        unit_documents: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: Pages | None = None,
        past_key_values: FoldedCache | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """Predict every next target token.

        Args:
            input_ids: [B, P, L]; not read when `encoder_outputs` are given.
            unit_mask: [B, P, L], True where a token is real; likewise. Every example has a page.
            unit_documents: not used; part of every UnitBatch.
            labels: [B, T], -100 where there is no target token.
            decoder_input_ids: [Q, T]; None: the labels, shifted right behind the start token.
            encoder_outputs: the encoder's, B rows, however many beams there are.
            past_key_values: the decoder's cache.
            use_cache: whether to fill it.
            num_items_in_batch: target tokens of the whole optimizer step (see `token_cross_entropy`).
            **kwargs: what `generate` hands over beside.

        Returns:
            `loss` in nats per target token, when labels are given; `logits` [Q, T, V]; the cache.
        """
        if encoder_outputs is None:
            encoder_outputs = self.model.encoder(input_ids=input_ids, unit_mask=unit_mask)
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None:
                decoder_input_ids = self.shifted(labels)
        if decoder_input_ids is None:
            raise TypeError("labels or decoder_input_ids are needed: the decoder predicts what follows them")
        if not use_cache:
            past_key_values = None
        elif past_key_values is None:
            past_key_values = self.new_cache()
        decoded = self.decode(encoder_outputs, decoder_input_ids, past_key_values)
        logits = self.project(decoded.hidden)
        loss = None
        if labels is not None:
            smoothing = self.config.label_smoothing if self.training else 0.0
            loss = token_cross_entropy(logits, labels, num_items_in_batch, smoothing)
        return Seq2SeqLMOutput(loss=loss, logits=logits, past_key_values=past_key_values)

    def shifted(self, labels: Tensor) -> Tensor:
        """Return what training feeds for some labels.

        The default feeds `</s> <s> …` and predicts `<s> … </s>`, as writing does. The release feeds `<s> …` and
        predicts `… </s>`, though writing starts with `</s> <s>`.
        """
        config = self.config
        start = config.bos_token_id if config.official else config.decoder_start_token_id
        ids: Tensor = shift_tokens_right(labels, config.pad_token_id, start)
        return ids

    def decode(self, pages: Pages, ids: Tensor, cache: FoldedCache | None = None) -> Decoded:
        """Run the decoder over tokens that follow those in the cache: [Q, T]."""
        if self.config.decoding == "global":
            return Decoded(self.run_decoder(ids, pages.memory(together=True, cached=is_filled(cache)), cache))
        real = pages.real
        documents = real.nonzero()[:, 0]  # [R]
        beams = len(ids) // len(real)
        rows = ids.view(len(real), beams, -1)[documents]  # [R, K, T]
        if isinstance(cache, PageCache):
            cache.documents, cache.num_documents = documents, len(real)
        hidden = self.decode_pages(pages, rows, cache)  # [R, K, T, D]
        weights = confidences(self.confidence(hidden).squeeze(-1), real)  # [B, P, K, T]
        return Decoded(mix(hidden, weights, real).flatten(0, 1), weights)

    def decode_pages(self, pages: Pages, rows: Tensor, cache: FoldedCache | None) -> Tensor:
        """Let every real page predict alone (PageSum, Eq. 6): [R, K, T] → [R, K, T, D].

        Without a cache pages of similar length are decoded together, so that little of their memory is padding.
        """
        memory, lengths = pages.memory(together=False, cached=is_filled(cache)), pages.lengths[pages.real]
        if cache is not None:
            return self.run_decoder(rows.flatten(0, 1), memory, cache).view(*rows.shape, -1)
        order = lengths.argsort(descending=True, stable=True)
        hidden = []
        for some, longest in pieces(lengths[order].tolist(), DECODER_PADDING):
            chosen = order[some]
            read = Memory(memory.last_hidden_state[chosen, :longest], memory.mask[chosen, :longest])
            of_pages = self.run_decoder(rows[chosen].flatten(0, 1), read, None)
            hidden.append(of_pages.view(len(chosen), *rows.shape[1:], -1))
        return torch.cat(hidden)[order.argsort()]

    def run_decoder(self, ids: Tensor, memory: Memory, cache: FoldedCache | None) -> Tensor:
        """Run the decoder's stack: [R·K, T], memory of R rows → [R·K, T, D]."""
        mask = memory.mask
        output: Tensor = self.model.decoder(
            input_ids=ids,
            encoder_hidden_states=memory.last_hidden_state,
            encoder_attention_mask=None if bool(mask.all()) else attention_mask(mask, self.config, self.dtype),
            past_key_values=cache,
            use_cache=cache is not None,
        ).last_hidden_state
        return output

    def project(self, hidden: Tensor) -> Tensor:
        """Return logits: [Q, T, D] → [Q, T, V]."""
        logits: Tensor = self.lm_head(hidden) + self.final_logits_bias
        return logits
