"""The simplified Approximate Discourse Graph between paragraphs (Hierarchical Transformer, A.2, Eq. 26)."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longsumbench.models.hierarchical_transformer.graphs import Edges, ParagraphGraph, Place
from longsumbench_reproduction.models.entities import available, find_entities, pipeline_identity

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


class DiscourseGraph(ParagraphGraph):
    """0.2 · entities in common + a marker between (A.2, Eq. 26).

    The marker counts 1 if two paragraphs are consecutive in a document and the later one begins with one of
    `DISCOURSE_MARKERS`. Markers match whole words in any casing, after any signs. The paragraphs are in any order. The
    graph is symmetric; on the diagonal is 0.2 · the number of the paragraph's entities.
    """

    def default_entities(self) -> str:
        """Return "spacy" if it and its pipeline are installed."""
        return "spacy" if available(self.spacy_model) else "capitals"

    def identity(self) -> dict[str, Any]:
        """Return the spaCy pipeline."""
        if self.entities != "spacy":
            return {}
        return {"spacy": pipeline_identity(self.spacy_model)}

    def check(self) -> None:
        """Check that spaCy is installed if it is needed."""
        find_entities(self.entities, self.spacy_model)

    def edges(self, paragraphs: Sequence[str], places: Sequence[Place]) -> Edges:
        """Return the edges: [N, N]."""
        find = find_entities(self.entities, self.spacy_model)
        edges = _ENTITY_WEIGHT * _in_common(find(paragraphs))
        edges += _connected([is_marked(text) for text in paragraphs], places)
        return edges


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
