import torch

from longsumbench.core import Truncation
from longsumbench.modeling.collate import IGNORED, UnitCollator, row_of_units
from longsumbench.modeling.units import Units


def units(*ids: list[int]) -> Units:
    return Units(tuple(ids), tuple(range(len(ids))), tuple(1 for _ in ids), Truncation(0, 0))


def test_hand_worked_batch() -> None:
    """Two units of 2 and 1 tokens next to one unit of 3: pads are 9, absent units are masked, labels end in -100."""
    batch = UnitCollator(9)([row_of_units(units([1, 2], [3]), [7, 8]), row_of_units(units([4, 5, 6]), [7])])
    assert batch["input_ids"].tolist() == [[[1, 2, 9], [3, 9, 9]], [[4, 5, 6], [9, 9, 9]]]
    assert batch["unit_mask"].tolist() == [
        [[True, True, False], [True, False, False]],
        [[True, True, True], [False, False, False]],
    ]
    assert batch["unit_documents"].tolist() == [[0, 1], [0, 0]]
    assert batch["labels"].tolist() == [[7, 8], [7, IGNORED]]


def test_every_token_is_kept_once() -> None:
    """The masked tokens of a batch are the tokens of its rows, in order."""
    rows = [row_of_units(units(*[list(range(10 * u, 10 * u + u + 1)) for u in range(n)]), [1]) for n in (3, 1, 5)]
    batch = UnitCollator(0)(rows)
    for i, item in enumerate(rows):
        assert batch["input_ids"][i][batch["unit_mask"][i]].tolist() == [t for ids in item["units"] for t in ids]


def test_row_without_units_or_labels() -> None:
    """An example without any token still has a place in the batch, all of it masked; no labels, no key."""
    batch = UnitCollator(0)([row_of_units(units())])
    assert batch["input_ids"].shape == (1, 1, 1)
    assert not batch["unit_mask"].any()
    assert "labels" not in batch


def test_rows_survive_lists_and_tensors() -> None:
    """Rows read back from disk (plain lists) collate as fresh ones."""
    fresh = row_of_units(units([1, 2]), [3])
    read = {name: list(value) if isinstance(value, list) else value for name, value in fresh.items()}
    for name, value in UnitCollator(0)([fresh]).items():
        assert torch.equal(value, UnitCollator(0)([read])[name])
