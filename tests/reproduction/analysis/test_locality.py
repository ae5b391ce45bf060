"""How alike sentences are by their distance: against all pairs by numpy, and a text worked out by hand."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from support.drawn import example
from support.reproduction.sampled import drawn

from longsumbench.errors import DataError
from longsumbench.modeling.ranking import similarities
from longsumbench_reproduction.analysis import locality
from longsumbench_reproduction.analysis.locality import (
    A_DISTANCE,
    ACROSS,
    ALL,
    WITHIN,
    TfIdf,
    bins,
    compare_sentences,
    similarity_by_distance,
)

TEXTS = [
    "the cat sat",
    "a cat ran",
    "dogs bark",
    "the dog sat",
    "",
    "birds sing a song",
    "a song for dogs",
    "cat",
]


class Given:
    """Vectors that are known beforehand, for any sentences: "n" is the nth of them."""

    name = signature = "given"
    num_cut = 0

    def __init__(self, vectors: list[list[float]]) -> None:
        self.vectors = np.array(vectors)

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """Return theirs."""
        return self.vectors[[int(one) for one in sentences]]


def all_pairs(cosines: np.ndarray) -> dict[int, list[float]]:
    """Return distance → the cosines of its pairs."""
    found: dict[int, list[float]] = {}
    for one, other in combinations(range(len(cosines)), 2):
        found.setdefault(other - one, []).append(float(cosines[one, other]))
    return found


def test_worked_example() -> None:
    """Of directions east, east, north, neighbours have cosines 1 and 0, the ends 0: means 1/2, 0, and 1/3 of all."""
    found = compare_sentences(
        drawn([example("e", ["0", "1", "2"])]), Given([[1, 0], [1, 0], [0, 1]])
    )
    table = found.table().set_index("from")
    distances = table[table["pairs of"] == A_DISTANCE]
    assert distances["similarity"].tolist() == [0.5, 0.0]
    assert distances["above"].tolist() == pytest.approx([1 / 6, -1 / 3])
    assert distances["pairs"].tolist() == [2, 1]
    assert table[table["pairs of"] == ALL]["similarity"].tolist() == pytest.approx([1 / 3])


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_sums_are_those_of_all_pairs(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense or sparse, and however many cosines are held at once, the sums equal those over all pairs."""
    monkeypatch.setattr(locality, "_COSINES_AT_ONCE", at_once)
    draw_ = np.random.default_rng(0)
    dense = draw_.normal(size=(11, 4))
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    texts = [text for text in TEXTS if text]
    for vectors, cosines in ((dense, dense @ dense.T), (TfIdf()(texts), similarities(texts))):
        expected = all_pairs(cosines)
        found = similarity_by_distance(vectors)
        assert found[0] == 0
        assert found[1:] == pytest.approx(
            [sum(expected[distance]) for distance in range(1, len(found))]
        )


def test_examples_count_alike_and_pairs_are_all_there() -> None:
    """A distance's mean is over the means of the examples that have it; blank sentences are none; no pair is lost."""
    long, short = [text for text in TEXTS if text], ["cat and dog", "dog and cat", "a bird"]
    found = compare_sentences(
        drawn([example("l", TEXTS), example("s", short), example("none", ["one"])]), TfIdf(), 3
    )
    table = found.table()
    of_each = [all_pairs(similarities(texts)) for texts in (long, short)]
    means = [np.mean(pairs[2]) for pairs in of_each]
    assert table[table["from"] == 2].iloc[0]["similarity"] == pytest.approx(np.mean(means))
    by_name = table.groupby("pairs of")["pairs"].sum()
    assert by_name[A_DISTANCE] == by_name[ALL] == 7 * 6 // 2 + 3
    assert found.too_short == 1
    assert "1 example left out: fewer than two sentences" in found.render()


def test_pairs_within_and_across_documents() -> None:
    """They make up all pairs; of two documents of one direction each, those within have cosine 1, the others 0."""
    example_ = example("e", ["0", "0", "0"], ["1", "1"])
    table = (
        compare_sentences(drawn([example_, example_]), Given([[1, 0], [0, 1]]))
        .table()
        .set_index("pairs of")
    )
    assert table.loc[WITHIN, "similarity"] == pytest.approx(1)
    assert table.loc[ACROSS, "similarity"] == pytest.approx(0)
    assert (table.loc[WITHIN, "pairs"], table.loc[ACROSS, "pairs"]) == (8, 12)
    one = compare_sentences(drawn([example("e", ["0", "1", "0"])]), Given([[1, 0], [0, 1]])).table()
    assert not {WITHIN, ACROSS} & set(one["pairs of"])


@pytest.mark.parametrize(
    ("distance", "longest"), [(1, 1), (1, 40), (5, 3), (5, 5), (5, 6), (50, 4999)]
)
def test_bins_hold_every_distance_once(distance: int, longest: int) -> None:
    """They begin at 1 and end at the longest distance, each wider than none, and up to `distance` of width 1."""
    edges = bins(distance, longest)
    assert (edges[0], edges[-1]) == (1, longest + 1)
    assert (np.diff(edges) >= 1).all()
    assert (np.diff(edges)[: min(distance, longest) - 1] == 1).all()


def test_nothing_to_compare() -> None:
    """Sources of one sentence each are an error that says so."""
    with pytest.raises(DataError, match="no example of split 'test' has two sentences"):
        compare_sentences(drawn([example("e", ["one"])]), TfIdf())
