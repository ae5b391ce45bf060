"""What the Hierarchical Transformer and the Flat Transformer read."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import datasets
import numpy as np
from numpy.typing import NDArray

from longsumbench.core import Example, FitContext
from longsumbench.modeling.best_paragraphs import BestParagraphs
from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.paragraphs import Limits
from longsumbench.modeling.units import Units, prepend_query
from longsumbench.models.hierarchical_transformer.config import FlatTransformerConfig, HierarchicalTransformerConfig
from longsumbench.models.hierarchical_transformer.entities import find_entities, pipeline_identity
from longsumbench.models.hierarchical_transformer.graphs import discourse_graph, similarity_graph


class GraphCollator(UnitCollator):
    """As UnitCollator, plus `unit_graph` [B, U, U], 0 where a unit is absent, if the rows have graphs."""

    matrices = ("unit_graph",)


class HierarchicalReader(BestParagraphs):
    """Reads the title and the best paragraphs, one unit each; a graph may relate them."""

    Collator = GraphCollator
    config: HierarchicalTransformerConfig

    def limits(self, training: bool) -> Limits:
        """Return the limits of the input."""
        config, limits = self.config, super().limits(training)
        number = config.num_paragraphs if training else config.test_num_paragraphs or config.num_paragraphs
        return replace(limits, num_paragraphs=number)

    def prepare(self, context: FitContext) -> None:
        """Check that spaCy is installed if it is needed; then fit or load the ranker."""
        if self.config.graph == "discourse":
            find_entities(self.config.entities, self.config.spacy_model)
        super().prepare(context)

    def identity(self) -> dict[str, Any]:
        """Return the learned ranker, and the spaCy pipeline of a discourse graph."""
        uses_spacy = self.config.graph == "discourse" and self.config.entities == "spacy"
        spacy = {"spacy": pipeline_identity(self.config.spacy_model)} if uses_spacy else {}
        return {**super().identity(), **spacy}

    def read(self, example: Example, limits: Limits) -> Units:
        """Return the title and the best paragraphs, one unit each after the query; and their graph, if any."""
        query = self.query(example, limits.paragraph_length)
        length, reserved = limits.paragraph_length - len(query), len(query)
        units, paragraphs = self.best(example, replace(limits, paragraph_length=length, reserved=reserved))
        units = prepend_query(units, query)
        if self.config.graph == "none":
            return units
        texts, places = [paragraph.text for paragraph in paragraphs], [paragraph.place for paragraph in paragraphs]
        graph = self.graph([example.title or "", *texts], [None, *places])
        return replace(units, columns={"unit_graph": graph.tolist()})

    def graph(self, texts: Sequence[str], places: Sequence[tuple[int, int] | None]) -> NDArray[np.float32]:
        """Return the graph between paragraphs (Hierarchical Transformer, Appendix): [units, units], edge weights."""
        if self.config.graph == "similarity":
            return similarity_graph(texts)
        return discourse_graph(texts, places, find_entities(self.config.entities, self.config.spacy_model))

    def features(self) -> datasets.Features:
        """Return the columns of a row, with the graph."""
        rows = datasets.List(datasets.List(datasets.Value("float32")))
        graph = {} if self.config.graph == "none" else {"unit_graph": rows}
        return datasets.Features({**super().features(), **graph})


class FlatReader(BestParagraphs):
    """Reads the title and the best paragraphs as one text, cut at the input length."""

    config: FlatTransformerConfig

    def marked(self, units: Units) -> Units:
        """Return the units; with fidelity=official each ends with the end token, which `input_length` does not count.

        Choice: the released code marks paragraphs and the end with two tokens; vocabularies here have only one.
        """
        if self.config.fidelity != "official":
            return units
        end = self.tokenizer.eos_token_id
        return replace(units, ids=tuple([*ids, end] if ids else [] for ids in units.ids))
