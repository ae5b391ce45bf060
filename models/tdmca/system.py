"""The system T-DMCA."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from longsumbench.modeling.best_paragraphs import BestParagraphs
from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.neural_system import network_sizes, special_ids
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.models.tdmca.config import TdmcaConfig
from longsumbench.models.tdmca.model import SourceCountingCollator, TdmcaForConditionalGeneration, TdmcaModelConfig


class Tdmca(BestParagraphs):
    """T-DMCA: a decoder-only Transformer over the best paragraphs and the summary."""

    Config = TdmcaConfig
    Model = TdmcaForConditionalGeneration
    config: TdmcaConfig

    def build_model(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Build the network; the separator between source and summary is the start token.

        The separator is not the end token: an untrained output, tied to the embeddings, would predict it again at once.
        """
        config = self.config
        model = self.Model(
            TdmcaModelConfig(
                **network_sizes(config.dimension, config.dropout, len(tokenizer), special_ids(tokenizer)),
                activation_function="relu",
                block_length=config.block_length,
                compression=config.compression,
                source_loss=config.source_loss,
            )
        )
        xavier(model, config.d_model)
        return model

    def collator(self) -> UnitCollator:
        """Return the collator, which also counts the source's tokens."""
        return SourceCountingCollator(self.tokenizer.pad_token_id)
