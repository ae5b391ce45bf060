"""PageSum's network: a BART that encodes and decodes each page separately and mixes the pages at every step.

    page-wise (§3)   every page: encoder → decoder → hidden state and confidence; mixed → one output projection
    global (Table 7) every page: encoder; all pages concatenated → one ordinary decoder → output projection

Letters: B examples, K beams, Q = B·K rows, P pages of an example, R real pages of the batch, L page tokens, T target
tokens, N real tokens of the batch, S memory tokens, D width, V vocabulary.
"""

from itertools import chain
from typing import Any, NamedTuple

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BartConfig
from transformers.models.bart import modeling_bart

from longsumbench.modeling.nn.device import on_host, to_device
from longsumbench.modeling.nn.encoder_decoder import Decoded, UnitsToText, fold_cross_attention
from longsumbench.modeling.nn.folded_attention import FoldedCache
from longsumbench.modeling.nn.masks import at_least_single
from longsumbench.modeling.nn.unit_encoder import UnitEncoder, piece_tokens, pieces, spread_units

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


class Pages(NamedTuple):
    """Encoded pages of a batch, and what every decoder step needs of them. M is R, or B in global decoding.

    Real pages are in the order of their size, the longest first.
    """

    last_hidden_state: Tensor  # [N, D]
    lengths: Tensor  # [B, P], number of tokens of a page; 0 for an absent page
    sizes: list[int]  # number of tokens of the real pages, R of them
    places: Tensor  # [R], the index of each real page among all B·P
    positions: Tensor  # [M, S], the row of each memory token in `last_hidden_state`; 0 for padding
    mask: Tensor | None  # [M, S], True where a memory token is real; None: everywhere

    @property
    def documents(self) -> Tensor:
        """[R], the index of each real page's example."""
        return self.places // self.lengths.shape[1]

    def memory(self, cached: bool = False) -> tuple[Tensor, Tensor | None]:
        """Return memory and mask; if a cache has the keys and values, only the number of the memory's rows is valid."""
        if cached:
            return self.last_hidden_state[:1].expand(len(self.positions), 1, -1), self.mask
        return F.embedding(self.positions, self.last_hidden_state), self.mask

    def spread(self, rows: Tensor, absent: float) -> Tensor:
        """Arrange rows of real pages by example, with a value for absent pages: [R, …] → [B, P, …]."""
        if self.sizes[-1] < self.sizes[0] or len(rows) < self.lengths.numel():
            everywhere = rows.new_full((self.lengths.numel(), *rows.shape[1:]), absent)
            rows = everywhere.index_copy(0, self.places, rows)
        return rows.view(*self.lengths.shape, *rows.shape[1:])


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
    ) -> Pages:
        """Encode every real page alone.

        Args:
            input_ids: [B, P, L].
            unit_mask: [B, P, L], True where a token is real.
            **kwargs: not used; `generate` passes all its arguments.
        """
        table, together = self.encode(input_ids, unit_mask), self.config.decoding == "global"
        # Sizes are read on the CPU, where the collator left them: a GPU need not be waited for.
        lengths, device = on_host(table.lengths), table.lengths.device
        counts: list[list[int]] = lengths.tolist()
        sizes = sorted(filter(None, chain.from_iterable(counts)), reverse=True)
        places = to_device(
            lengths.flatten().argsort(descending=True, stable=True)[: len(sizes)], device
        )
        totals = list(map(sum, counts)) if together else sizes
        # One memory an example, or one a page.
        if together:
            positions, mask, *_ = spread_units(table.starts, table.lengths, max(1, *totals))
        else:
            steps = torch.arange(sizes[0], device=device)
            mask = steps < table.lengths.flatten()[places, None]
            positions = (table.starts.flatten()[places, None] + steps).masked_fill(~mask, 0)
        full = min(totals) == max(totals)  # attention is faster without a mask
        return Pages(
            table.last_hidden_state, table.lengths, sizes, places, positions, None if full else mask
        )

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
            # [R, K], 0 … K - 1
            numbers = beam_idx.view(-1, beams)[self.documents] - self.documents[:, None] * beams
            first = torch.arange(len(numbers), device=beam_idx.device)[:, None] * beams
            beam_idx = (first + numbers).flatten()
        super().reorder_cache(beam_idx)


def _is_filled(cache: FoldedCache | None) -> bool:
    return cache is not None and bool(cache.is_updated.get(0))


def confidences(scores: Tensor, pages: Pages) -> Tensor:
    """Normalize scores over an example's pages (PageSum, Eq. 8).

    Args:
        scores: [R, K, T], of the real pages.
        pages: their batch.

    Returns:
        [B, P, K, T], 0 for an absent page.
    """
    return pages.spread(at_least_single(scores), float("-inf")).softmax(1)


def mix(hidden: Tensor, weights: Tensor, pages: Pages) -> Tensor:
    """Sum an example's pages, weighted by confidence (PageSum, Eq. 9): [R, K, T, D], [B, P, K, T] → [B, K, T, D]."""
    return (weights.to(hidden.dtype)[..., None] * pages.spread(hidden, 0.0)).sum(1)


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

    def decode(
        self, reading: Pages, ids: Tensor, cache: FoldedCache | None = None, **context: Any
    ) -> Decoded:
        """Run the decoder over the tokens after those in the cache: [Q, T].

        `unit_scores` of the output are the confidences [B, P, K, T], 0 for an absent page; None in global decoding.
        """
        if self.config.decoding == "global":
            return Decoded(self.run_decoder(ids, *reading.memory(_is_filled(cache)), cache))
        # Every page continues its example's prefix, for all beams.
        rows = ids.view(len(reading.lengths), -1, ids.shape[-1])[reading.documents]  # [R, K, T]
        if isinstance(cache, PageCache):
            cache.documents, cache.num_documents = reading.documents, len(reading.lengths)
        hidden = self.decode_pages(reading, rows, cache)  # [R, K, T, D]
        weights = confidences(self.confidence(hidden).squeeze(-1), reading)  # [B, P, K, T]
        return Decoded(mix(hidden, weights, reading).flatten(0, 1), weights)

    def decode_pages(self, pages: Pages, rows: Tensor, cache: FoldedCache | None) -> Tensor:
        """Decode every real page separately (PageSum, Eq. 6): [R, K, T] → [R, K, T, D].

        Without a cache, pages of similar length are decoded together, to reduce padding.
        """
        if cache is not None:
            hidden = self.run_decoder(rows.flatten(0, 1), *pages.memory(_is_filled(cache)), cache)
            return hidden.view(*rows.shape, -1)
        decoded = []
        for some, longest in pieces(pages.sizes, _DECODER_PADDING, piece_tokens(rows.device)):
            mask = None
            if pages.mask is not None and pages.sizes[some][-1] < longest:
                mask = pages.mask[some, :longest]
            memory = F.embedding(pages.positions[some, :longest], pages.last_hidden_state)
            decoded.append(self.run_decoder(rows[some].flatten(0, 1), memory, mask, None))
        return torch.cat(decoded).view(*rows.shape, -1)
