"""Steps of a search: a decoder like BART's, run over the tokens that follow those in a cache.

Letters: Q query rows, R memory rows, T new tokens, S memory tokens, H heads, D width, E width of a head.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers.models.pegasus.modeling_pegasus import PegasusAttention, PegasusDecoderLayer

from longsumbench.modeling.nn.folded_attention import CACHE, FoldedCache


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
