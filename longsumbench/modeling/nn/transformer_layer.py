"""A Transformer layer with separately callable sub-layers, dropout with fast random numbers, and sinusoidal positions.

On processors other than Intel's, PyTorch draws numbers one by one: a third of a training step on a long document.

Letters: R rows, L tokens (or pooled units), D width.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PegasusConfig
from transformers.models.pegasus.modeling_pegasus import PegasusAttention, PegasusEncoderLayer

SMALLEST = 65_536  # values; PyTorch's dropout is as fast for smaller tensors
_DROP_LEVELS = 65_536  # possible probabilities: values of 16 random bits


def dropout(states: Tensor, probability: float, training: bool) -> Tensor:
    """Set values to zero with probability p, and scale the others by 1/(1 − p); return `states` outside training.

    The mask of a large tensor on the CPU comes from a fast generator that PyTorch's generator seeds. So runs are
    repeatable, and gradient checkpointing draws the same mask twice. There the probability is rounded to 1/65,536.
    """
    if not training or not probability:
        return states
    if states.device.type != "cpu" or states.numel() < SMALLEST:
        return F.dropout(states, probability)
    seed = int(torch.randint(2**63 - 1, ()))
    # 64 bits each, enough for four values
    words = np.random.SFC64(seed).random_raw(-(-states.numel() // 4))
    bits = torch.from_numpy(words.view(np.int16))[: states.numel()].view(states.shape)
    dropped = round(probability * _DROP_LEVELS)
    keep_mask = bits >= dropped - _DROP_LEVELS // 2
    return states * keep_mask.to(states.dtype).mul_(_DROP_LEVELS / (_DROP_LEVELS - dropped))


class TransformerLayer(PegasusEncoderLayer):
    """As PegasusEncoderLayer, except: without `norm_first`, the norms follow the sub-layers, as in BART."""

    def __init__(self, config: PegasusConfig, norm_first: bool) -> None:
        super().__init__(config)
        self.norm_first = norm_first

    def forward(self, states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Run the whole layer: [R, L, D] → [R, L, D]."""
        return self.conclude(self.relate(states, attention_mask))

    def relate(self, states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Run self-attention, with a mask in transformers' form: [R, L, D] → [R, L, D]."""
        return self.residual(
            states,
            self.self_attn_layer_norm,
            lambda x: attend(self.self_attn, x, None, attention_mask),
        )

    def conclude(self, states: Tensor) -> Tensor:
        """Run the feed-forward sub-layer: [R, L, D] → [R, L, D]."""
        return self.residual(states, self.final_layer_norm, self.feed_forward)

    def feed_forward(self, states: Tensor) -> Tensor:
        """Run the feed-forward network without norm and residual: [R, L, D] → [R, L, D]."""
        activated = dropout(
            self.activation_fn(self.fc1(states)), self.activation_dropout, self.training
        )
        changed: Tensor = self.fc2(activated)
        return changed

    def residual(
        self, states: Tensor, norm: nn.Module, function: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Add the output of a sub-layer to the states; the norm precedes or follows it."""
        if self.norm_first:
            return states + dropout(function(norm(states)), self.dropout, self.training)
        changed = dropout(function(states), self.dropout, self.training)
        normed: Tensor = norm(states + changed)
        return normed


def attend(
    attention: PegasusAttention, states: Tensor, keys: Tensor | None, attention_mask: Tensor | None
) -> Tensor:
    """Attend from the states to the keys; None: self-attention."""
    output: Tensor = attention(states, keys, attention_mask=attention_mask)[0]
    return output


def sinusoid(positions: Tensor, width: int, interleaved: bool = False) -> Tensor:
    """Return sinusoidal positions: sines of all frequencies in the first half, cosines in the second, as in Pegasus.

    Positions have any shape, from 0; the width D is even. With `interleaved`, sines and cosines alternate (Hierarchical
    Transformer, Eqs. 7–8). The output [..., D] is computed in float64, so that adjacent positions of long texts differ,
    and has torch's default precision.
    """
    # mps has no float64
    device = "cpu" if positions.device.type == "mps" else positions.device
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=device) / width
    angles = positions.to(device, torch.float64).unsqueeze(-1) / 10_000.0**exponents  # [..., D/2]
    waves = angles.sin(), angles.cos()
    table = torch.stack(waves, -1).flatten(-2) if interleaved else torch.cat(waves, -1)
    return table.to(torch.get_default_dtype()).to(positions.device)


class SinusoidalPositions(nn.Module):
    """As Pegasus's sinusoidal embedding, except: it grows when needed, and is not saved. Arguments as in `sinusoid`."""

    def __init__(self, width: int, interleaved: bool = False) -> None:
        super().__init__()
        self.width, self.interleaved = width, interleaved
        # follows the model's device and dtype
        self.register_buffer("_table", torch.empty(0, width), persistent=False)
        self._table: Tensor

    def forward(
        self, shape: torch.Size, past: int = 0, position_ids: Tensor | None = None
    ) -> Tensor:
        """Return the positions of a sequence: [T, D].

        Args:
            shape: [B, T].
            past: number of tokens before the sequence.
            position_ids: not used; transformers' decoder passes it.
        """
        return self.upto(past + shape[1])[past:]

    def upto(self, length: int) -> Tensor:
        """Return the first `length` positions: [length, D]."""
        table = self._table
        if len(table) < length:
            # so that training can use a table made during decoding
            with torch.inference_mode(False):
                positions = torch.arange(max(length, 2 * len(table)), device=table.device)
                self._table = sinusoid(positions, self.width, self.interleaved).to(table.dtype)
        return self._table[:length]
