from itertools import chain

import pytest
from hypothesis import given, strategies as st

from longsumbench.models.seal.readers import proxy_labels, target_segments


def test_labels_by_hand() -> None:
    """Of unigrams of 1 2 3: 1 2 has F1 0.8, 3 9 0.4; with both it is 6/7, so that a sequence has the two, no copy."""
    snippets, segments = [[1, 2], [3, 9], [1, 2], [8]], [[1, 2, 3], []]
    scores = proxy_labels(snippets, segments, 1)
    assert scores[0].tolist() == pytest.approx([0.8, 0.4, 0.8, 0])
    assert not scores[1].any()
    selected = proxy_labels(snippets, segments, 1, sequential=True)
    assert selected.tolist() == [[1, 1, 0, 0], [0] * 4]


END = 2


@given(st.lists(st.integers(3, 9), max_size=30), st.integers(1, 8))
def test_segments_are_the_target(ids: list[int], length: int) -> None:
    """Joined they are the target without its end, there are ⌈T/L⌉ of them, and all but the last are full."""
    segments = target_segments([*ids, END], length, END)
    assert list(chain.from_iterable(segments)) == ids
    assert len(segments) == -(-(len(ids) + 1) // length)
    assert all(len(segment) == length for segment in segments[:-1])
