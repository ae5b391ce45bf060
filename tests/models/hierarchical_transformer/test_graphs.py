"""The graphs between paragraphs."""

import re
from collections.abc import Sequence
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.paths import SHARED
from support.requirements import SHARED_FOLDER

from longsumbench.models.hierarchical_transformer.entities import find_entities
from longsumbench.models.hierarchical_transformer.graphs import (
    DISCOURSE_MARKERS,
    Graph,
    Place,
    discourse_graph,
    is_marked,
    similarity_graph,
)

PAPER = SHARED / "papers" / "hierarchical_transformer.txt"
CAPITALS = find_entities("capitals", "")
WORDS = ("red", "fox", "den", "a", "hen", "However,", "then", "Ann Lee", "Bob Ray.")
TEXT = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
PARAGRAPHS = st.lists(TEXT, max_size=7)


def similarity_by_hand(texts: Sequence[str]) -> Graph:
    """A.1 pair by pair, with dictionaries."""
    bags = [re.findall(r"\w+", text.lower()) for text in texts]
    real = [number for number, text in enumerate(texts) if text.strip()]
    vectors = [
        {
            word: bag.count(word) * log(len(real) / sum(word in other for other in bags))
            for word in bag
        }
        for bag in bags
    ]
    norms = [sqrt(sum(weight**2 for weight in vector.values())) for vector in vectors]
    graph = np.zeros((len(texts), len(texts)), np.float32)
    for i in real:
        for j in real:
            product = sum(weight * vectors[j].get(word, 0) for word, weight in vectors[i].items())
            cosine = product / (norms[i] * norms[j]) if product else 0.0
            graph[i, j] = 1 if i == j else cosine if cosine > 0.2 - 1e-9 else 0
    return graph


def discourse_by_hand(texts: Sequence[str], places: Sequence[Place]) -> Graph:
    """A.2 pair by pair."""
    graph = np.zeros((len(texts), len(texts)), np.float32)
    found = CAPITALS(texts)
    for i, (one, at) in enumerate(zip(texts, places, strict=True)):
        for j, (other, there) in enumerate(zip(texts, places, strict=True)):
            if not one.strip() or not other.strip():
                continue
            graph[i, j] = 0.2 * len(found[i] & found[j])
            if at is None or there is None or at[0] != there[0] or abs(at[1] - there[1]) != 1:
                continue
            later = other if there[1] > at[1] else one
            graph[i, j] += later.lower().startswith(("however", "then"))
    return graph


@given(PARAGRAPHS)
def test_similarity_is_the_appendix_pair_by_pair(texts: list[str]) -> None:
    """The graph equals A.1 written down for each pair; it is symmetric and 1 on the diagonal of what is there."""
    graph = similarity_graph(texts)
    np.testing.assert_allclose(graph, similarity_by_hand(texts), rtol=0, atol=1e-6)
    assert np.array_equal(graph, graph.T)
    assert np.diag(graph).tolist() == [float(bool(text.strip())) for text in texts]


@given(st.data(), PARAGRAPHS)
def test_discourse_is_the_appendix_pair_by_pair(data: st.DataObject, texts: list[str]) -> None:
    """The graph equals A.2 written down for each pair, in any order of paragraphs from several documents."""
    every: list[Place] = [(document, place) for document in range(2) for place in range(5)]
    places = [None, *data.draw(st.permutations(every))][: len(texts)]
    graph = discourse_graph(texts, places, CAPITALS)
    np.testing.assert_allclose(graph, discourse_by_hand(texts, places), rtol=0, atol=1e-6)
    assert np.array_equal(graph, graph.T)


@pytest.mark.parametrize("marker", DISCOURSE_MARKERS)
def test_a_marker_counts_at_the_beginning(marker: str) -> None:
    """Each of the 36 counts in any casing, across a line break and behind a quotation mark, as whole words only."""
    for text in (
        f"{marker} we",
        f"{marker.upper()}, we",
        f" “{marker.capitalize()}: we",
        marker.replace(" ", "\n"),
    ):
        assert is_marked(text)
    for text in (f"{marker}s we", f"We {marker} we", marker[:-1], f"un{marker} we", ""):
        assert not is_marked(text)


@pytest.mark.skipif(not PAPER.is_file(), reason=SHARED_FOLDER)
def test_the_markers_are_in_the_papers_order() -> None:
    """The list is the appendix's, word for word."""
    text = PAPER.read_text()
    listed = text[
        text.index("again, also, another") : text.index("the day before") + len("the day before")
    ]
    joined = " ".join(listed.replace("-\n", "").split())
    assert tuple(re.split(r", ?", joined)) == DISCOURSE_MARKERS
