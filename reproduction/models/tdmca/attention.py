"""T-DMCA's two kinds of causal attention, each in two passes: over a source, then over the target that follows it.

    local attention       a token attends to the tokens of its block, up to itself
    compressed attention  a token attends to windows of a few tokens, each of one key and one value

Letters: R rows, B examples, K beams, Q = B·K rows, S source tokens, T target tokens, L tokens, w tokens of a window,
W windows of the source, n complete windows of the target, H heads, E width of a head, D width.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PegasusConfig

from longsumbench.modeling.nn.folded_attention import FoldedAttention, FoldedCache
from longsumbench.modeling.nn.initialization import OwnInitialization


class CompressedWindows(NamedTuple):
    """Keys and values of the source in a compressed layer: those of its first token, then those of the windows."""

    keys: Tensor  # [B, H, 1 + W, E]
    values: Tensor  # [B, H, 1 + W, E]
    mask: Tensor  # [B, 1 + W], True where a source token is real


class Compression(nn.Conv1d, OwnInitialization):
    """As Conv1d, except: the stride equals the kernel size w; [R, L, D] → [R, L // w, D], empty for L < w."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__(width, width, window, stride=window)

    def reset_parameters(self) -> None:
        """Initialize as a linear layer."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)  # type: ignore[arg-type]  # it has a bias

    def forward(self, states: Tensor) -> Tensor:
        """Compress every complete window to one vector, in one matrix product."""
        rows, length, width = states.shape
        window = self.kernel_size[0]
        count = length // window
        windows = states[:, : count * window].reshape(rows, count, window * width)
        return F.linear(windows, self.weight.transpose(1, 2).flatten(1), self.bias)


class CausalAttention(FoldedAttention):
    """As FoldedAttention, except: it attends in two passes, over the source and over the target."""

    def __init__(self, config: PegasusConfig, index: int) -> None:
        sizes = (config.d_model, config.encoder_attention_heads, config.attention_dropout)
        super().__init__(*sizes, is_decoder=True, config=config, layer_idx=index)

    def project(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values: [R, L, D] → three of [R, H, L, E]."""
        return (
            self.by_head(self.q_proj(states)),
            self.by_head(self.k_proj(states)),
            self.by_head(self.v_proj(states)),
        )

    def project_target(
        self, states: Tensor, cache: FoldedCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries of these target tokens, and keys and values of them and those before."""
        queries, keys, values = self.project(states)
        if cache is not None:
            keys, values = cache.append(self.layer_idx, torch.stack([keys, values]))
        return queries, keys, values

    def joined(self, states: Tensor) -> Tensor:
        """Join the heads and project: [R, H, L, E] → [R, L, D]."""
        output: Tensor = self.out_proj(states.transpose(1, 2).flatten(2))
        return output

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Attend with the library's fused attention.

        Args:
            queries: [R, H, L, E].
            keys: [R, H, M, E].
            values: [R, H, M, E].
            mask: [L, M], True where a key may be attended to; None: causal self-attention.

        Returns:
            [R, L, D].
        """
        probability = self.dropout if self.training else 0.0
        return self.joined(
            F.scaled_dot_product_attention(queries, keys, values, mask, probability, mask is None)
        )


class LocalAttention(CausalAttention):
    """Causal attention within blocks of `block_length` tokens; the target begins a block."""

    def __init__(self, config: PegasusConfig, index: int, block_length: int) -> None:
        super().__init__(config, index)
        self.block_length = block_length

    def remember(self, states: Tensor, mask: Tensor) -> None:
        """Return None: no target token is in a block of the source."""

    def over_source(self, states: Tensor, windows: None) -> Tensor:
        """Attend block by block, at a cost linear in the length: [B, S, D] → [B, S, D]."""
        rows, length, width = states.shape
        size = min(length, self.block_length)
        blocks = F.pad(states, (0, 0, 0, -length % size)).view(-1, size, width)
        return self.attend(*self.project(blocks), None).view(rows, -1, width)[:, :length]

    def over_target(self, states: Tensor, windows: None, cache: FoldedCache | None) -> Tensor:
        """Attend from the target tokens after those in the cache: [Q, T, D] → [Q, T, D]."""
        queries, keys, values = self.project_target(states, cache)
        every = torch.arange(keys.shape[2], device=states.device)
        positions = every[-states.shape[1] :, None]  # [T, 1]
        mask = (every <= positions) & (every // self.block_length == positions // self.block_length)
        return self.attend(queries, keys, values, mask)


class CompressedAttention(CausalAttention):
    """Causal attention to complete windows of w keys and values, and to the first token."""

    def __init__(self, config: PegasusConfig, index: int, window: int) -> None:
        super().__init__(config, index)
        self.window = window
        self.key_compression = Compression(config.d_model, window)
        self.value_compression = Compression(config.d_model, window)

    def remember(self, states: Tensor, mask: Tensor) -> CompressedWindows:
        """Compress the source, its last window padded with zeros: [B, S, D], [B, S]."""
        filled = -mask.shape[1] % self.window
        sides = []
        for project in (self.k_proj, self.v_proj):
            real = project(states).masked_fill(~mask[..., None], 0.0)
            sides.append(self.by_head(F.pad(real, (0, 0, 0, filled))))
        return CompressedWindows(
            *self.compress(*sides), torch.cat([mask[:, :1], mask[:, :: self.window]], 1)
        )

    def compress(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first token, then the complete windows: [R, H, L, E] → [R, H, 1 + L // w, E]."""
        sides = []
        for states, compression in (
            (keys, self.key_compression),
            (values, self.value_compression),
        ):
            tokens = states.transpose(1, 2).flatten(2)
            sides.append(self.by_head(torch.cat([tokens[:, :1], compression(tokens)], 1)))
        return sides[0], sides[1]

    def over_source(self, states: Tensor, windows: CompressedWindows) -> Tensor:
        """Attend to the windows of the source: [B, S, D] → [B, S, D]."""
        queries = self.by_head(self.q_proj(states))
        mask = self.complete(0, states.shape[1], windows.keys)
        return self.attend(queries, windows.keys, windows.values, mask)

    def over_target(
        self, states: Tensor, windows: CompressedWindows, cache: FoldedCache | None
    ) -> Tensor:
        """Attend from the target tokens after those in the cache: [Q, T, D] → [Q, T, D].

        The beams of an example share the windows of its source. One softmax is over these and the beam's own windows.
        """
        queries, *sides = self.project_target(states, cache)
        keys, values = self.compress(*sides)
        count, length, _ = states.shape
        beams = count // len(windows.keys)
        queries = queries * self.scaling
        # The scores of the source's windows, then of the target's.
        source_scores = _folded(queries, beams) @ windows.keys.transpose(-1, -2)
        source_scores = _unfolded(source_scores, beams)  # [Q, H, T, 1 + W]
        scores = torch.cat([source_scores, queries @ keys.transpose(-1, -2)], -1)
        real = windows.mask.repeat_interleave(beams, 0)[:, None, None]
        real = real.expand(-1, 1, length, -1)
        past = 0 if cache is None else cache.length
        own_mask = self.complete(past, length, keys)
        own = own_mask.expand(count, 1, -1, -1)
        visible = torch.cat([real, own], -1)  # [Q, 1, T, 1 + W + 1 + n]
        # One softmax over the windows of source and target.
        precise = torch.promote_types(scores.dtype, torch.float32)
        weights = scores.masked_fill(~visible, -torch.inf).softmax(-1, precise).to(values.dtype)
        weights = F.dropout(weights, self.dropout, self.training)
        on_source, on_target = torch.split(weights, [real.shape[-1], own_mask.shape[-1]], -1)
        source_values = _unfolded(_folded(on_source, beams) @ windows.values, beams)
        return self.joined(source_values + on_target @ values)

    def complete(self, past: int, length: int, keys: Tensor) -> Tensor:
        """Return a mask of the first key and of the windows that end at each token or before it.

        Args:
            past: number of tokens before these.
            length: number of tokens, L.
            keys: [R, H, 1 + windows, E].

        Returns:
            [L, 1 + windows], True where a key may be attended to.
        """
        ends = torch.arange(keys.shape[2], device=keys.device) * self.window - 1
        return ends <= torch.arange(past, past + length, device=keys.device)[:, None]


def _folded(states: Tensor, beams: int) -> Tensor:
    """Join the K beams of each example: [Q, H, T, E] → [B, H, K·T, E]."""
    return torch.unflatten(states, 0, (-1, beams)).transpose(1, 2).flatten(2, 3)


def _unfolded(states: Tensor, beams: int) -> Tensor:
    """Undo `_folded`: [B, H, K·T, E] → [Q, H, T, E]."""
    return torch.unflatten(states, 2, (beams, -1)).transpose(1, 2).flatten(0, 1)
