import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import Tokenizer

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


class Words(Tokenizer):
    """Leaves ids as they are."""

    def tokenize(self, text: str) -> list[str]:  # noqa: D102 - as the library says
        return text.split()


@pytest.mark.parametrize("n", [1, 2])
def test_equals_rouge_score(n: int) -> None:
    """Labels are what the rouge_score library computes when every id is a word."""
    chance = random.Random(0)
    snippets, segments = (
        [chance.choices(range(6), k=chance.randint(0, 12)) for _ in range(8)] for _ in range(2)
    )
    scorer = RougeScorer([f"rouge{n}"], tokenizer=Words())
    text = lambda ids: " ".join(map(str, ids))  # noqa: E731 - it is said once
    rouge = [
        [scorer.score(text(gold), text(one))[f"rouge{n}"] for one in snippets] for gold in segments
    ]
    for measure, name in (("f1", "fmeasure"), ("precision", "precision"), ("recall", "recall")):
        expected = [[getattr(one, name) for one in row] for row in rouge]
        np.testing.assert_allclose(
            proxy_labels(snippets, segments, n, measure), expected, rtol=1e-6
        )


def test_hand_worked_clipping() -> None:
    """5 5 occurs three times in the snippet and once in the segment, so one of 3 and of 2 n-grams is common."""
    snippet, segment = [5, 5, 5, 5], [5, 5, 6]
    labels = {
        measure: float(proxy_labels([snippet], [segment], 2, measure)[0, 0])
        for measure in PAIR_MEASURES
    }
    assert labels == pytest.approx({"f1": 2 / 5, "precision": 1 / 3, "recall": 1 / 2})
    assert float(proxy_labels([snippet], [segment], 1, "recall")[0, 0]) == pytest.approx(2 / 3)


def test_hand_worked_sequential() -> None:
    """Unigrams of 1 2 3 4, F1: 1 2 (.67, before its twin 2 1), then 3 9 (.75); 4 8 8 8 would lower it to .67."""
    snippets = [[9, 9], [1, 2], [2, 1], [3, 9], [4, 8, 8, 8]]
    assert proxy_labels(snippets, [[1, 2, 3, 4]], 1, "f1", sequential=True).tolist() == [
        [0, 1, 0, 1, 0]
    ]
    assert proxy_labels(snippets, [[1, 2, 3, 4]], 1, "recall", sequential=True).tolist() == [
        [0, 1, 0, 1, 1]
    ]
    assert proxy_labels(snippets, [[1, 2, 3, 4]], 1, "precision", sequential=True).tolist() == [
        [0, 1, 0, 0, 0]
    ]


def test_bigrams_cross_nothing() -> None:
    """1 2 is at the seam of two snippets, 5 6 at the seam of two segments: neither is found."""
    assert not proxy_labels([[0, 1], [2, 0]], [[1, 2]]).any()
    assert not proxy_labels([[5, 6]], [[4, 5], [6, 7]]).any()


END = 2


@given(st.lists(st.integers(3, 9), max_size=30), st.integers(1, 8))
def test_segments_are_the_target(ids: list[int], length: int) -> None:
    """Joined they are the target without its end, there are ⌈T/L⌉ of them, and all but the last are full."""
    segments = target_segments([*ids, END], length, END)
    assert list(chain.from_iterable(segments)) == ids
    assert len(segments) == -(-(len(ids) + 1) // length)
    assert all(len(segment) == length for segment in segments[:-1])


def test_a_target_without_an_end_is_refused() -> None:
    """Every target ends with the end token; padding or a cut behind it would make a segment of no text."""
    for labels in ([], [5, 6], [5, END, -100]):
        with pytest.raises(ValueError, match="end token"):
            target_segments(labels, 2, END)
