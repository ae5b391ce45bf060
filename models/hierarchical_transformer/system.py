"""The systems Hierarchical Transformer and Flat Transformer: their networks and evidence."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from longsumbench.core import ATTENDED_AXIS, Evidence, Example
from longsumbench.modeling.generation import Written
from longsumbench.modeling.network import Network
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.folded_attention import recorded_attention
from longsumbench.modeling.nn.recording import recorded
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.models.hierarchical_transformer.config import (
    FlatTransformerConfig,
    HierarchicalTransformerConfig,
    TransformerConfig,
)
from longsumbench.models.hierarchical_transformer.global_layer import ParagraphAttention
from longsumbench.models.hierarchical_transformer.model import HierarchicalTransformerForConditionalGeneration
from longsumbench.models.hierarchical_transformer.readers import FlatReader, HierarchicalReader


class HierarchicalNetwork(Network):
    """The network with global layers."""

    Model = HierarchicalTransformerForConditionalGeneration
    config: TransformerConfig

    def own_settings(self, multi_document: bool) -> dict[str, Any]:
        """Return whether it is as in the released code."""
        return {"official": self.config.fidelity == "official"}


class FlatNetwork(HierarchicalNetwork):
    """The network without global layers."""

    def own_settings(self, multi_document: bool) -> dict[str, Any]:
        """Return that it has no global layers, and positions of tokens alone."""
        return {**super().own_settings(multi_document), "global_layers": 0, "paragraph_positions": False}


class HierarchicalTransformer(NeuralSystem):
    """Encode the best paragraphs separately, relate them by global layers, and decode from all their tokens."""

    Config, Reader, Network = HierarchicalTransformerConfig, HierarchicalReader, HierarchicalNetwork
    gives_attention = True
    keeps_evidence = True
    extracts = True

    def span_weights(self, example: Example, output: Written) -> tuple[Sequence[tuple[int, int]], NDArray[Any]]:
        """Return the paragraphs that were read, and the attention per token to each in every step: [P, T].

        Choice: attention to a paragraph is a sum over its tokens, so a long one gets more. An extract has a number of
        words, so the attention per token decides.
        """
        units = output.units
        tokens = np.array([max(1, len(ids)) for ids in units.ids])
        return units.spans, self.evidence(output).arrays["attention"] / tokens[:, None]

    def evidence(self, output: Written) -> Evidence:
        """Return the paragraphs' weights for each other, and the attention of every output token to each paragraph."""
        last = self.model.model.decoder.layers[-1].encoder_attn
        with recorded(self.model, ParagraphAttention) as related, recorded_attention(last) as weights:
            self.decode_again(output)
        units, output_ids = output.units, output.ids
        per_token = weights[-1][0].float().mean(0)[: len(output_ids)]  # [T, S]
        sizes = [len(ids) for ids in units.ids]
        per_unit = torch.split(per_token[:, : sum(sizes)], sizes, 1)
        arrays: dict[str, Any] = {"attention": torch.stack([attended.sum(-1) for attended in per_unit])}  # [P, T]
        axes: dict[str, tuple[str, ...]] = {"attention": ("unit", "step")}
        texts = {
            "unit": tuple(text.strip() for text in self.tokenizer.batch_decode(units.ids)),
            "step": tuple(token_texts(self.tokenizer, output_ids)),
        }
        if related:
            arrays["relation"] = torch.stack([layer[0] for _, layer in related]).float()  # [layers, H, P, P]
            axes["relation"] = ("layer", "head", "unit", ATTENDED_AXIS)
            texts[ATTENDED_AXIS] = texts["unit"]
            texts["layer"] = tuple(f"global layer {number}" for number, _ in enumerate(related, start=1))
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)


class FlatTransformer(NeuralSystem):
    """Join the title and the best paragraphs, cut them, and read them as one text."""

    Config, Reader, Network = FlatTransformerConfig, FlatReader, FlatNetwork
    gives_attention = True
