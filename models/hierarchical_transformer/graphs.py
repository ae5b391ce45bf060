"""Graphs between paragraphs that replace a head of the global layers (Hierarchical Transformer, Eq. 24 and Appendix).

Rows are as in the appendix; the network divides them by their sums. N: number of paragraphs. Absent paragraphs (empty
texts) have rows and columns of zeros.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from longsumbench.modeling.ranking import similarities

Graph: TypeAlias = NDArray[np.float32]
Place: TypeAlias = (
    tuple[int, int] | None
)  # document, and index among its paragraphs; None: no document

_LEAST_SIMILARITY = 0.2  # edges below it are removed
_EDGE_ROUNDING = 1e-12  # tolerance of that limit
_ENTITY_WEIGHT = 0.2  # of a shared entity; of a marker: 1
_MARKERS = (
    "again, also, another, comparatively, furthermore, at the same time, however, immediately, indeed, "
    "instead, to be sure, likewise, meanwhile, moreover, nevertheless, nonetheless, notably, otherwise, "
    "regardless, similarly, unlike, in addition, even, in turn, in exchange, in this case, in any event, "
    "finally, later, as well, especially, as a result, example, in fact, then, the day before"
)
DISCOURSE_MARKERS = tuple(_MARKERS.split(", "))
_ANY_MARKER = "|".join(DISCOURSE_MARKERS).replace(" ", r"\s+")
_MARKED = re.compile(rf"\W*(?:{_ANY_MARKER})\b", re.IGNORECASE)


def similarity_graph(paragraphs: Sequence[str]) -> Graph:
    """Return the cosines of the paragraphs' tf-idf vectors, without those below 0.2 (A.1, Eq. 25).

    N_d is the number of paragraphs that are not empty. The graph [N, N] is symmetric, with 1 on the diagonal of
    such a paragraph.
    """
    real = _present(paragraphs)
    similar = similarities([paragraphs[index] for index in real])
    similar[similar < _LEAST_SIMILARITY - _EDGE_ROUNDING] = 0
    return _spread(similar, real, len(paragraphs))


def discourse_graph(
    paragraphs: Sequence[str],
    places: Sequence[Place],
    entities: Callable[[Sequence[str]], Iterable[frozenset[str]]],
) -> Graph:
    """Return the simplified Approximate Discourse Graph: 0.2 · entities in common + a marker between (A.2, Eq. 26).

    The marker counts 1 if two paragraphs are consecutive in a document and the later one begins with one of
    `DISCOURSE_MARKERS`. Markers match whole words in any casing, after any signs. The paragraphs are in any order;
    `entities` returns the set of entities of each (`entities.find_entities`).

    Returns:
        Shape [N, N], symmetric; on the diagonal 0.2 · the number of the paragraph's entities.
    """
    real = _present(paragraphs)
    texts = [paragraphs[index] for index in real]
    edges = _ENTITY_WEIGHT * _in_common(list(entities(texts)))
    edges += _connected([is_marked(text) for text in texts], [places[index] for index in real])
    return _spread(edges, real, len(paragraphs))


def is_marked(text: str) -> bool:
    """Return True if a paragraph begins with a discourse marker."""
    return _MARKED.match(text) is not None


def _in_common(entities_of: Sequence[frozenset[str]]) -> NDArray[np.float64]:
    shared = np.zeros((len(entities_of), len(entities_of)))
    for row, entities in enumerate(entities_of):
        for column, others in enumerate(entities_of):
            shared[row, column] = len(entities & others)
    return shared


def _connected(marked: Sequence[bool], places: Sequence[Place]) -> NDArray[np.float64]:
    """Return 1, symmetrically, for a paragraph that begins with a marker and the one before it."""
    edges = np.zeros((len(places), len(places)))
    # Paragraphs are in any order: look up the one before.
    at = {place: index for index, place in enumerate(places)}
    for index, place in enumerate(places):
        if place is None or not marked[index]:
            continue
        document, number = place
        previous = at.get((document, number - 1))
        if previous is not None:
            edges[index, previous] = edges[previous, index] = 1
    return edges


def _present(paragraphs: Sequence[str]) -> list[int]:
    return [index for index, text in enumerate(paragraphs) if text.strip()]


def _spread(edges: NDArray[np.float64], real: Sequence[int], size: int) -> Graph:
    """Return the edges between real paragraphs as edges between all."""
    graph = np.zeros((size, size), np.float32)
    graph[np.ix_(real, real)] = edges
    return graph
