"""The systems Trunc, CA, EA and SEAL: their networks and evidence."""

from typing import ClassVar

import torch
from transformers import PreTrainedModel

from longsumbench.api.system import Evidence
from longsumbench.modeling.generation import Written
from longsumbench.modeling.network import Network, network_sizes, special_ids
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.seal.config import CAConfig, EAConfig, FamilyConfig, SealConfig, TruncConfig
from longsumbench.models.seal.model import (
    CAForConditionalGeneration,
    CAModelConfig,
    EAForConditionalGeneration,
    EAModelConfig,
    SealForConditionalGeneration,
    SealModelConfig,
    TruncForConditionalGeneration,
    TruncModelConfig,
)
from longsumbench.models.seal.readers import CAReader, EAReader, SealReader, TruncReader


class TruncNetwork(Network):
    """Trunc's network, and what the four networks share: their sizes and initial weights."""

    Model = TruncForConditionalGeneration
    ModelConfig: ClassVar[type[TruncModelConfig]] = TruncModelConfig
    config: FamilyConfig

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model. Choice: weights start as `xavier` sets them; the paper does not state them."""
        special = special_ids(reader.tokenizer)
        model = self.Model(self.model_config(len(reader.tokenizer), special, reader.multi_document))
        xavier(model, self.config.dimension("d_model"))
        return model

    def model_config(
        self, vocabulary: int, special: tuple[int, int | None, int], multi_document: bool = False
    ) -> TruncModelConfig:
        """Return the model's configuration; `special` has the ids of padding, start and end."""
        return self.ModelConfig(
            **network_sizes(self.config, vocabulary, special),
            activation_function="relu",
            norm=self.config.norm,
            **self.own_sizes(multi_document),
        )

    def own_sizes(self, multi_document: bool) -> dict[str, int]:
        """Return the entries of the model's configuration that the four systems do not share."""
        return {}


class CANetwork(TruncNetwork):
    """CA's network."""

    Model = CAForConditionalGeneration
    ModelConfig = CAModelConfig
    config: CAConfig

    def own_sizes(self, multi_document: bool) -> dict[str, int]:
        """Return the number of vectors of a group."""
        return {"compressed_length": self.config.vectors_of_a_group(multi_document)}


class EANetwork(TruncNetwork):
    """EA's network."""

    Model = EAForConditionalGeneration
    ModelConfig = EAModelConfig
    config: EAConfig

    def own_sizes(self, multi_document: bool) -> dict[str, int]:
        """Return the gate's limit, the scorer's depth and its document embeddings."""
        documents = self.config.max_documents if multi_document else 0
        limit, layers = self.config.extractive_length, self.config.scorer_layers
        return {"extractive_length": limit, "scorer_layers": layers, "max_documents": documents}


class SealNetwork(EANetwork):
    """SEAL's network."""

    Model = SealForConditionalGeneration
    ModelConfig = SealModelConfig
    config: SealConfig

    def own_sizes(self, multi_document: bool) -> dict[str, int]:
        """Return EA's entries and the length of a segment."""
        return {**super().own_sizes(multi_document), "segment_length": self.config.segment_length}


class Trunc(NeuralSystem):
    """Trunc: the leading snippets, joined and cut at `input_length` (SEAL §3.2)."""

    Config, Reader, Network = TruncConfig, TruncReader, TruncNetwork
    gives_attention = True


class CA(NeuralSystem):
    """CA: groups of snippets, each compressed to a few vectors (SEAL §3.3)."""

    Config, Reader, Network = CAConfig, CAReader, CANetwork
    gives_attention = True


class EA(NeuralSystem):
    """EA: snippets encoded alone and scored; the decoder attends to the best ones (SEAL §3.4)."""

    Config, Reader, Network = EAConfig, EAReader, EANetwork
    keeps_evidence = True
    gives_attention = True

    @torch.inference_mode()
    def evidence(self, written: Written) -> Evidence:
        """Score and select again, given the output: beam search does not keep the selections."""
        model, output = self.model, written.ids
        length = max(1, len(output) + written.complete)  # the end token is written, too
        start = model.config.decoder_start_token_id
        history = torch.tensor([[start, *output][:length]], device=model.device)
        scores, selection = model.select(model.model.encoder(**self.batch(written)), history)
        count, size = model.segments_of(length)
        segments = [output[begin : begin + size] for begin in range(0, count * size, size)]
        arrays = {"scores": scores[0].float(), "selected_tokens": selection.taken.to(torch.int32)}
        decode = self.tokenizer.batch_decode
        return Evidence(
            arrays={name: value.cpu().numpy()[:, : len(written.units.ids)] for name, value in arrays.items()},
            axes=dict.fromkeys(arrays, ("segment", "unit")),
            texts={
                "unit": tuple(text.strip() for text in decode(written.units.ids)),
                "segment": tuple(text.strip() for text in decode(segments, skip_special_tokens=True)),
            },
        )


class Seal(EA):
    """SEAL: as EA, with a new selection for every segment of the output (SEAL §3.5)."""

    Config, Reader, Network = SealConfig, SealReader, SealNetwork
    gives_attention = False  # its memory is another for every segment
