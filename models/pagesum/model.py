"""PageSum's network: a BART that encodes and decodes each page separately and mixes the pages at every step.

    page-wise (§3)   every page: encoder → decoder → hidden state and confidence; mixed → one output projection
    global (Table 7) every page: encoder; all pages concatenated → one ordinary decoder → output projection

Letters: B examples, K beams, Q = B·K rows, P pages of an example, R real pages of the batch, L page tokens, T target
tokens, N real tokens of the batch, S memory tokens, D width, V vocabulary.
"""

from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import BartConfig
from transformers.models.bart import modeling_bart

from longsumbench.modeling.nn.encoder_decoder import Decoded, UnitsToText, fold_cross_attention
from longsumbench.modeling.nn.folded_attention import FoldedCache
from longsumbench.modeling.nn.masks import at_least_single
from longsumbench.modeling.nn.unit_encoder import Memory, TokenTable, UnitEncoder, pieces, spread_units

# Approximate share of a piece that may be padding: pages differ in length more than snippets do. Most of the decoder's
# work is on the target, the same for every page.
_PADDING, _DECODER_PADDING = 0.15, 0.5
_RECOMPUTED = 512  # tokens that checkpointing computes twice: larger pieces would need more memory than whole layers


@strict
class PageSumModelConfig(BartConfig):
    """As BartConfig, plus how pages are decoded, the first token in training, and the label smoothing."""

    model_type = "longsumbench-pagesum"

    decoding: str = "page"
    official: bool = False
    label_smoothing: float = 0.0


def page_memory(pages: TokenTable, together: bool, cached: bool = False) -> Memory:
    """Return the memory that a decoder attends to.

    Args:
        pages: encoded pages.
        together: True: a row holds all pages of an example, [B, S, D]; False: one real page, [R, L, D].
        cached: True if a cache holds the keys and values: then only the mask and the number of rows are valid.
    """
    if not together:
        pages = pages._replace(starts=pages.starts[pages.real][:, None], lengths=pages.lengths[pages.real][:, None])
    if cached:
        mask = spread_units(pages.starts, pages.lengths).mask
        return Memory(pages.last_hidden_state[:1].expand(len(mask), 1, -1), mask)
    return pages.memory()


class PageEncoder(UnitEncoder):
    """As BartEncoder, except: it encodes each real page alone, from position 0, and skips absent pages."""

    padding = _PADDING
    recomputed = _RECOMPUTED

    def __init__(self, config: PageSumModelConfig) -> None:
        super().__init__(config, norm_first=False)
        self.embed_positions = modeling_bart.BartLearnedPositionalEmbedding(
            config.max_position_embeddings, config.d_model
        )
        self.layernorm_embedding = nn.LayerNorm(config.d_model)

    def forward(  # type: ignore[override]  # pages are not joined yet
        self, input_ids: Tensor, unit_mask: Tensor, **kwargs: Any
    ) -> TokenTable:
        """Encode every real page alone.

        Args:
            input_ids: [B, P, L].
            unit_mask: [B, P, L], True where a token is real.
            **kwargs: not used; `generate` passes all its arguments.
        """
        return self.encode(input_ids, unit_mask)

    def embed(self, input_ids: Tensor, places: Tensor) -> Tensor:
        """Return embeddings with positions, normalized: [r, L] → [r, L, D]."""
        positions = self.embed_positions(input_ids)
        embedded: Tensor = self.layernorm_embedding(self.embed_alone(input_ids) + positions)
        return embedded


class PageCache(FoldedCache):
    """As FoldedCache, except: a beam has a row of its keys and values for each page of its document."""

    documents: Tensor | None = None  # [R], the document of each page; None before the first pass
    num_documents = 0  # B

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the keys and values of the beams: `beam_idx` [B·K] numbers beams, the cache holds R·K rows."""
        if self.documents is not None:
            beams = len(beam_idx) // self.num_documents
            numbers = beam_idx.view(-1, beams)[self.documents] - self.documents[:, None] * beams  # [R, K], 0 … K - 1
            first = torch.arange(len(numbers), device=beam_idx.device)[:, None] * beams
            beam_idx = (first + numbers).flatten()
        super().reorder_cache(beam_idx)


def _is_filled(cache: FoldedCache | None) -> bool:
    return cache is not None and bool(cache.is_updated.get(0))


def confidences(scores: Tensor, real: Tensor) -> Tensor:
    """Normalize scores over an example's pages (PageSum, Eq. 8).

    Args:
        scores: [R, K, T], of the real pages, in order.
        real: [B, P], True where a page is real.

    Returns:
        [B, P, K, T], 0 for an absent page.
    """
    scores = at_least_single(scores)
    dense = scores.new_full((*real.shape, *scores.shape[1:]), float("-inf"))
    dense[real] = scores
    return dense.softmax(1)


def mix(hidden: Tensor, weights: Tensor, real: Tensor) -> Tensor:
    """Sum an example's pages, weighted by confidence (PageSum, Eq. 9).

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


class PageSumForConditionalGeneration(UnitsToText, modeling_bart.BartForConditionalGeneration):
    """As BART, except: it reads pages, and one more linear layer scores each page's decoder state (Eqs. 6–9).

    The beams of an example share the keys and values of its pages.
    """

    config_class = PageSumModelConfig
    config: PageSumModelConfig
    cache_class = PageCache

    def __init__(self, config: PageSumModelConfig) -> None:
        super().__init__(config)
        self.model.encoder = PageEncoder(config)
        fold_cross_attention(self.model.decoder, config)
        self.confidence = nn.Linear(config.d_model, 1)
        self.post_init()

    def shifted(self, labels: Tensor) -> Tensor:
        """Return the decoder input of training for some labels.

        The default feeds `</s> <s> …` and predicts `<s> … </s>`, as generation does. The released code feeds `<s> …`
        and predicts `… </s>`, although its generation starts with `</s> <s>`.
        """
        config = self.config
        start = config.bos_token_id if config.official else config.decoder_start_token_id
        ids: Tensor = modeling_bart.shift_tokens_right(labels, config.pad_token_id, start)
        return ids

    def decode(self, reading: TokenTable, ids: Tensor, cache: FoldedCache | None = None, **context: Any) -> Decoded:
        """Run the decoder over the tokens after those in the cache: [Q, T].

        `unit_scores` of the output are the confidences [B, P, K, T], 0 for an absent page; None in global decoding.
        """
        if self.config.decoding == "global":
            return Decoded(self.run_decoder(ids, *page_memory(reading, True, _is_filled(cache)), cache))
        real = reading.real
        documents = real.nonzero()[:, 0]  # [R]
        beams = len(ids) // len(real)
        rows = ids.view(len(real), beams, -1)[documents]  # [R, K, T]
        if isinstance(cache, PageCache):
            cache.documents, cache.num_documents = documents, len(real)
        hidden = self.decode_pages(reading, rows, cache)  # [R, K, T, D]
        weights = confidences(self.confidence(hidden).squeeze(-1), real)  # [B, P, K, T]
        return Decoded(mix(hidden, weights, real).flatten(0, 1), weights)

    def decode_pages(self, pages: TokenTable, rows: Tensor, cache: FoldedCache | None) -> Tensor:
        """Decode every real page separately (PageSum, Eq. 6): [R, K, T] → [R, K, T, D].

        Without a cache, pages of similar length are decoded together, to reduce padding.
        """
        memory, lengths = page_memory(pages, False, _is_filled(cache)), pages.lengths[pages.real]
        if cache is not None:
            return self.run_decoder(rows.flatten(0, 1), *memory, cache).view(*rows.shape, -1)
        order = lengths.argsort(descending=True, stable=True)
        hidden = []
        for some, longest in pieces(lengths[order].tolist(), _DECODER_PADDING):
            indices = order[some]
            memory_piece = Memory(memory.last_hidden_state[indices, :longest], memory.mask[indices, :longest])
            decoded = self.run_decoder(rows[indices].flatten(0, 1), *memory_piece, None)
            hidden.append(decoded.view(len(indices), *rows.shape[1:], -1))
        return torch.cat(hidden)[order.argsort()]

    def run_decoder(self, ids: Tensor, memory: Tensor, mask: Tensor | None, cache: FoldedCache | None) -> Tensor:
        """As in the base class, except: a mask without False is dropped, because attention is faster without a mask."""
        return super().run_decoder(ids, memory, None if mask is None or bool(mask.all()) else mask, cache)
