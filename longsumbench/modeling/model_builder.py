"""Builds the model of a neural system: at random, or from a checkpoint (`model.init`)."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from longsumbench.core import TRAINED_TOKENIZERS, FitContext, names_deciding, read_checkpoint
from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints, pretrained, tokenizer as tokenization
from longsumbench.modeling.checkpoint_files import read_config
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.nn.device import check_memory
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.nn.unit_encoder import PretrainedEncoder
from longsumbench.modeling.unit_reader import UnitReader

_FREE = {
    "dropout",
    "label_smoothing",
    "use_cache",
    "dtype",
    "architectures",
    "transformers_version",
    "_name_or_path",
}


class ModelBuilder:
    """Makes models of a class of transformers from a system's settings."""

    Model: (
        Any  # a `PreTrainedModel` with `generate` that takes `input_ids` and `unit_mask` [B, U, L]
    )
    config: NeuralConfig

    def __init__(self, config: NeuralConfig, model_class: type[PreTrainedModel]) -> None:
        self.config, self.Model = config, model_class

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model with random weights (`xavier`); the caller has set the seed."""
        tokenizer = reader.tokenizer
        special = tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id
        config = self.model_config(len(tokenizer), special, reader.multi_document)
        if stored := getattr(config, pretrained.ENTRY, None):
            stored["start"], stored["end"] = tokenization.special_tokens(tokenizer)
        model: PreTrainedModel = self.Model(config)
        xavier(model, config.d_model)
        return model

    def model_config(
        self, vocabulary: int, special: tuple[int, int | None, int], multi_document: bool = False
    ) -> PreTrainedConfig:
        """Return the model's configuration: sizes, dropout, special tokens, settings of the same name, `model_entries`.

        Only entries that the library's class does not have are copied by name, so no setting changes one of the
        library's by accident. Source, target and output share scaled embeddings.

        Args:
            vocabulary: number of entries of the tokenizer.
            special: ids of padding, start and end; without a start token, decoding starts with padding, as in T5.
            multi_document: True if the training texts have several documents each.
        """
        kind: Any = self.Model.config_class
        encoder = self.initial_encoder()
        dimension, (pad, start, end) = self.config.dimension, special
        library: Any = next(
            base for base in kind.__mro__ if base.__module__.startswith("transformers.")
        )
        names_of_library = {item.name for item in fields(library)}
        own_names = {item.name for item in fields(kind)} - names_of_library
        entries: dict[str, Any] = {}
        for name, value in vars(self.config).items():
            if name in own_names and value is not None:
                entries[name] = value
        width = encoder.hidden_size if encoder else dimension("d_model")
        layers = encoder.num_hidden_layers if encoder else dimension("encoder_layers")
        for stack, depth in (("encoder", layers), ("decoder", dimension("decoder_layers"))):
            entries[f"{stack}_ffn_dim"] = dimension("d_ff")
            entries[f"{stack}_layers"] = depth
            entries[f"{stack}_attention_heads"] = dimension("num_heads")
        entries |= {
            "vocab_size": vocabulary,
            "d_model": width,
            "dropout": self.config.dropout,
            "scale_embedding": True,
            "pad_token_id": pad,
            "bos_token_id": start,
            "eos_token_id": end,
            "forced_eos_token_id": None,
            "decoder_start_token_id": pad if start is None else start,
        }
        if encoder:
            network = pretrained.stored_entries(encoder)
            entries[pretrained.ENTRY] = {"network": network, "start": [], "end": []}
        model_config: PreTrainedConfig = kind(**entries | self.config.model_entries(multi_document))
        return model_config

    def initial_encoder(self) -> PreTrainedConfig | None:
        """Return the configuration of the pretrained encoder in `model.init`; None: the model has its own layers."""
        config = self.config
        if not config.encoder_lengths:
            return None
        folder = config.initial_folder()
        if folder is None:
            return None
        if config.starts_from_encoder():
            return self._initial().encoder_config()
        stored = read_config(folder).get(pretrained.ENTRY)
        return AutoConfig.for_model(**stored["network"]) if stored else None

    def _initial(self) -> pretrained.Pretrained:
        """Return the encoder of transformers in `model.init`."""
        return pretrained.Pretrained.find(self.config.init, "model.init")

    def blank_model(self, special: tuple[int, int | None, int]) -> PreTrainedModel:
        """Return the model without a tokenizer and with any weights, to count these; as `model_config`."""
        encoder = self.initial_encoder()
        vocabulary = encoder.vocab_size if encoder else self.config.vocabulary_size
        model: PreTrainedModel = self.Model(self.model_config(vocabulary, special))
        return model

    def initial_model(self, reader: UnitReader) -> PreTrainedModel:
        """Return the model that training starts from.

        Raises:
            UsageError: the initial checkpoint does not fit the settings.
            EnvironmentProblem: the model does not fit into memory.
        """
        folder = self.config.initial_folder()
        check_memory(lambda: self.build(reader), f"model={self.config.name}")
        model = self.build(reader)
        if folder and self.config.starts_from_encoder():
            self._load_encoder(model)
        elif folder:
            _, initial = self.open(folder)
            entries, initial_entries = model.config.to_dict(), initial.config.to_dict()
            free = names_deciding(self.config, "labels", "use") | self.config.free_entries | _FREE
            for key in sorted((set(entries) & set(initial_entries)) - free):
                if entries[key] != initial_entries[key]:
                    difference = f"{key} is {initial_entries[key]} there and {entries[key]} here"
                    raise UsageError(
                        f"model.init={self.config.init} does not fit the other settings: {difference}"
                    )
            model.load_state_dict(initial.state_dict())
        return model

    def _load_encoder(self, model: Any) -> None:
        """Load the weights of a pretrained encoder; a decoder as wide as its embeddings starts from these."""
        network = self._initial().network(
            AutoModel, may_lack="pooler", other_heads=True, dtype=torch.float32
        )
        model.model.encoder.pretrained.network.load_state_dict(network.state_dict(), strict=False)
        words = network.get_input_embeddings().weight
        table = model.get_input_embeddings().weight
        if words.shape[1] == table.shape[1]:
            count = min(len(words), len(table))
            table.data[:count] = words.data[:count]

    def _encoder_tokenizer(self, folder: Path) -> PreTrainedTokenizerBase:
        """Load the tokenizer of a pretrained encoder, and check that the encoder reads units as long as the settings."""
        encoder = self.initial_encoder()
        assert encoder is not None
        tokenizer = tokenization.load_tokenizer(folder)
        self._initial().check_vocabulary(tokenizer, encoder.vocab_size)
        start, end = tokenization.special_tokens(tokenizer)
        with torch.device("meta"):
            blank = PretrainedEncoder(pretrained.stored_entries(encoder), start, end, 0)
        for name in self.config.encoder_lengths:
            length = vars(self.config)[name] or 0
            if length > blank.longest:
                raise UsageError(
                    f"model.{name}={length}: model.init={self.config.init} reads only {blank.longest} tokens at once"
                )
        return tokenizer

    def tokenizer(self, context: FitContext) -> PreTrainedTokenizerBase:
        """Return the initial checkpoint's tokenizer; without one, train or load what `model.tokenizer` names."""
        kind, size = self.config.tokenizer, self.config.vocabulary_size
        if folder := self.config.initial_folder():
            if self.config.starts_from_encoder():
                return self._encoder_tokenizer(folder)
            return self.open(folder)[0]
        if kind in TRAINED_TOKENIZERS:
            assert context.train is not None
            return tokenization.trained_tokenizer(context.train, size, context.cache, kind)
        tokenizer = tokenization.load_tokenizer(kind)
        checkpoints.check_vocabulary(tokenizer, len(tokenizer), f"model.tokenizer={kind}")
        return tokenizer

    def open(self, folder: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        """Load tokenizer and model of a checkpoint of this system.

        Raises:
            UsageError: the checkpoint is of another system or model.
            DataError: a file is damaged, or its weights are not those of the model in its configuration.
        """
        read_checkpoint(folder, type(self.config))
        saved = pretrained.Pretrained.saved(folder)
        model = saved.network(self.Model)
        tokenizer = tokenization.load_tokenizer(folder)
        saved.check_vocabulary(tokenizer, model.config.vocab_size)
        return tokenizer, model
