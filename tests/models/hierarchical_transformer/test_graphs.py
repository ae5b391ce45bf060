"""The graph of similar paragraphs."""

import re
from collections.abc import Sequence
from math import log, sqrt

import numpy as np
from hypothesis import given, strategies as st

from longsumbench.models.hierarchical_transformer.graphs import Graph, SimilarityGraph

WORDS = ("red", "fox", "den", "a", "hen", "However,", "then", "Ann Lee", "Bob Ray.")
TEXT = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)


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


@given(st.lists(TEXT, max_size=7))
def test_similarity_is_the_appendix_pair_by_pair(texts: list[str]) -> None:
    """The graph equals A.1 written down for each pair; it is symmetric and 1 on the diagonal of what is there."""
    graph = SimilarityGraph("capitals", "")(texts, [None] * len(texts))
    np.testing.assert_allclose(graph, similarity_by_hand(texts), rtol=0, atol=1e-6)
    assert np.array_equal(graph, graph.T)
    assert np.diag(graph).tolist() == [float(bool(text.strip())) for text in texts]
