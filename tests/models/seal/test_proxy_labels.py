from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from hypothesis import given, strategies as st

from longsumbench.models.seal.readers import proxy_labels, target_segments
from longsumbench.rouge.all_pairs import PAIR_MEASURES

TEXTS = st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=6)


def ngrams(ids: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(ids[i : i + n]) for i in range(len(ids) - n + 1))


def plain_score(
    of_snippets: Counter[tuple[int, ...]], of_segment: Counter[tuple[int, ...]], measure: str
) -> float:
    common = (of_snippets & of_segment).total()
    sizes = {"precision": of_snippets.total(), "recall": of_segment.total()}
    if measure == "f1":
        return 2 * common / max(1, sum(sizes.values()))
    return common / max(1, sizes[measure])


def plain_labels(
    snippets: Sequence[Sequence[int]],
    segments: Sequence[Sequence[int]],
    n: int = 2,
    measure: str = "f1",
    sequential: bool = False,
) -> np.ndarray:
    """The definition, one snippet and one segment at a time."""
    labels = np.zeros((len(segments), len(snippets)), np.float32)
    counted = [ngrams(ids, n) for ids in snippets]
    for s, segment in enumerate(ngrams(ids, n) for ids in segments):
        if not sequential:
            labels[s] = [plain_score(one, segment, measure) for one in counted]
            continue
        members: list[int] = []
        best = 0.0
        while True:
            found = None
            for i in set(range(len(snippets))) - set(members):
                union = sum((counted[j] for j in [*members, i]), Counter())
                if (value := plain_score(union, segment, measure)) > best:
                    best, found = value, i
            if found is None:
                break
            members.append(found)
        labels[s, members] = 1
    return labels


@given(TEXTS, TEXTS, st.integers(1, 4), st.sampled_from(PAIR_MEASURES), st.booleans())
def test_equals_counting_by_hand(
    snippets: list[list[int]], segments: list[list[int]], n: int, measure: str, sequential: bool
) -> None:
    """All variants equal the definition spelled out with Counter, ties and empty texts included."""
    expected = plain_labels(snippets, segments, n, measure, sequential)
    np.testing.assert_array_equal(
        proxy_labels(snippets, segments, n, measure, sequential), expected
    )


END = 2


@given(st.lists(st.integers(3, 9), max_size=30), st.integers(1, 8))
def test_segments_are_the_target(ids: list[int], length: int) -> None:
    """Joined they are the target without its end, there are ⌈T/L⌉ of them, and all but the last are full."""
    segments = target_segments([*ids, END], length, END)
    assert list(chain.from_iterable(segments)) == ids
    assert len(segments) == -(-(len(ids) + 1) // length)
    assert all(len(segment) == length for segment in segments[:-1])
