"""The system T-DMCA."""

from transformers import PreTrainedModel

from longsumbench.modeling.best_paragraphs import BestParagraphs
from longsumbench.modeling.network import Network, network_sizes, special_ids
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.tdmca.config import TdmcaConfig
from longsumbench.models.tdmca.model import SourceCountingCollator, TdmcaForConditionalGeneration, TdmcaModelConfig


class TdmcaReader(BestParagraphs):
    """As BestParagraphs, except: a batch also counts the source's tokens."""

    Collator = SourceCountingCollator


class TdmcaNetwork(Network):
    """The network; the separator between source and summary is the start token.

    The separator is not the end token: an untrained output, tied to the embeddings, would predict it again at once.
    """

    Model = TdmcaForConditionalGeneration
    config: TdmcaConfig

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model with random weights."""
        config, tokenizer = self.config, reader.tokenizer
        model = self.Model(
            TdmcaModelConfig(
                **network_sizes(config, len(tokenizer), special_ids(tokenizer)),
                activation_function="relu",
                block_length=config.block_length,
                compression=config.compression,
                source_loss=config.source_loss,
            )
        )
        xavier(model, config.d_model)
        return model


class Tdmca(NeuralSystem):
    """T-DMCA: a decoder-only Transformer over the best paragraphs and the summary."""

    Config, Reader, Network = TdmcaConfig, TdmcaReader, TdmcaNetwork
