"""Near-duplicates in different splits: the same pairs as comparing all with all, and a pair worked out by hand."""

import random
from itertools import combinations

import pytest
from support.toys import ToySplit

from longsumbench.analysis.dataset.near_duplicates import (
    NEAREST,
    SIMILARITY,
    DuplicatePair,
    NearDuplicates,
    SplitOverlap,
)
from longsumbench.core import Document, Example, Section


def example(name: str, text: str) -> Example:
    """A text of one sentence, with an id."""
    return Example(name, None, None, (Document(None, (Section(None, ((text,),)),)),), (("A summary.",),))


def split_of(name: str, texts: list[str]) -> ToySplit:
    return ToySplit(name, [example(f"{name}-{index}", text) for index, text in enumerate(texts)])


def seen(*splits: ToySplit) -> NearDuplicates:
    """All examples, looked at in the order that is asked for."""
    by_name = {split.name: split for split in splits}
    found = NearDuplicates(by_name)
    for name in found.order:
        for index, one in enumerate(by_name[name]):
            found.see(name, index, one)
    return found


def sequences(text: str) -> set[tuple[str, ...]]:
    """The plain way: tuples of words."""
    words = text.lower().split()
    return {tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))}


def plain_jaccard(one: str, other: str) -> float:
    return len(sequences(one) & sequences(other)) / len(sequences(one) | sequences(other))


def test_a_pair_by_hand() -> None:
    """Nine words have five sequences; without the last one four of them: 4 / 5 = 0.8, just enough. Case is nothing."""
    train = split_of("train", ["a b c d e f g h i", "quite another text of some words here"])
    found = seen(train, split_of("test", ["A b c d e F g h"]))
    assert found.overlaps() == (SplitOverlap("train", "test", 1, 1, 1, 2, 1),)
    assert found.nearest() == (DuplicatePair(0.8, ("train", "train-0"), ("test", "test-0")),)
    assert seen(train, split_of("test", ["a b c d e f g x"])).overlaps()[0].pairs == 0  # 3 of 6


def test_short_texts_are_one_sequence() -> None:
    """Texts of fewer than five words are near-duplicates when they are the same, and only then."""
    found = seen(split_of("train", ["a b", "a c", "b"]), split_of("test", ["a b", "A C"]))
    assert [one.pairs for one in found.overlaps()] == [2]
    assert all(pair.similarity == 1.0 for pair in found.nearest())


@pytest.mark.parametrize("seed", range(5))
def test_as_comparing_all_with_all(seed: int) -> None:
    """Of texts with more and more words exchanged, exactly the pairs at 0.8 or above are found, each once."""
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(500)]
    originals = [draw.choices(words, k=draw.randrange(5, 120)) for _ in range(12)]

    def changed(text: list[str]) -> str:
        rate = draw.choice([0, 0.01, 0.03, 0.2])
        return " ".join(draw.choice(words) if draw.random() < rate else word for word in text)

    sizes = {"train": 30, "validation": 9, "test": 14}
    splits = [split_of(name, [changed(draw.choice(originals)) for _ in range(n)]) for name, n in sizes.items()]
    found, expected = seen(*splits), {}
    for one, other in combinations(splits, 2):
        pairs = {
            (a.id, b.id): similarity
            for a in one
            for b in other
            if (similarity := plain_jaccard(*(" ".join(text.sentences()) for text in (a, b)))) >= SIMILARITY
        }
        sides = [len({pair[side] for pair in pairs}) for side in (0, 1)]
        expected[one.name, other.name] = (len(pairs), *sides), pairs
    assert {(row.first, row.second): (row.pairs, row.of_first, row.of_second) for row in found.overlaps()} == {
        names: counts for names, (counts, _) in expected.items()
    }
    assert sum(counts[0] for counts, _ in expected.values()) > 5
    highest = sorted((s for _, pairs in expected.values() for s in pairs.values()), reverse=True)[:NEAREST]
    assert [pair.similarity for pair in found.nearest()] == pytest.approx(highest)
    for pair in found.nearest():
        assert expected[pair.first[0], pair.second[0]][1][pair.first[1], pair.second[1]] == pytest.approx(
            pair.similarity
        )
