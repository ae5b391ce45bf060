"""The gate: which tokens of which snippets the decoder attends to (SEAL §3.4).

Letters: Q selections (examples, or their segments or beams), U snippets, S memory tokens.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Selection(NamedTuple):
    """What a gate let through.

    Attributes:
        positions: [Q, S], rows of the table of token states, best snippet first; 0 where there is none.
        mask: [Q, S], True where there is one.
        taken: [Q, U], how many of a snippet's tokens were let through; 0 for one that was not selected.
    """

    positions: Tensor
    mask: Tensor
    taken: Tensor


def select(scores: Tensor, starts: Tensor, lengths: Tensor, extractive_length: int) -> Selection:
    """Sort snippets by score and concatenate their real tokens until `extractive_length` (SEAL §3.4).

    Of equal scores the earlier snippet comes first. The snippet that crosses the limit is cut. No gradient flows to the
    scores: only their order counts.

    Args:
        scores: [Q, U]; those of absent snippets are not looked at.
        starts: [Q, U], the row of a snippet's first token in the table of states.
        lengths: [Q, U], a snippet's tokens; 0 for an absent one.
        extractive_length: the most tokens let through.
    """
    real = lengths > 0
    order = scores.detach().masked_fill(~real, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    ends = lengths.gather(1, order).cumsum(-1)  # [Q, U], in score order
    before = ends - lengths.gather(1, order)
    kept = (extractive_length - before).clamp(min=0).minimum(lengths.gather(1, order))
    taken = torch.zeros_like(lengths).scatter(1, order, kept)

    total = ends[:, -1:].clamp(max=extractive_length)  # [Q, 1]
    size = max(1, int(total.max()))
    step = torch.arange(size, device=scores.device).expand(len(scores), size).contiguous()
    place = torch.searchsorted(ends, step, right=True).clamp(max=ends.shape[1] - 1)  # [Q, S], in score order
    mask = step < total
    positions = starts.gather(1, order.gather(1, place)) + step - before.gather(1, place)
    return Selection(positions.masked_fill(~mask, 0), mask, taken)
