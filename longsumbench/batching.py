"""Rows of units → UnitBatch: one tensor layout for every system, one collator.

Letters: B examples, U units, L unit tokens, T target tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from longsumbench.segmentation import Units

IGNORED = -100  # the label of a position that is no target token (torch's cross-entropy leaves it out)


def row(units: Units, labels: Sequence[int] = ()) -> dict[str, Any]:
    """Return the plain values from which a batch is collated: what the `units` stage keeps on disk."""
    return {
        "units": [list(ids) for ids in units.ids],
        "unit_documents": list(units.documents),
        "labels": list(labels),
        "length": sum(len(ids) for ids in units.ids),
    }


@dataclass(frozen=True)
class UnitCollator:
    """Rows → tensors, padded to the batch's own maxima.

    Attributes:
        pad_token_id: fills `input_ids` where `unit_mask` is False.
    """

    pad_token_id: int

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a UnitBatch.

        Returns:
            `input_ids` [B, U, L]; `unit_mask` [B, U, L], True where a token is real; `unit_documents` [B, U], 0 for an
            absent unit; `labels` [B, T], -100 behind the end, left out when no row has any.
        """
        examples, units = len(rows), max(1, *(len(item["units"]) for item in rows))
        length = max(1, *(len(ids) for item in rows for ids in item["units"]), 1)
        input_ids = torch.full((examples, units, length), self.pad_token_id)
        unit_mask = torch.zeros(examples, units, length, dtype=torch.bool)
        unit_documents = torch.zeros(examples, units, dtype=torch.long)
        for i, item in enumerate(rows):
            for j, ids in enumerate(item["units"]):
                input_ids[i, j, : len(ids)] = torch.as_tensor(ids)
                unit_mask[i, j, : len(ids)] = True
            unit_documents[i, : len(item["unit_documents"])] = torch.as_tensor(item["unit_documents"])
        batch = {"input_ids": input_ids, "unit_mask": unit_mask, "unit_documents": unit_documents}
        targets = [torch.as_tensor(item["labels"], dtype=torch.long) for item in rows]
        if any(len(target) for target in targets):
            batch["labels"] = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=IGNORED)
        return batch
