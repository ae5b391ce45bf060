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

# rows; the library's 1,000 would take a gigabyte as Python lists of token ids
_WRITTEN_TOGETHER = 100
IGNORED = -100  # the label of a position without a target token; torch's cross-entropy ignores it


def make_unit_row(units: Units, labels: Sequence[int] = ()) -> dict[str, Any]:
    """Return the plain values from which a batch is collated; the stage "units" stores them."""
    return {
        "units": units.ids,
        "unit_documents": units.documents,
        "labels": labels,
        "length": sum(map(len, units.ids)),
        **units.columns,
    }


def stored_rows(
    stage: str,
    inputs: Mapping[str, Any],
    features: datasets.Features,
    rows: Iterator[dict[str, Any]],
    cache: ArtifactCache,
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

    folder = cache.get(stage, inputs, build)
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
        size = max(1, *(len(item["units"]) for item in rows))
        lengths = torch.zeros(len(rows), size, dtype=torch.long)  # [B, U]
        unit_documents = torch.zeros_like(lengths)
        tokens: list[int] = []  # of all units of the batch, in reading order
        for row, item in enumerate(rows):
            units, documents = item["units"], item["unit_documents"]
            lengths[row, : len(units)] = torch.tensor(list(map(len, units)))
            unit_documents[row, : len(documents)] = torch.tensor(documents)
            tokens += chain.from_iterable(units)
        unit_mask = torch.arange(max(1, int(lengths.max()))) < lengths[..., None]  # [B, U, L]
        input_ids = torch.full(unit_mask.shape, self.pad_token_id)
        input_ids[unit_mask] = torch.tensor(tokens, dtype=torch.long)
        batch = {"input_ids": input_ids, "unit_mask": unit_mask, "unit_documents": unit_documents}
        targets = [torch.tensor(item["labels"], dtype=torch.long) for item in rows]
        if any(map(len, targets)):
            batch["labels"] = pad_sequence(targets, batch_first=True, padding_value=IGNORED)
        for name in self.matrices:
            if name in rows[0]:
                batch[name] = _stack_matrices([item[name] for item in rows], size)
        return batch


def _stack_matrices(matrices: Sequence[Sequence[Sequence[float]]], width: int) -> Tensor:
    """Stack matrices of several sizes, padded with zeros: [B, lines, width]."""
    stacked = torch.zeros(len(matrices), max(map(len, matrices)), width)
    for row, matrix in enumerate(matrices):
        for line, values in enumerate(matrix):
            stacked[row, line, : len(values)] = torch.as_tensor(values)
    return stacked
