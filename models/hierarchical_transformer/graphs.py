"""Graphs between paragraphs that replace a head of the global layers (Hierarchical Transformer, Eq. 24 and Appendix).

Rows are as in the appendix; the network divides them by their sums. A graph is one class; plug-ins add others by the
entry-point group `longsumbench.graphs`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longsumbench.modeling.ranking import similarities

Edges: TypeAlias = NDArray[np.float64]
Graph: TypeAlias = NDArray[np.float32]
Place: TypeAlias = (
    tuple[int, int] | None
)  # document, and index among its paragraphs; None: no document

_LEAST_SIMILARITY = 0.2  # edges below it are removed
_EDGE_ROUNDING = 1e-12  # tolerance of that limit


class ParagraphGraph(ABC):
    """A graph between paragraphs, a value of `model.graph`. N: number of paragraphs.

    Args:
        entities: `model.entities`, how entities are found, for graphs that need them.
        spacy_model: `model.spacy_model`, the pipeline that finds them.
    """

    def __init__(self, entities: str, spacy_model: str) -> None:
        self.entities, self.spacy_model = entities, spacy_model

    def default_entities(self) -> str:
        """Return what `model.entities=auto` means: "spacy" or "capitals"."""
        return "capitals"

    def identity(self) -> dict[str, Any]:
        """Return what decides the edges, apart from settings: versions of models."""
        return {}

    def check(self) -> None:  # noqa: B027 - most need nothing
        """Check before training that the graph can be computed here; raise EnvironmentProblem."""

    @abstractmethod
    def edges(self, paragraphs: Sequence[str], places: Sequence[Place]) -> Edges:
        """Return the weights of the edges between paragraphs, none of which is empty: [N, N]."""

    def __call__(self, paragraphs: Sequence[str], places: Sequence[Place]) -> Graph:
        """Return the graph [N, N]; absent paragraphs (empty texts) have rows and columns of zeros."""
        real = [index for index, text in enumerate(paragraphs) if text.strip()]
        graph = np.zeros((len(paragraphs), len(paragraphs)), np.float32)
        graph[np.ix_(real, real)] = self.edges(
            [paragraphs[index] for index in real], [places[index] for index in real]
        )
        return graph


class SimilarityGraph(ParagraphGraph):
    """Cosines of the paragraphs' tf-idf vectors, without those below 0.2 (A.1, Eq. 25).

    N_d is the number of paragraphs that are not empty. The graph is symmetric, with 1 on the diagonal of such a
    paragraph.
    """

    def edges(self, paragraphs: Sequence[str], places: Sequence[Place]) -> Edges:
        """Return the similarities: [N, N]."""
        similar = similarities(paragraphs)
        similar[similar < _LEAST_SIMILARITY - _EDGE_ROUNDING] = 0
        return similar
