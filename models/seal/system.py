"""Trunc as a system: its units for an example, and its model."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from longsumbench import registry
from longsumbench.documents import Example
from longsumbench.models.seal.config import TruncConfig
from longsumbench.models.seal.model import TruncForConditionalGeneration, TruncModelConfig
from longsumbench.neural import Encode, NeuralSystem
from longsumbench.nn.initialization import xavier
from longsumbench.ranking import rank
from longsumbench.segmentation import Units, join, reorder, snippets


class Trunc(NeuralSystem):
    """The leading snippets, joined and cut at `input_length` (SEAL §3.2)."""

    Config = TruncConfig
    Model = TruncForConditionalGeneration
    units_decided_by = ("input_length", "snippet_length", "num_snippets", "rank")
    config: TruncConfig

    def units(self, example: Example, encode: Encode) -> Units:
        """Return one unit: the joined snippets."""
        encoded = [encode(list(document.sentences())) for document in example.documents]
        units = snippets(encoded, self.config.snippet_length, self.config.num_snippets)
        if self.config.rank != "none":
            texts = self.tokenizer.batch_decode(units.ids)
            ranker = registry.rankers.load(self.config.rank)
            units = reorder(units, rank(ranker(example.title, texts)))
        return join(units, self.config.input_length)

    def build_model(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Build the network; Choice: the paper does not say how its weights start."""
        special = (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id)
        model = TruncForConditionalGeneration(self.model_config(len(tokenizer), special))
        xavier(model, self.config.dimension("d_model"))
        return model

    def model_config(self, vocabulary: int, special: tuple[int, int | None, int]) -> TruncModelConfig:
        """Return the network's own configuration.

        Args:
            vocabulary: entries of the tokenizer.
            special: the ids that pad, start and end; without a start token the padding starts, as in T5.
        """
        config = self.config
        pad, start, end = special
        return TruncModelConfig(
            vocab_size=vocabulary,
            d_model=config.dimension("d_model"),
            encoder_ffn_dim=config.dimension("d_ff"),
            decoder_ffn_dim=config.dimension("d_ff"),
            encoder_layers=config.dimension("encoder_layers"),
            decoder_layers=config.dimension("decoder_layers"),
            encoder_attention_heads=config.dimension("num_heads"),
            decoder_attention_heads=config.dimension("num_heads"),
            dropout=config.dropout,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=max(config.input_length, config.decode_length),
            norm=config.norm,
            pad_token_id=pad,
            bos_token_id=start,
            eos_token_id=end,
            decoder_start_token_id=pad if start is None else start,
            forced_eos_token_id=None,
        )
