"""What a checkpoint of an encoder-decoder is: its family, with positions and sizes; the folder of its adapter."""

from dataclasses import dataclass
from typing import Any

from transformers import AutoModelForSeq2SeqLM, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES

from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.pretrained import Pretrained


@dataclass(frozen=True)
class Family:
    """What the configuration of a checkpoint says, whatever its family calls it.

    Attributes:
        config: the library's configuration.
        encoder_positions, decoder_positions: None if they have no limit. LED's are whole windows of attention.
        vocabulary: entries of the encoder's embedding.
        width: of the states; 0 if each stack has its own.
        xavier: True if its weights start as `xavier` sets them; T5 and others have an initialization of their own.
        scales_embeddings: True if embeddings are multiplied by the root of the width.
        multiple: the length of a padded input is a multiple of it.
        block: the length of a padded input is the longest one, in whole blocks; 0: any length. The last block of tokens
            of BigBird-PEGASUS attends to all others, so other padding would change the output.
    """

    config: PreTrainedConfig
    encoder_positions: int | None
    decoder_positions: int | None
    vocabulary: int
    width: int
    xavier: bool
    scales_embeddings: bool
    multiple: int = 1
    block: int = 0

    @property
    def kind(self) -> str:
        """The model type."""
        kind: str = self.config.model_type
        return kind


def _entry(config: PreTrainedConfig, name: str, default: Any = None) -> Any:
    """Return an entry of a configuration that not every family has."""
    return getattr(config, name, default)


def _stack_config(config: PreTrainedConfig, stack: str) -> PreTrainedConfig:
    """Return the configuration of the encoder or decoder, where each has its own (BERT2BERT, T5Gemma)."""
    part = _entry(config, stack)
    return part.get_text_config() if isinstance(part, PreTrainedConfig) else config


def _positions(config: PreTrainedConfig, stack: str) -> int | None:
    shared = _entry(_stack_config(config, stack), "max_position_embeddings")
    positions: int | None = _entry(config, f"max_{stack}_position_embeddings", shared)
    return positions


def describe_family(config: PreTrainedConfig) -> Family:
    """Return what a configuration says of its model."""
    positions = _positions(config, "encoder")
    multiple, block = 1, 0
    if config.model_type == "led":
        window = config.attention_window
        multiple = window if isinstance(window, int) else max(window)
        if positions is not None:
            positions -= positions % multiple
    if config.model_type == "bigbird_pegasus":
        block = config.block_size
    width: int = _entry(config, "d_model", 0)
    return Family(
        config,
        positions,
        _positions(config, "decoder"),
        _stack_config(config, "encoder").vocab_size,
        width,
        xavier=width > 0 and _entry(config, "initializer_factor") is None,
        scales_embeddings=_entry(config, "scale_embedding", False),
        multiple=multiple,
        block=block,
    )


def read_family(model: Pretrained) -> Family:
    """Return what a pretrained model is.

    Raises:
        UsageError: it is no encoder-decoder.
        DataError: its configuration is damaged.
    """
    config: PreTrainedConfig = model.config(AutoModelForSeq2SeqLM)
    kind = config.model_type
    if kind not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES or not config.is_encoder_decoder:
        advice = f"choose model=prompt {model.shown_as}"
        if not checkpoints.is_language_model(config):
            advice = "give an encoder-decoder, or a language model with model=prompt"
        raise UsageError(
            f"{model.shown_as} is a checkpoint of '{kind}', not of an encoder-decoder: {advice}"
        )
    with checkpoints.reading_checkpoint(model.shown_as):
        return describe_family(config)
