"""A decoder like BART's, run over the tokens that follow those in a cache.

Letters: Q query rows, R memory rows, T new tokens, S memory tokens, H heads, D width, E width of a head.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel
from transformers.models.pegasus.modeling_pegasus import PegasusAttention, PegasusDecoderLayer

from longsumbench.modeling.nn.folded_attention import FoldedCache
from longsumbench.modeling.nn.transformer_layer import apply_linear


def decode_steps(
    decoder: PreTrainedModel, ids: Tensor, memory: Tensor, mask: Tensor | None, cache: FoldedCache
) -> Tensor:
    """Run the stack of BART or Pegasus with folded cross-attention, without dropout.

    As the library, except: self-attention has one product for queries, keys and values, its cache is written in place,
    and a single token needs no mask, for which a GPU would be waited for.

    Args:
        decoder: its layers are those of BART or Pegasus.
        ids: [Q, T].
        memory: [R, S, D].
        mask: [R or Q, 1, 1, S], in the form of the library; None: no mask.
        cache: of the earlier tokens; it gets these.

    Returns:
        [Q, T, D].
    """
    positions = torch.arange(cache.length, cache.length + ids.shape[1], device=ids.device)
    states = decoder.embed_tokens(ids) * getattr(decoder, "embed_scale", 1.0)
    states = states + decoder.embed_positions(ids.shape, cache.length, position_ids=positions)
    if (norm := getattr(decoder, "layernorm_embedding", None)) is not None:
        states = norm(states)
    for layer in decoder.layers:
        states = _run_layer(layer, states, memory, mask, cache)
    cache.length += ids.shape[1]
    norm = getattr(decoder, "layer_norm", None)
    return states if norm is None else norm(states)


def _run_layer(layer: Any, states: Tensor, memory: Tensor, mask: Tensor | None, cache: FoldedCache) -> Tensor:
    def feed_forward(states: Tensor) -> Tensor:
        hidden = layer.activation_fn(apply_linear(states, layer.fc1.weight, layer.fc1.bias))
        return apply_linear(hidden, layer.fc2.weight, layer.fc2.bias)

    parts = (
        (layer.self_attn_layer_norm, lambda states: attend_to_target(layer.self_attn, states, cache)),
        (layer.encoder_attn_layer_norm, lambda states: layer.encoder_attn(states, memory, mask, cache)[0]),
        (layer.final_layer_norm, feed_forward),
    )
    for norm, function in parts:
        if isinstance(layer, PegasusDecoderLayer):
            states = states + function(norm(states))
        else:
            states = norm(states + function(states))
    return states


def attend_to_target(attention: PegasusAttention, states: Tensor, cache: FoldedCache) -> Tensor:
    """Attend from new target tokens to all up to themselves: [Q, T, D] → [Q, T, D]."""
    queries, length, width = states.shape
    new = apply_linear(states, *_joined_weights(attention, cache))
    new = new.view(queries, length, 3, attention.num_heads, attention.head_dim).permute(2, 0, 3, 1, 4)
    keys, values = cache.append(attention.layer_idx, new[1:])
    mask = None
    if length > 1:
        mask = torch.ones(length, keys.shape[2], dtype=torch.bool, device=states.device).tril(keys.shape[2] - length)
    attended = F.scaled_dot_product_attention(new[0], keys, values, mask, scale=attention.scaling)
    attended = attended.transpose(1, 2).reshape(queries, length, width)
    return apply_linear(attended, attention.out_proj.weight, attention.out_proj.bias)


def _joined_weights(attention: PegasusAttention, cache: FoldedCache) -> tuple[Tensor, Tensor]:
    """Return weight and bias of queries, keys and values together; they are joined once for a search."""
    if attention.layer_idx not in cache.joined:
        projections: list[nn.Linear] = [attention.q_proj, attention.k_proj, attention.v_proj]
        weight, bias = (torch.cat([getattr(one, name) for one in projections]) for name in ("weight", "bias"))
        cache.joined[attention.layer_idx] = weight, bias
    return cache.joined[attention.layer_idx]
