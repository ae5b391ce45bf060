"""The gate: selects the snippets' tokens that the decoder attends to (SEAL §3.4).

Letters: Q selections (examples, or their segments or beams), U snippets, S memory tokens.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from longsumbench.modeling.nn.unit_encoder import spread_units


class GateSelection(NamedTuple):
    """The tokens that the gate selected.

    Attributes:
        positions: [Q, S], rows of the table of token states, best snippet first; 0 where the mask is False.
        mask: [Q, S], True where a token is real.
        counts: [Q, U], how many of a snippet's tokens are selected.
    """

    positions: Tensor
    mask: Tensor
    counts: Tensor


def select(scores: Tensor, starts: Tensor, lengths: Tensor, extractive_length: int) -> GateSelection:
    """Sort snippets by score and concatenate their real tokens up to `extractive_length` tokens (SEAL §3.4).

    Of equal scores, the earlier snippet comes first. The snippet that crosses the limit is cut. The scores get no
    gradient: only their order counts.

    Args:
        scores: [Q, U]; those of absent snippets are ignored.
        starts: [Q, U], the row of a snippet's first token in the table of states.
        lengths: [Q, U], the number of a snippet's tokens; 0 for an absent snippet.
        extractive_length: the most tokens to select.
    """
    order = scores.detach().masked_fill(lengths == 0, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    sorted_lengths = lengths.gather(1, order)
    tokens_above = sorted_lengths.cumsum(-1) - sorted_lengths  # [Q, U], in score order
    counts = (extractive_length - tokens_above).clamp(min=0).minimum(sorted_lengths)
    tokens = spread_units(starts.gather(1, order), counts)
    return GateSelection(tokens.positions, tokens.mask, torch.zeros_like(lengths).scatter(1, order, counts))
