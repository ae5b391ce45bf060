"""Sinusoidal positions of any length, without a table in the checkpoint."""

import torch
from torch import Tensor, nn


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
