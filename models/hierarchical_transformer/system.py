"""The systems Hierarchical Transformer and Flat Transformer: their networks and evidence."""

from typing import Any

import torch
from transformers import PreTrainedModel

from longsumbench.api.system import ATTENDED_AXIS, Evidence
from longsumbench.modeling.generation import Written
from longsumbench.modeling.network import Network, network_sizes, special_ids
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.folded_attention import recorded_attention
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.nn.recording import recorded
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.hierarchical_transformer.config import (
    FlatTransformerConfig,
    HierarchicalTransformerConfig,
    TransformerConfig,
)
from longsumbench.models.hierarchical_transformer.global_layer import ParagraphAttention
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
)
from longsumbench.models.hierarchical_transformer.readers import FlatReader, HierarchicalReader


class TransformerNetwork(Network):
    """The network of both systems; without global layers, as here, it is the flat one."""

    Model = HierarchicalTransformerForConditionalGeneration
    config: TransformerConfig

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model; its weights start from Xavier's uniform distribution, as in the released code."""
        config, tokenizer = self.config, reader.tokenizer
        model = self.Model(
            HierarchicalTransformerModelConfig(
                **network_sizes(config, len(tokenizer), special_ids(tokenizer)),
                activation_function="relu",
                official=config.fidelity == "official",
                **self.global_sizes(),
            )
        )
        xavier(model, config.d_model)
        return model

    def global_sizes(self) -> dict[str, Any]:
        """Return the entries of the model's configuration that the two systems do not share."""
        return {"global_layers": 0, "paragraph_positions": False}


class HierarchicalNetwork(TransformerNetwork):
    """The network with global layers."""

    config: HierarchicalTransformerConfig

    def global_sizes(self) -> dict[str, Any]:
        """Return the sizes of the global layers, and the kind of positions."""
        names = ("global_layers", "pooling_heads", "paragraph_positions")
        return {name: getattr(self.config, name) for name in names}


class HierarchicalTransformer(NeuralSystem):
    """Encode the best paragraphs separately, relate them by global layers, and decode from all their tokens."""

    Config, Reader, Network = HierarchicalTransformerConfig, HierarchicalReader, HierarchicalNetwork
    gives_attention = True
    keeps_evidence = True

    def evidence(self, written: Written) -> Evidence:
        """Return the paragraphs' weights for each other, and the attention of every output token to each paragraph."""
        last = self.model.model.decoder.layers[-1].encoder_attn
        with recorded(self.model, ParagraphAttention) as related, recorded_attention(last) as weights:
            self.decode_again(written)
        units, output = written.units, written.ids
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


class FlatTransformer(NeuralSystem):
    """Join the title and the best paragraphs, cut them, and read them as one text."""

    Config, Reader, Network = FlatTransformerConfig, FlatReader, TransformerNetwork
    gives_attention = True
