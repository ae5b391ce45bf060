"""Cross-attention between different numbers of rows: beams share a document's memory, or each segment has a memory.

Letters: Q query rows, R key rows, K beams of a document, H heads, T target tokens, S memory tokens, D width.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    LogitsProcessor,
    LogitsProcessorList,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
)
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.models.pegasus.modeling_pegasus import PegasusAttention

from longsumbench.modeling.nn.masks import at_least_single, masked_scores

# the name of a cache in the arguments and outputs of transformers, since 5.24 and before
CACHE = "cache" if "cache" in Seq2SeqLMOutput.__annotations__ else "past_key_values"
_ROOM = 16  # tokens by which the room of a cache grows


class FoldedAttention(PegasusAttention):
    """As PegasusAttention (the same as BART's), except: query rows are folded to the number of key rows.

    Q = R·K: the K beams of a document attend to one memory, whose keys and values are computed and cached once.
    R = Q·m: a row's T tokens are m segments of equal length, and each segment attends to a separate memory.

    `recorded_attention` records the weights. A subclass with another kind of attention returns its weights as the
    second output: [R, H, K·T, S], as the attention functions of transformers do.
    """

    recorded_weights: list[Tensor] | None = None  # of each call while they are recorded

    def forward(
        self,
        hidden_states: Tensor,
        key_value_states: Tensor,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            hidden_states: [Q, T, D].
            key_value_states: [R, S, D]; only R is used if the cache is filled.
            attention_mask: [R or Q, 1, 1, S], True where a token may be attended to.
            **kwargs: other arguments of PegasusAttention.
        """
        queries, length, width = hidden_states.shape
        rows = key_value_states.shape[0]
        if queries > rows and attention_mask is not None and attention_mask.shape[0] == queries:
            # each beam keeps its own mask: [R, 1, K·T, S]
            beams, memory = queries // rows, attention_mask.shape[-1]
            per_beam = attention_mask.view(rows, beams, 1, memory)
            per_token = per_beam.expand(rows, beams, length, memory)
            attention_mask = per_token.reshape(rows, 1, beams * length, memory)
        folded = hidden_states.reshape(rows, -1, width)  # [R, K·T, D] or [R, T/m, D]
        output, weights = super().forward(
            folded, key_value_states=key_value_states, attention_mask=attention_mask, **kwargs
        )
        if self.recorded_weights is not None:
            recorded = weights
            if recorded is None:
                cache = kwargs.get(CACHE)
                recorded = self.weigh(folded, key_value_states, attention_mask, cache)
            self.recorded_weights.append(recorded)
        return output.view(queries, length, width), weights

    def weigh(
        self,
        folded: Tensor,
        key_value_states: Tensor,
        attention_mask: Tensor | None,
        cache: EncoderDecoderCache | None,
    ) -> Tensor:
        """Compute the attention weights, which fused attention does not return.

        Args:
            folded: [R, K·T, D].
            key_value_states: [R, S, D]; not read if there is a cache.
            attention_mask: [R, 1, K·T or 1, S], True for real tokens, or added to the scores.
            cache: filled.

        Returns:
            [R, H, K·T, S].
        """
        if cache is None:
            keys = self.by_head(self.k_proj(key_value_states))
        else:
            keys = cache.cross_attention_cache.layers[self.layer_idx].keys  # [R, H, S, D/H]
        scores = self.by_head(self.q_proj(folded)) @ keys.transpose(-1, -2) * self.scaling
        weights: Tensor = at_least_single(masked_scores(scores, attention_mask)).softmax(-1)
        return weights

    def by_head(self, states: Tensor) -> Tensor:
        """Split the heads: [R, T, D] → [R, H, T, D/H]."""
        return states.view(*states.shape[:-1], self.num_heads, self.head_dim).transpose(1, 2)


@contextmanager
def recorded_attention(attention: FoldedAttention) -> Iterator[list[Tensor]]:
    """Record the weights of each call within the context; the output stays the same."""
    attention.recorded_weights = []
    try:
        yield attention.recorded_weights
    finally:
        attention.recorded_weights = None


@contextmanager
def recorded(model: nn.Module, kind: type[nn.Module]) -> Iterator[list[Any]]:
    """Record the outputs of all modules of a class, for the evidence, within the context and in the order of calls."""
    outputs: list[Any] = []
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
        for module in model.modules()
        if isinstance(module, kind)
    ]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


class FoldedCache(EncoderDecoderCache):
    """As EncoderDecoderCache, except: the memory's rows are documents, so reordering beams does not move them.

    The target's keys and values have room for later tokens, so that a step writes them in place.
    """

    # [Q, S], the sum of a beam's attention to each memory token so far; None: not used
    coverage: Tensor | None = None

    def __init__(self, *caches: Any) -> None:
        super().__init__(*caches)
        self.length = 0  # number of target tokens
        # layer → keys and values, [2, Q, H, `length` or more, E]
        self.target: dict[int, Tensor] = {}
        self.joined: dict[int, tuple[Tensor, Tensor]] = {}  # layer → the output of `join`

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the number of target tokens, the same in all layers."""
        return self.length

    def join(self, attention: PegasusAttention) -> tuple[Tensor, Tensor]:
        """Return weight and bias of queries, keys and values together: [3·D, D], [3·D]; made once for a search."""
        if attention.layer_idx not in self.joined:
            parts: list[nn.Linear] = [attention.q_proj, attention.k_proj, attention.v_proj]
            weight = torch.cat([part.weight for part in parts])
            bias = torch.cat([part.bias for part in parts])
            if torch.is_autocast_enabled(weight.device.type):  # converted once, not at every step
                dtype = torch.get_autocast_dtype(weight.device.type)
                weight, bias = weight.to(dtype), bias.to(dtype)
            self.joined[attention.layer_idx] = weight, bias
        return self.joined[attention.layer_idx]

    def append(self, layer: int, new: Tensor) -> Tensor:
        """Write keys and values of T tokens: [2, Q, H, T, E]; return those of all tokens. The length stays as it is."""
        end, rows = self.length + new.shape[3], self.target.get(layer)
        if rows is None or rows.shape[3] < end:
            grown = new.new_empty(*new.shape[:3], -(-end // _ROOM) * _ROOM, new.shape[4])
            if rows is not None:
                grown[:, :, :, : self.length] = rows[:, :, :, : self.length]
            rows = self.target[layer] = grown
        rows[:, :, :, self.length : end] = new
        return rows[:, :, :, :end]

    def cover(self, attention: Tensor) -> Tensor:
        """Add the attention of new steps [Q, S] to the coverage, and return the sum."""
        self.coverage = attention if self.coverage is None else self.coverage + attention
        return self.coverage

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Reorder the keys, values and coverage of the beams."""
        self.target = {layer: rows.index_select(1, beam_idx) for layer, rows in self.target.items()}
        if self.coverage is not None:
            self.coverage = self.coverage.index_select(0, beam_idx)


class LaterEnd(LogitsProcessor):
    """Forbids the end token in short outputs, as two processors of the library, which make a mask of the vocabulary."""

    def __init__(
        self, processor: MinLengthLogitsProcessor | MinNewTokensLengthLogitsProcessor
    ) -> None:
        if isinstance(processor, MinNewTokensLengthLogitsProcessor):
            self.min_length = processor.prompt_length_to_skip + processor.min_new_tokens
        else:
            self.min_length = processor.min_length
        self.end_ids = processor.eos_token_id  # a tensor

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Forbid: [Q, T], [Q, V] → [Q, V]."""
        if input_ids.shape[1] >= self.min_length:
            return scores
        return scores.index_fill(1, self.end_ids, -torch.inf)


class FoldedGeneration:
    """Mixin for models with `generate` and folded cross-attention: the encoder's output is not repeated for beams."""

    config: Any
    cache_class: type[FoldedCache] = FoldedCache

    def _expand_inputs_for_generation(
        self,
        expand_size: int = 1,
        is_encoder_decoder: bool = False,
        input_ids: Tensor | None = None,
        encoder_outputs: Any = None,
        **model_kwargs: Any,
    ) -> tuple[Tensor | None, dict[str, Any]]:
        # Only the start tokens are repeated; the units are already encoded.
        others = {name: model_kwargs[name] for name in model_kwargs if not name.startswith("unit_")}
        repeated = None if input_ids is None else input_ids.repeat_interleave(expand_size, dim=0)
        return repeated, {**others, "encoder_outputs": encoder_outputs}

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict[str, Any], *args: Any
    ) -> None:
        if generation_config.use_cache is not False:
            model_kwargs[CACHE] = self.new_cache()

    def new_cache(self) -> FoldedCache:
        """Return an empty cache."""
        return self.cache_class(DynamicCache(), DynamicCache())

    def _get_logits_processor(self, *args: Any, **kwargs: Any) -> LogitsProcessorList:
        """As in transformers, with `LaterEnd`."""
        processors = super()._get_logits_processor(*args, **kwargs)  # type: ignore[misc]  # a method of transformers
        kinds = MinLengthLogitsProcessor, MinNewTokensLengthLogitsProcessor
        for index, processor in enumerate(processors):
            if isinstance(processor, kinds):
                processors[index] = LaterEnd(processor)
        return cast(LogitsProcessorList, processors)
