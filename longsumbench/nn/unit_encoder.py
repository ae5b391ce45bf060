"""An encoder that reads units one by one: pre-norm Transformer layers, positions that restart in every unit.

Letters: B examples, U units, L unit tokens, R real units of the batch, D width.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.pegasus.modeling_pegasus import PegasusEncoder


class UnitEncoder(PegasusEncoder):
    """As PegasusEncoder, except: it takes units, and never computes absent ones.

    Self-attention stays inside a unit. One unit an example makes it an ordinary encoder.
    """

    main_input_name = "input_ids"

    def forward(self, input_ids: Tensor, unit_mask: Tensor, **kwargs: Any) -> BaseModelOutput:
        """Encode every real unit alone.

        Args:
            input_ids: [B, U, L].
            unit_mask: [B, U, L], True where a token is real.
            **kwargs: what the library's layers take.

        Returns:
            `last_hidden_state` [B, U·L, D]: the units one behind the other, absent ones zero; `joined_mask` tells its
            real positions, the others hold nothing of use.
        """
        kwargs.pop("attention_mask", None)
        batch, units, length = input_ids.shape
        real = unit_mask.any(-1)  # [B, U]
        packed = super().forward(input_ids=input_ids[real], attention_mask=unit_mask[real], **kwargs)
        states = packed.last_hidden_state  # [R, L, D]
        if bool(real.all()):
            return BaseModelOutput(last_hidden_state=states.view(batch, units * length, -1))
        dense = states.new_zeros(batch, units, length, states.shape[-1])
        dense = dense.masked_scatter(real[..., None, None], states)
        return BaseModelOutput(last_hidden_state=dense.view(batch, units * length, -1))


def joined_mask(unit_mask: Tensor) -> Tensor:
    """Return the mask of units read as one sequence: [B, U, L] → [B, U·L]."""
    return torch.flatten(unit_mask, 1)
