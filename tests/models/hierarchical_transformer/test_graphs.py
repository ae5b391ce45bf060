"""The graph of similar paragraphs."""

import numpy as np
from hypothesis import given, strategies as st

from longsumbench.modeling.ranking import similarities
from longsumbench.models.hierarchical_transformer.graphs import SimilarityGraph

WORDS = ("red", "fox", "den", "a", "hen", "However,", "then", "Ann Lee", "Bob Ray.")
TEXT = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)


@given(st.lists(TEXT, max_size=7))
def test_similarity_is_that_of_the_appendix(texts: list[str]) -> None:
    """Edges are the similarities of the paragraphs that are there, from 0.2 on (A.1); an empty one has none."""
    graph = SimilarityGraph("capitals", "")(texts, [None] * len(texts))
    real = [number for number, text in enumerate(texts) if text.strip()]
    similar = similarities([texts[number] for number in real])
    expected = np.zeros_like(graph)
    expected[np.ix_(real, real)] = np.where(similar > 0.2 - 1e-9, similar, 0)
    np.testing.assert_allclose(graph, expected, rtol=0, atol=1e-6)
