"""An encoder of transformers, such as BERT, that reads separate units.

Letters: r units, L unit tokens, S special tokens of a unit, D width.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModel, PreTrainedModel

from longsumbench.modeling.embeddings import num_positions


class PretrainedEncoder(nn.Module):
    """An encoder of transformers that reads every unit alone, between the special tokens that its tokenizer adds.

    Special tokens are added here, so they count in no limit of a system and in no ledger; their states are left out.

    Args:
        network: the encoder's configuration, with `model_type`.
        start: special tokens before a unit.
        end: special tokens after a unit.
        pad: the token of padding.

    Attributes:
        longest: most tokens of a unit, without special tokens.
    """

    def __init__(self, network: dict[str, Any], start: list[int], end: list[int], pad: int) -> None:
        super().__init__()
        self.network: PreTrainedModel = AutoModel.from_config(
            AutoConfig.for_model(**network), trust_remote_code=False
        )
        if hasattr(self.network, "pooler"):
            self.network.pooler = None  # not used
        self.start, self.end, self.pad = start, end, pad
        self.longest = num_positions(self.network) - len(start) - len(end)

    def forward(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """Return the states of units of at most `longest` tokens: [r, L], [r, L] → [r, L, D].

        Those of padding have no meaning.
        """
        length = input_ids.shape[1]
        before, after = len(self.start), len(self.end)
        ids = input_ids.masked_fill(~mask, self.pad)
        framed = F.pad(ids, (before, after), value=self.pad)  # [r, S + L]
        framed[:, :before] = torch.tensor(self.start, device=ids.device)
        ends = before + mask.sum(-1, keepdim=True)  # [r, 1]
        places = ends + torch.arange(after, device=ids.device)
        framed.scatter_(1, places, torch.tensor(self.end, device=ids.device).expand_as(places))
        is_real = torch.arange(framed.shape[1], device=ids.device) < ends + after
        states: Tensor = self.network(
            input_ids=framed, attention_mask=is_real.long()
        ).last_hidden_state
        return states[:, before : before + length]
