"""The networks of seq2seq: what a checkpoint is, how much it reads, and how it is loaded."""

from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
from transformers.models.bart.modeling_bart import BartLearnedPositionalEmbedding
from transformers.models.led.modeling_led import LEDLearnedPositionalEmbedding

from longsumbench.api import FitContext, read_checkpoint
from longsumbench.errors import DataError, UsageError
from longsumbench.modeling.checkpoints import (
    FETCH_AGAIN,
    check_complete,
    check_memory,
    check_vocabulary,
    checkpoint_facts,
    checkpoint_identity,
    load_config,
    load_network,
    model_folder,
    weights_format,
)
from longsumbench.modeling.network import Network
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.tokenizer import load_tokenizer
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.seq2seq.config import Seq2SeqConfig

_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
_LINE_BREAKERS = ("pegasus", "pegasus_x", "bigbird_pegasus")  # model types that write line breaks as "<n>"


class Seq2SeqNetwork(Network):
    """Any class of `AutoModelForSeq2SeqLM`. Sizes, limits and tokenizer are the checkpoint's."""

    Model: ClassVar[Any] = AutoModelForSeq2SeqLM
    config: Seq2SeqConfig

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self._described: PreTrainedConfig | None = None

    def initial_folder(self) -> Path:
        """Return the folder of the checkpoint, fetched from the hub if it is there.

        Raises:
            UsageError: the checkpoint or its revision does not exist.
            EnvironmentProblem: it is on the hub, has no local copy, and cannot be fetched.
        """
        config = self.config
        return model_folder(config.checkpoint, "model.checkpoint", revision=config.revision, pickled=True)

    @property
    def described(self) -> PreTrainedConfig:
        """The configuration of the checkpoint's network.

        Raises:
            UsageError: it is no encoder-decoder, or the settings exceed its positions.
        """
        if self._described is None:
            described = self._load_config(self.initial_folder(), self.named)
            self._check_lengths(described)
            self._described = described
        return self._described

    def _load_config(self, folder: Path, named: str) -> PreTrainedConfig:
        config: PreTrainedConfig = load_config(self.Model, folder, named)
        kind = config.model_type
        if kind not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES or not config.is_encoder_decoder:
            problem = f"{named} is a checkpoint of '{kind}', not of an encoder-decoder"
            raise UsageError(f"{problem}: choose another; language models run with model=prompt")
        return config

    def _check_lengths(self, described: PreTrainedConfig) -> None:
        if self.config.input_length is None and _positions(described, "encoder") is None:
            unlimited = f"{self.named} ('{described.model_type}') has no number of positions"
            raise UsageError(f"model.input_length is missing, and {unlimited}: give the longest input in tokens")
        for name, stack in (("input_length", "encoder"), ("decode_length", "decoder")):
            length, positions = getattr(self.config, name), _positions(described, stack)
            if length is not None and positions is not None and length > positions:
                raise UsageError(f"model.{name}={length}: {self.named} has only {positions} positions: choose less")
        multiple, positions = self.config.pad_to_multiple_of or 1, _positions(described, "encoder")
        length = self.config.input_length or positions or 0
        if positions is not None and -(-length // multiple) * multiple > positions:
            padded = f"model.pad_to_multiple_of={multiple} pads inputs of {length} tokens beyond"
            raise UsageError(f"{padded} the {positions} positions of {self.named}: choose a shorter model.input_length")
        if self.config.global_attention not in (None, "none") and described.model_type != "led":
            asked_for = f"model.global_attention={self.config.global_attention}"
            raise UsageError(f"{asked_for} goes with LED, not with '{described.model_type}': leave it out")

    @property
    def input_length(self) -> int:
        """The longest input with its special tokens."""
        length = self.config.input_length or _positions(self.described, "encoder")
        assert length is not None
        return length

    @property
    def multiple(self) -> int:
        """Inputs are padded to a multiple of this number of tokens."""
        if self.config.pad_to_multiple_of is not None:
            return self.config.pad_to_multiple_of
        window = getattr(self.described, "attention_window", 1)  # of LED
        return int(window if isinstance(window, int) else max(window))

    @property
    def padded_length(self) -> int:
        """The length of every input of BigBird-PEGASUS; 0 for other networks.

        Its last block of tokens attends to all others, so other padding would change the output.
        """
        if self.described.model_type != "bigbird_pegasus":
            return 0
        block = self.described.block_size
        return int(min(-(-self.input_length // block) * block, self.described.max_position_embeddings))

    @property
    def global_attention(self) -> str:
        """The tokens that attend to all others: "first", "separator" (and the first) or "none"."""
        return self.config.global_attention or ("first" if self.described.model_type == "led" else "none")

    @property
    def line_break(self) -> str | None:
        """The text with which the network writes a line break; None: a line break."""
        return "<n>" if self.described.model_type in _LINE_BREAKERS else None

    @property
    def named(self) -> str:
        """The checkpoint in messages."""
        return f"model.checkpoint={self.config.checkpoint}"

    def initial_model(self, reader: UnitReader) -> PreTrainedModel:
        """Return the model that training starts from, in single precision; the caller has set the seed."""
        if self.config.init == "checkpoint":
            return self._load(self.initial_folder(), self.named, dtype=torch.float32)
        check_memory(lambda: self.Model.from_config(self.described), self.named)
        return self._ready(self.build(reader))

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model with random weights: `xavier`, or T5's own, which go with its unscaled attention."""
        model = self.blank_model((0, None, 0))
        if not hasattr(model.config, "initializer_factor"):
            xavier(model, model.config.d_model)
        if not getattr(model.config, "scale_embedding", False):  # tokens are N(0, 1/width): so are positions
            for part in model.modules():
                if isinstance(part, BartLearnedPositionalEmbedding | LEDLearnedPositionalEmbedding):
                    part.weight.data *= model.config.d_model**-0.5
        return model

    def blank_model(self, special: tuple[int, int | None, int], multi_document: bool = False) -> PreTrainedModel:
        """Return the checkpoint's network without its weights."""
        model: PreTrainedModel = self.Model.from_config(deepcopy(self.described), dtype=torch.float32)
        return model

    def writer(self, folder: Path, named: str) -> PreTrainedModel:
        """Return the model in a folder for writing: of the settings' data type, on their devices."""
        options = {"device_map": self.config.device_map} if self.config.device_map else {}
        return self._load(folder, named, dtype=getattr(torch, self.config.dtype), **options)

    def _load(self, folder: Path, named: str, **options: Any) -> PreTrainedModel:
        """Load a model and its weights, all of which must be there."""
        config = self._load_config(folder, named)
        safe = weights_format(folder) != "bin"
        model, missing, _ = load_network(self.Model, folder, named, config, use_safetensors=safe, **options)
        computed = {f"{name}.weight" for name, part in model.named_modules() if hasattr(part, "create_weight")}
        check_complete(missing - computed, named)  # PEGASUS computes its positions; its first checkpoints lack them
        return self._ready(model)

    def _ready(self, model: PreTrainedModel) -> PreTrainedModel:
        """Keep only the special tokens of a model's generation settings; `decode.*` decides all others."""
        card, config = model.generation_config, model.config
        special = {name: getattr(card, name, None) for name in _SPECIAL}
        special = {name: getattr(config, name) if token is None else token for name, token in special.items()}
        if special["decoder_start_token_id"] is None:
            raise DataError(f"{self.named}: its config.json lacks decoder_start_token_id; {FETCH_AGAIN}")
        for name, token in special.items():
            setattr(config, name, token)
        model.generation_config = GenerationConfig(forced_bos_token_id=card.forced_bos_token_id, **special)
        return model

    def tokenizer(self, context: FitContext) -> PreTrainedTokenizerBase:
        """Return the checkpoint's tokenizer; check that every token has an embedding."""
        return self._tokenizer(self.initial_folder(), self.described, self.named)

    def _tokenizer(self, folder: Path, described: PreTrainedConfig, named: str) -> PreTrainedTokenizerBase:
        tokenizer = load_tokenizer(folder)
        check_vocabulary(tokenizer, described.vocab_size, named)
        return tokenizer

    def identity(self) -> dict[str, Any]:
        """Return the digest of the checkpoint's files and its commit, in place of its name.

        Raises:
            UsageError: the checkpoint or its revision does not exist.
            EnvironmentProblem: it is on the hub, and cannot be fetched.
        """
        return checkpoint_identity(self.initial_folder())

    def facts(self) -> dict[str, Any]:
        """Return facts about the checkpoint for the record."""
        known = checkpoint_facts(self.config.checkpoint, self.initial_folder())
        return {"released": self.config.released, **known}

    def open(self, folder: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        """Load tokenizer and model of a checkpoint that the suite saved.

        Raises:
            UsageError: the checkpoint is of another system.
            DataError: a file is damaged.
        """
        read_checkpoint(folder, type(self.config))
        named = f"the checkpoint {folder}"
        model = self.writer(folder, named)
        self._described = model.config
        return self._tokenizer(folder, model.config, named), model


def _positions(described: PreTrainedConfig, stack: str) -> int | None:
    """Return the number of positions of a stack; None if they have no limit. LED's are whole windows of attention."""
    shared = getattr(described, "max_position_embeddings", None)
    positions: int | None = getattr(described, f"max_{stack}_position_embeddings", shared)
    if described.model_type == "led" and stack == "encoder" and positions is not None:
        window = described.attention_window
        positions -= positions % (window if isinstance(window, int) else max(window))
    return positions
