"""The networks of seq2seq: what a checkpoint is, how much it reads, and how it is loaded."""

from copy import deepcopy
from functools import partial
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

from longsumbench.core import FitContext, read_checkpoint
from longsumbench.errors import DataError, EnvironmentProblem, UsageError
from longsumbench.modeling.checkpoints import (
    FETCH_AGAIN,
    check_complete,
    check_memory,
    check_vocabulary,
    check_weights,
    checkpoint_facts,
    checkpoint_identity,
    fetch_files,
    load_config,
    load_network,
    model_digest,
    model_folder,
    reading_checkpoint,
    weights_format,
)
from longsumbench.modeling.generation import TOKEN_RULES
from longsumbench.modeling.network import Network
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.tokenizer import load_tokenizer, special_tokens
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.seq2seq.config import Seq2SeqConfig

_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
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

    def _adapter_folder(self) -> Path | None:
        """Return the folder of the adapter, fetched from the hub if it is there; None without one."""
        if (name := self.config.adapter) is None:
            return None
        folder = Path(name).expanduser()
        folder = folder if folder.is_dir() else fetch_files(name, "model.adapter", _ADAPTER)
        if missing := [file for file in _ADAPTER if not (folder / file).is_file()]:
            raise UsageError(f"model.adapter={name}: no {' and no '.join(missing)} in its folder; save it with PEFT")
        return folder

    @property
    def described(self) -> PreTrainedConfig:
        """The configuration of the checkpoint's network.

        Raises:
            UsageError: it is no encoder-decoder, or the settings exceed its positions.
        """
        if self._described is None:
            described = self._load_config(self.initial_folder(), self.shown_as)
            self._check_lengths(described)
            self._described = described
        return self._described

    def _load_config(self, folder: Path, shown_as: str) -> PreTrainedConfig:
        config: PreTrainedConfig = load_config(self.Model, folder, shown_as)
        kind = config.model_type
        if kind not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES or not config.is_encoder_decoder:
            problem = f"{shown_as} is a checkpoint of '{kind}', not of an encoder-decoder"
            raise UsageError(f"{problem}: choose another; language models run with model=prompt")
        return config

    def _check_lengths(self, described: PreTrainedConfig) -> None:
        if self.config.input_length is None and _stack_positions(described, "encoder") is None:
            unlimited = f"{self.shown_as} ('{described.model_type}') has no number of positions"
            raise UsageError(f"model.input_length is missing, and {unlimited}: give the longest input in tokens")
        for name, stack in (("input_length", "encoder"), ("decode_length", "decoder")):
            length, positions = getattr(self.config, name), _stack_positions(described, stack)
            if length is not None and positions is not None and length > positions:
                raise UsageError(f"model.{name}={length}: {self.shown_as} has only {positions} positions: choose less")
        multiple, positions = self.config.pad_to_multiple_of or 1, _stack_positions(described, "encoder")
        length = self.config.input_length or positions or 0
        if positions is not None and -(-length // multiple) * multiple > positions:
            padded = f"model.pad_to_multiple_of={multiple} pads inputs of {length} tokens beyond"
            raise UsageError(
                f"{padded} the {positions} positions of {self.shown_as}: choose a shorter model.input_length"
            )
        if self.config.global_attention not in (None, "none") and described.model_type != "led":
            asked_for = f"model.global_attention={self.config.global_attention}"
            raise UsageError(f"{asked_for} goes with LED, not with '{described.model_type}': leave it out")

    @property
    def input_length(self) -> int:
        """The longest input with its special tokens."""
        length = self.config.input_length or _stack_positions(self.described, "encoder")
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
    def shown_as(self) -> str:
        """The checkpoint in messages."""
        return f"model.checkpoint={self.config.checkpoint}"

    def initial_model(self, reader: UnitReader) -> PreTrainedModel:
        """Return the model that training starts from, in single precision; the caller has set the seed."""
        if self.config.init == "checkpoint":
            return self._start(reader.tokenizer, dtype=torch.float32)
        check_memory(lambda: self.Model.from_config(self.described), self.shown_as)
        return self._ready(self.build(reader), reader.tokenizer)

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model with random weights: `xavier` for BART's family, the library's own for others, such as T5."""
        model = self.blank_model((0, None, 0))
        width: int = getattr(model.config, "d_model", 0)
        if width and not hasattr(model.config, "initializer_factor"):
            xavier(model, width)
        if not getattr(model.config, "scale_embedding", False):  # tokens are N(0, 1/width): so are positions
            for part in model.modules():
                if isinstance(part, BartLearnedPositionalEmbedding | LEDLearnedPositionalEmbedding):
                    part.weight.data *= width**-0.5
        return model

    def blank_model(self, special: tuple[int, int | None, int], multi_document: bool = False) -> PreTrainedModel:
        """Return the checkpoint's network without its weights."""
        model: PreTrainedModel = self.Model.from_config(deepcopy(self.described), dtype=torch.float32)
        return model

    def _start(self, tokenizer: PreTrainedTokenizerBase, **options: Any) -> PreTrainedModel:
        """Load the checkpoint, and merge the weights of the adapter into it."""
        model = self._load(self.initial_folder(), self.shown_as, tokenizer, **options)
        folder, adapter_name = self._adapter_folder(), f"model.adapter={self.config.adapter}"
        if folder is not None:
            try:
                from peft import PeftModel
            except ImportError as error:
                raise EnvironmentProblem(f"{adapter_name} needs the package peft: pip install peft") from error
            with reading_checkpoint(adapter_name):
                model = PeftModel.from_pretrained(model, folder, local_files_only=True).merge_and_unload()
            check_weights(model, adapter_name)
        return model

    def writer(self, tokenizer: PreTrainedTokenizerBase, folder: Path | None = None) -> PreTrainedModel:
        """Return the model in a folder, or the checkpoint, for writing: in `dtype`, on the devices of `device_map`."""
        options = {"device_map": self.config.device_map} if self.config.device_map else {}
        options["dtype"] = getattr(torch, self.config.dtype)
        load = partial(self._load, folder, f"the checkpoint {folder}") if folder else self._start
        return load(tokenizer, **options)

    def _load(self, folder: Path, shown_as: str, tokenizer: PreTrainedTokenizerBase, **options: Any) -> PreTrainedModel:
        """Load a model and its weights, all of which must be there."""
        config = self._load_config(folder, shown_as)
        safe = weights_format(folder) != "bin"
        model, missing, _ = load_network(self.Model, folder, shown_as, config, use_safetensors=safe, **options)
        computed = {f"{name}.weight" for name, part in model.named_modules() if hasattr(part, "create_weight")}
        check_complete(missing - computed, shown_as)  # PEGASUS computes its positions; its first checkpoints lack them
        return self._ready(model, tokenizer)

    def _ready(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Keep only what a model's generation settings say of tokens; `decode.*` decides all others."""
        card, config = model.generation_config, model.config
        special = {name: getattr(card, name, None) for name in _SPECIAL}
        special = {name: getattr(config, name, None) if token is None else token for name, token in special.items()}
        rules = {name: getattr(card, name) for name in TOKEN_RULES}
        if self.config.target_language is not None:  # mBART starts with the language; others write it first
            start_ids, end_ids = special_tokens(tokenizer, "text_target")
            rules["forced_bos_token_id"] = start_ids[0] if start_ids else None
            special |= {} if start_ids else {"decoder_start_token_id": end_ids[-1]}
        if special["decoder_start_token_id"] is None:  # as in the library's `generate`
            special["decoder_start_token_id"] = special["bos_token_id"]
        if special["decoder_start_token_id"] is None:
            raise DataError(f"{self.shown_as}: its config.json lacks decoder_start_token_id; {FETCH_AGAIN}")
        for name, token in special.items():
            setattr(config, name, token)
        model.generation_config = GenerationConfig(**rules, **special)
        return model

    def tokenizer(self, context: FitContext) -> PreTrainedTokenizerBase:
        """Return the checkpoint's tokenizer; check that every token has an embedding."""
        return self._tokenizer(self.initial_folder(), self.described, self.shown_as)

    def _tokenizer(self, folder: Path, described: PreTrainedConfig, shown_as: str) -> PreTrainedTokenizerBase:
        tokenizer = load_tokenizer(folder, fast=False)
        check_vocabulary(tokenizer, _stack_config(described, "encoder").vocab_size, shown_as)
        language_codes = getattr(tokenizer, "lang_code_to_token", None) or tokenizer.all_special_tokens
        default_language = getattr(tokenizer, "src_lang", None)  # None: the tokenizer has no languages
        for attribute, setting in (("src_lang", "source_language"), ("tgt_lang", "target_language")):
            if (language := getattr(self.config, setting)) is not None:
                if default_language is None or language not in language_codes:
                    advice = f"choose one of its codes, as {default_language}" if default_language else "leave it out"
                    raise UsageError(f"model.{setting}={language} is no language of {shown_as}: {advice}")
                setattr(tokenizer, attribute, language)
        if default_language and tokenizer.tgt_lang is None:
            tokenizer.tgt_lang = tokenizer.src_lang
        return tokenizer

    def identity(self) -> dict[str, Any]:
        """Return the digest of the checkpoint's files and its commit, in place of its name.

        Raises:
            UsageError: the checkpoint or its revision does not exist.
            EnvironmentProblem: it is on the hub, and cannot be fetched.
        """
        adapter = {"adapter": model_digest(folder)} if (folder := self._adapter_folder()) else {}
        return {**checkpoint_identity(self.initial_folder()), **adapter}

    def facts(self) -> dict[str, Any]:
        """Return facts about the checkpoint for the record."""
        facts = checkpoint_facts(self.config.checkpoint, self.initial_folder())
        if folder := self._adapter_folder():
            facts["checkpoint"] += f" + {checkpoint_facts(self.config.adapter, folder)['checkpoint']}"
        return {"released": self.config.released, **facts}

    def open(self, folder: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        """Load tokenizer and model of a checkpoint that the suite saved.

        Raises:
            UsageError: the checkpoint is of another system.
            DataError: a file is damaged.
        """
        read_checkpoint(folder, type(self.config))
        shown_as = f"the checkpoint {folder}"
        tokenizer = self._tokenizer(folder, self._load_config(folder, shown_as), shown_as)
        model = self.writer(tokenizer, folder)
        self._described = model.config
        return tokenizer, model


def _stack_config(described: PreTrainedConfig, stack: str) -> PreTrainedConfig:
    """Return the configuration of the encoder or decoder, where each has its own (BERT2BERT, T5Gemma)."""
    part = getattr(described, stack, described)
    return part.get_text_config() if isinstance(part, PreTrainedConfig) else described


def _stack_positions(described: PreTrainedConfig, stack: str) -> int | None:
    """Return the number of positions of a stack; None if they have no limit. LED's are whole windows of attention."""
    shared = getattr(_stack_config(described, stack), "max_position_embeddings", None)
    positions: int | None = getattr(described, f"max_{stack}_position_embeddings", shared)
    if described.model_type == "led" and stack == "encoder" and positions is not None:
        window = described.attention_window
        positions -= positions % (window if isinstance(window, int) else max(window))
    return positions
