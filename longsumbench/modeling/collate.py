"""Rows of units: stored on disk, and collated into batches of one tensor layout for every system.

Letters: B examples, U units, L unit tokens, T target tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import datasets
import torch
from datasets.arrow_writer import ArrowWriter
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from longsumbench.cache.artifacts import (
    ArtifactCache,
    check_content,
    clear_partial,
    reading_artifact,
)
from longsumbench.modeling.units import Units

_WRITTEN_TOGETHER = (
    100  # rows; the library's 1,000 would take a gigabyte as Python lists of token ids
)
IGNORED = -100  # the label of a position without a target token; torch's cross-entropy ignores it


def row_of_units(units: Units, labels: Sequence[int] = ()) -> dict[str, Any]:
    """Return the plain values from which a batch is collated; the stage "units" stores them."""
    return {
        "units": [list(ids) for ids in units.ids],
        "unit_documents": list(units.documents),
        "labels": list(labels),
        "length": sum(len(ids) for ids in units.ids),
        **units.columns,
    }


def stored_rows(
    stage: str,
    inputs: Mapping[str, Any],
    features: datasets.Features,
    rows: Iterator[dict[str, Any]],
    stages: ArtifactCache,
) -> datasets.Dataset:
    """Return rows from a stage of the artifact cache; if the stage is missing, write `rows` to it first.

    `inputs` must have everything that determines the rows.
    """

    def build(folder: Path) -> None:
        clear_partial(folder)
        path = str(folder / "rows.arrow")
        with ArrowWriter(
            path=path, features=features, writer_batch_size=_WRITTEN_TOGETHER
        ) as writer:
            for row in rows:
                writer.write(row)
            writer.finalize()

    folder = stages.get(stage, inputs, build)
    with reading_artifact(folder):
        stored: datasets.Dataset = datasets.Dataset.from_file(str(folder / "rows.arrow"))
    return stored


def check_rows(*collections: datasets.Dataset) -> None:
    """Check that stored rows are what was written, before they are trained on.

    Raises:
        DataError: a file of theirs is damaged.
    """
    for rows in collections:
        for file in rows.cache_files:
            check_content(Path(file["filename"]))


@dataclass(frozen=True)
class UnitCollator:
    """Collates rows of units; pads to the maxima of the batch, `input_ids` with `pad_token_id`.

    Columns of `matrices` have a number for each unit in each of some lines. They are collated if they exist.
    """

    matrices: ClassVar[tuple[str, ...]] = ()
    pad_token_id: int

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch of units.

        Returns:
            `input_ids` [B, U, L]; `unit_mask` [B, U, L], True where a token is real; `unit_documents` [B, U], 0 for an
            absent unit; `labels` [B, T], -100 after the end, left out if no row has any; matrices [B, lines, U], 0
            for absent units and lines.
        """
        sizes = [
            torch.tensor([len(ids) for ids in item["units"]], dtype=torch.long) for item in rows
        ]
        lengths = pad_sequence([*sizes, torch.zeros(1, dtype=torch.long)], batch_first=True)[
            :-1
        ]  # [B, U], U ≥ 1
        unit_mask = torch.arange(max(1, int(lengths.max()))) < lengths[..., None]  # [B, U, L]
        input_ids = torch.full(unit_mask.shape, self.pad_token_id)
        every = chain.from_iterable(chain.from_iterable(item["units"] for item in rows))
        input_ids[unit_mask] = torch.tensor(list(every), dtype=torch.long)
        unit_documents = torch.zeros_like(lengths)
        for documents, item in zip(unit_documents, rows, strict=True):
            documents[: len(item["unit_documents"])] = torch.as_tensor(
                item["unit_documents"], dtype=torch.long
            )
        batch = {"input_ids": input_ids, "unit_mask": unit_mask, "unit_documents": unit_documents}
        targets = [torch.as_tensor(item["labels"], dtype=torch.long) for item in rows]
        if any(len(target) for target in targets):
            batch["labels"] = pad_sequence(targets, batch_first=True, padding_value=IGNORED)
        for name in self.matrices:
            if name in rows[0]:
                batch[name] = torch.zeros(
                    len(rows), max(len(item[name]) for item in rows), lengths.shape[1]
                )
                for matrix, item in zip(batch[name], rows, strict=True):
                    for line, values in zip(matrix, item[name], strict=False):
                        line[: len(values)] = torch.as_tensor(values)
        return batch
