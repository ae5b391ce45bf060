"""The systems Hierarchical Transformer and Flat Transformer: what they read, their networks and their evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import datasets
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from longsumbench.api.config import Recipe
from longsumbench.api.documents import Example
from longsumbench.api.system import ATTENDED_AXIS, Evidence, Split
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.modeling.best_paragraphs import BestParagraphs
from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.neural_system import Encode, network_sizes, special_ids
from longsumbench.modeling.nn.folded_attention import recorded_attention
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.nn.recording import recorded
from longsumbench.modeling.paragraphs import Limits
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.modeling.units import Units, prepend_query
from longsumbench.models.hierarchical_transformer.config import (
    FlatTransformerConfig,
    HierarchicalTransformerConfig,
    TransformerConfig,
)
from longsumbench.models.hierarchical_transformer.entities import find_entities, pipeline_identity
from longsumbench.models.hierarchical_transformer.global_layer import ParagraphAttention
from longsumbench.models.hierarchical_transformer.graphs import discourse_graph, similarity_graph
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
)


@dataclass(frozen=True, slots=True)
class GraphUnits(Units):
    """As Units, plus a graph between them.

    Attributes:
        graph: [units, units], weights of the edges.
    """

    graph: NDArray[np.float32] = field(kw_only=True)


@dataclass(frozen=True)
class GraphCollator(UnitCollator):
    """As UnitCollator, plus `unit_graph` [B, U, U], 0 where a unit is absent."""

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch."""
        batch = super().__call__(rows)
        size = batch["input_ids"].shape[1]
        batch["unit_graph"] = torch.zeros(len(rows), size, size)
        for whole, item in zip(batch["unit_graph"], rows, strict=True):
            edges = torch.as_tensor(item["unit_graph"], dtype=torch.float32)
            whole[: len(edges), : len(edges)] = edges
        return batch


class TransformerSystem(BestParagraphs):
    """Base class of the hierarchical and the flat encoder-decoder: their network."""

    Model = HierarchicalTransformerForConditionalGeneration
    gives_attention = True
    config: TransformerConfig

    def build_model(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Build the network; its weights start from Xavier's uniform distribution, as in the released code."""
        config = self.config
        model = self.Model(
            HierarchicalTransformerModelConfig(
                **network_sizes(config.dimension, config.dropout, len(tokenizer), special_ids(tokenizer)),
                activation_function="relu",
                official=config.fidelity == "official",
                **self.own_dimensions(),
            )
        )
        xavier(model, config.d_model)
        return model

    def own_dimensions(self) -> dict[str, Any]:
        """Return the entries of the network's configuration that the two systems do not share; here the flat one's."""
        return {"global_layers": 0, "paragraph_positions": False}


class HierarchicalTransformer(TransformerSystem):
    """Encode the best paragraphs separately, relate them by global layers, and decode from all their tokens."""

    Config = HierarchicalTransformerConfig
    keeps_evidence = True
    config: HierarchicalTransformerConfig

    def limits(self, training: bool) -> Limits:
        """Return the limits of the input."""
        config, limits = self.config, super().limits(training)
        number = config.num_paragraphs if training else config.test_num_paragraphs or config.num_paragraphs
        return replace(limits, num_paragraphs=number)

    def prepare(self, train: Split, validation: Split | None, recipe: Recipe, stages: ArtifactCache) -> None:
        """Check that spaCy is installed if it is needed; then fit or load the ranker."""
        if self.config.graph == "discourse":
            find_entities(self.config.entities, self.config.spacy_model)
        super().prepare(train, validation, recipe, stages)

    def identity(self) -> dict[str, Any]:
        """Return the settings, and the spaCy pipeline of a discourse graph."""
        return {**super().identity(), **self._spacy()}

    def units_also_decided_by(self) -> dict[str, Any]:
        """Return the learned ranker, and the spaCy pipeline of a discourse graph."""
        return {**super().units_also_decided_by(), **self._spacy()}

    def _spacy(self) -> dict[str, str]:
        asked = self.config.graph == "discourse" and self.config.entities == "spacy"
        return {"spacy": pipeline_identity(self.config.spacy_model)} if asked else {}

    def read(self, example: Example, encode: Encode, limits: Limits) -> Units:
        """Return the title and the best paragraphs, one unit each after the query; and their graph, if any."""
        query = self.query(example, encode, limits.paragraph_length)
        length, taken = limits.paragraph_length - len(query), len(query)
        units, paragraphs = self.best(example, encode, replace(limits, paragraph_length=length, taken=taken))
        units = prepend_query(units, query)
        if self.config.graph == "none":
            return units
        texts, places = [paragraph.text for paragraph in paragraphs], [paragraph.place for paragraph in paragraphs]
        graph = self.graph([example.title or "", *texts], [None, *places])
        return GraphUnits(units.ids, units.documents, units.words, units.truncation, units.query_length, graph=graph)

    def graph(self, texts: Sequence[str], places: Sequence[tuple[int, int] | None]) -> NDArray[np.float32]:
        """Return the graph between paragraphs (Hierarchical Transformer, Appendix)."""
        if self.config.graph == "similarity":
            return similarity_graph(texts)
        return discourse_graph(texts, places, find_entities(self.config.entities, self.config.spacy_model))

    def features(self) -> datasets.Features:
        """Return the columns of a training row."""
        if self.config.graph == "none":
            return super().features()
        rows = datasets.List(datasets.List(datasets.Value("float32")))
        return datasets.Features({**super().features(), "unit_graph": rows})

    def values(self, units: Units, labels: Sequence[int] = ()) -> dict[str, Any]:
        """Return a row of plain values, from which batches are collated."""
        values = super().values(units, labels)
        return {**values, "unit_graph": units.graph.tolist()} if isinstance(units, GraphUnits) else values

    def collator(self) -> UnitCollator:
        """Return the collator."""
        return super().collator() if self.config.graph == "none" else GraphCollator(self.tokenizer.pad_token_id)

    def own_dimensions(self) -> dict[str, Any]:
        """Return the entries of the network's configuration that the two systems do not share."""
        config = self.config
        return {
            "global_layers": config.global_layers,
            "pooling_heads": config.pooling_heads,
            "paragraph_positions": config.paragraph_positions,
        }

    def evidence(
        self,
        read: Sequence[Units],
        outputs: Sequence[Sequence[int]],
        complete: Sequence[bool],
        references: Sequence[Sequence[int] | None],
    ) -> list[Evidence]:
        """Return the paragraphs' weights for each other, and the attention of every output token to each paragraph."""
        return list(map(self._evidence_of, read, outputs))

    @torch.inference_mode()
    def _evidence_of(self, units: Units, output: Sequence[int]) -> Evidence:
        model = self.model.eval()
        last = model.model.decoder.layers[-1].encoder_attn
        with recorded(model, ParagraphAttention) as related, recorded_attention(last) as weights:
            model(**self.fed_once_more(units, output))
        per_token = weights[-1][0].float().mean(0)[: len(output)]  # [T, S]
        sizes = [len(ids) for ids in units.ids]
        per_unit = torch.split(per_token[:, : sum(sizes)], sizes, 1)
        arrays: dict[str, Any] = {"attention": torch.stack([attended.sum(-1) for attended in per_unit])}  # [P, T]
        axes: dict[str, tuple[str, ...]] = {"attention": ("unit", "step")}
        texts = {
            "unit": tuple(text.strip() for text in self.tokenizer.batch_decode(units.ids)),
            "step": tuple(token_texts(self.tokenizer, output)),
        }
        if related:
            arrays["relation"] = torch.stack([layer[0] for _, layer in related]).float()  # [layers, H, P, P]
            axes["relation"] = ("layer", "head", "unit", ATTENDED_AXIS)
            texts[ATTENDED_AXIS] = texts["unit"]
            texts["layer"] = tuple(f"global layer {number}" for number, _ in enumerate(related, start=1))
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)


class FlatTransformer(TransformerSystem):
    """Join the title and the best paragraphs, cut them, and read them as one text."""

    Config = FlatTransformerConfig

    def marked(self, units: Units) -> Units:
        """Return the units; with fidelity=official each ends with the end token, which `input_length` does not count.

        Choice: the released code marks paragraphs and the end with two tokens; vocabularies here have only one.
        """
        if self.config.fidelity != "official":
            return units
        end = self.tokenizer.eos_token_id
        return replace(units, ids=tuple([*ids, end] if ids else [] for ids in units.ids))
