"""The systems Hierarchical Transformer and Flat Transformer: what they read, and their evidence."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import datasets
import numpy as np
import torch
from numpy.typing import NDArray

from longsumbench.core import ATTENDED_AXIS, Evidence, Example, FitContext, Span
from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.generation import GeneratedText, decode_again
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.folded_attention import recorded, recorded_attention
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.modeling.unit_reader import BestParagraphs
from longsumbench.modeling.units import Limits, Units, prepend_query
from longsumbench.models.hierarchical_transformer.config import (
    FlatTransformerConfig,
    HierarchicalTransformerConfig,
)
from longsumbench.models.hierarchical_transformer.global_layer import ParagraphAttention
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
)


class GraphCollator(UnitCollator):
    """As UnitCollator, plus `unit_graph` [B, U, U], 0 where a unit is absent, if the rows have graphs."""

    matrices = ("unit_graph",)


class HierarchicalReader(BestParagraphs):
    """Reads the title and the best paragraphs, one unit each; a graph may relate them."""

    Collator = GraphCollator
    config: HierarchicalTransformerConfig

    def __init__(self, config: HierarchicalTransformerConfig) -> None:
        super().__init__(config)
        self.graph = config.paragraph_graph()
        if self.graph:
            self.columns = {"unit_graph": datasets.List(datasets.List(datasets.Value("float32")))}

    def limits(self, training: bool) -> Limits:
        """Return the limits of the input."""
        number = self.config.num_paragraphs
        if not training and self.config.test_num_paragraphs:
            number = self.config.test_num_paragraphs
        return replace(super().limits(training), num_paragraphs=number)

    def prepare(self, context: FitContext) -> None:
        """Check that the graph can be computed; then fit or load the ranker."""
        if self.graph:
            self.graph.check()
        super().prepare(context)

    def read(self, example: Example, limits: Limits) -> Units:
        """Return the title and the best paragraphs, one unit each after the query; and their graph, if any."""
        query = self.query(example, limits.paragraph_length)
        length = limits.paragraph_length - len(query)
        room = replace(limits, paragraph_length=length, reserved=len(query))
        units, paragraphs = self.best(example, room)
        units = prepend_query(units, query)
        if self.graph is None:
            return units
        texts = [example.title or "", *(paragraph.text for paragraph in paragraphs)]
        places = [None, *(paragraph.position for paragraph in paragraphs)]
        return replace(units, columns={"unit_graph": self.graph(texts, places).tolist()})


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


class HierarchicalTransformer(NeuralSystem):
    """Encode the best paragraphs separately, relate them by global layers, and decode from all their tokens."""

    Config, Reader = HierarchicalTransformerConfig, HierarchicalReader
    Model = HierarchicalTransformerForConditionalGeneration

    def weigh_spans(self, output: GeneratedText) -> tuple[Sequence[Span], NDArray[Any]]:
        """Return the attention per token to each paragraph that was read, at each step.

        Choice: attention to a paragraph is a sum over its tokens, so a long one gets more. An extract has a number of
        words, so the attention per token decides.
        """
        tokens = np.array([max(1, len(ids)) for ids in output.units.ids])
        return output.units.spans, self.evidence(output).arrays["attention"] / tokens[:, None]

    def evidence(self, output: GeneratedText) -> Evidence:
        """Return the paragraphs' weights for each other, and the attention of every output token to each paragraph."""
        last = self.model.model.decoder.layers[-1].encoder_attn
        with (
            recorded(self.model, ParagraphAttention) as related,
            recorded_attention(last) as weights,
        ):
            decode_again(self.model, self.reader, output)
        # The last layer, its heads averaged.
        per_token = weights[-1][0].float().mean(0)[: len(output.ids)]  # [T, S]
        sizes = [len(ids) for ids in output.units.ids]
        per_unit = torch.split(per_token[:, : sum(sizes)], sizes, 1)
        # [P, T]
        arrays = {"attention": torch.stack([attended.sum(-1) for attended in per_unit])}
        axes: dict[str, tuple[str, ...]] = {"attention": ("unit", "step")}
        texts = {
            "unit": self.decode_texts(output.units.ids),
            "step": tuple(token_texts(self.tokenizer, output.ids)),
        }
        if related:
            # [layers, H, P, P]
            arrays["relation"] = torch.stack([layer[0] for _, layer in related]).float()
            axes["relation"] = ("layer", "head", "unit", ATTENDED_AXIS)
            texts[ATTENDED_AXIS] = texts["unit"]
            numbers = range(1, len(related) + 1)
            texts["layer"] = tuple(f"global layer {number}" for number in numbers)
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)


class FlatTransformer(NeuralSystem):
    """Join the title and the best paragraphs, cut them, and read them as one text."""

    Config, Reader, Model = (
        FlatTransformerConfig,
        FlatReader,
        HierarchicalTransformerForConditionalGeneration,
    )
