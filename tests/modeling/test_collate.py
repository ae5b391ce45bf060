from longsumbench.core import Truncation
from longsumbench.modeling.collate import IGNORED, UnitCollator, make_unit_row
from longsumbench.modeling.units import Units


def units(*ids: list[int]) -> Units:
    return Units(tuple(ids), tuple(range(len(ids))), tuple(1 for _ in ids), Truncation(0, 0))


def test_hand_worked_batch() -> None:
    """Two units of 2 and 1 tokens next to one unit of 3: pads are 9, absent units are masked, labels end in -100."""
    batch = UnitCollator(9)(
        [make_unit_row(units([1, 2], [3]), [7, 8]), make_unit_row(units([4, 5, 6]), [7])]
    )
    assert batch["input_ids"].tolist() == [[[1, 2, 9], [3, 9, 9]], [[4, 5, 6], [9, 9, 9]]]
    assert batch["unit_mask"].tolist() == [
        [[True, True, False], [True, False, False]],
        [[True, True, True], [False, False, False]],
    ]
    assert batch["unit_documents"].tolist() == [[0, 1], [0, 0]]
    assert batch["labels"].tolist() == [[7, 8], [7, IGNORED]]
