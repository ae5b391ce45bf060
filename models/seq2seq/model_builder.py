"""The models of seq2seq: what a checkpoint is, how much it reads, and how it is loaded."""

from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.bart.modeling_bart import BartLearnedPositionalEmbedding
from transformers.models.led.modeling_led import LEDLearnedPositionalEmbedding

from longsumbench.core import FitContext, read_checkpoint
from longsumbench.errors import DataError, UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.checkpoint_files import FETCH_AGAIN
from longsumbench.modeling.generation import TOKEN_RULES
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.nn.device import check_memory
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.pretrained import Pretrained
from longsumbench.modeling.tokenizer import load_tokenizer, special_tokens
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.seq2seq.checkpoint import Family, read_family
from longsumbench.models.seq2seq.config import Seq2SeqConfig
from longsumbench.models.seq2seq.windows import read_in_windows

_SPECIAL = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


class Seq2SeqBuilder(ModelBuilder):
    """Any class of `AutoModelForSeq2SeqLM`. Sizes, limits and tokenizer are the checkpoint's."""

    config: Seq2SeqConfig

    def __init__(self, config: Seq2SeqConfig, model_class: Any = AutoModelForSeq2SeqLM) -> None:
        super().__init__(config, model_class)
        # The folder that the suite saved; None: the checkpoint of the settings.
        self._saved: Pretrained | None = None

    @property
    def pretrained(self) -> Pretrained:
        """The model of a folder that the suite saved, or the checkpoint of the settings."""
        return self._saved or self.config.pretrained

    @cached_property
    def family(self) -> Family:
        """What the model is.

        Raises:
            UsageError: it is no encoder-decoder, or the settings exceed its positions.
        """
        return read_family(self._saved) if self._saved else self.config.read_family()

    @property
    def input_length(self) -> int:
        """The longest input with its special tokens."""
        return self.config.longest_input(self.family)

    def initial_model(self, reader: UnitReader) -> PreTrainedModel:
        """Return the model that training starts from, in single precision; the caller has set the seed."""
        if self.config.init == "checkpoint":
            return self._load(reader.tokenizer, dtype=torch.float32)
        check_memory(lambda: self.Model.from_config(self.family.config), self.pretrained.shown_as)
        return self._with_token_rules(self.build(reader), reader.tokenizer)

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model with random weights: `xavier` for BART's family, the library's own for others, such as T5."""
        model, family = self.blank_model((0, None, 0)), self.family
        if family.xavier:
            xavier(model, family.width)
        # Tokens are N(0, 1/width): so are positions.
        if not family.scales_embeddings:
            for part in model.modules():
                if isinstance(part, BartLearnedPositionalEmbedding | LEDLearnedPositionalEmbedding):
                    part.weight.data *= family.width**-0.5
        return model

    def blank_model(self, special: tuple[int, int | None, int]) -> PreTrainedModel:
        """Return the checkpoint's model without its weights."""
        model: PreTrainedModel = self.Model.from_config(
            deepcopy(self.family.config), dtype=torch.float32
        )
        self._set_windows(model)
        return model

    def _set_windows(self, model: PreTrainedModel) -> None:
        if self.config.window_length is not None:
            read_in_windows(model, self.config.window_length, self.config.window_overlap)

    def writer(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Return the model for writing: in `dtype`, on the devices of `device_map`."""
        options = {"device_map": self.config.device_map} if self.config.device_map else {}
        return self._load(tokenizer, dtype=getattr(torch, self.config.dtype), **options)

    def _load(self, tokenizer: PreTrainedTokenizerBase, **options: Any) -> PreTrainedModel:
        """Load the model and its weights, all of which must be there."""
        model = self.pretrained.network(self.Model, config=deepcopy(self.family.config), **options)
        self._set_windows(model)
        return self._with_token_rules(model, tokenizer)

    def _with_token_rules(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> PreTrainedModel:
        """Keep only what a model's generation settings say of tokens; `decode.*` decides all others."""
        stored, config = vars(model.generation_config), vars(model.config)
        special = {}
        for name in _SPECIAL:
            token = stored.get(name)
            special[name] = config.get(name) if token is None else token
        rules = {name: stored.get(name) for name in TOKEN_RULES}
        # mBART starts with the language; others write it first.
        if self.config.target_language is not None:
            start_ids, end_ids = special_tokens(tokenizer, "text_target")
            rules["forced_bos_token_id"] = start_ids[0] if start_ids else None
            special |= {} if start_ids else {"decoder_start_token_id": end_ids[-1]}
        # As in the library's `generate`.
        if special["decoder_start_token_id"] is None:
            special["decoder_start_token_id"] = special["bos_token_id"]
        if special["decoder_start_token_id"] is None:
            raise DataError(
                f"{self.pretrained.shown_as}: its config.json lacks decoder_start_token_id; {FETCH_AGAIN}"
            )
        model.config.update(special)
        with checkpoints.reading_checkpoint(self.pretrained.shown_as):
            model.generation_config = GenerationConfig(**rules, **special)
        return model

    def tokenizer(self, context: FitContext | None = None) -> PreTrainedTokenizerBase:
        """Return the model's tokenizer with its languages; check that every token has an embedding."""
        vocabulary = self.family.vocabulary
        tokenizer = load_tokenizer(self.pretrained.folder, fast=False)
        self.pretrained.check_vocabulary(tokenizer, vocabulary)
        self._set_languages(tokenizer)
        return tokenizer

    def open(self, folder: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        """Load tokenizer and model of a checkpoint that the suite saved."""
        read_checkpoint(folder, type(self.config))
        self._saved = Pretrained.saved(folder)
        vars(self).pop("family", None)
        tokenizer = self.tokenizer()
        return tokenizer, self.writer(tokenizer)

    def _set_languages(self, tokenizer: Any) -> None:
        language_codes = (
            getattr(tokenizer, "lang_code_to_token", None) or tokenizer.all_special_tokens
        )
        # None: the tokenizer has no languages.
        default_language = getattr(tokenizer, "src_lang", None)
        choices = (
            ("src_lang", "source_language", self.config.source_language),
            ("tgt_lang", "target_language", self.config.target_language),
        )
        for attribute, setting, language in choices:
            if language is None:
                continue
            if default_language is None or language not in language_codes:
                advice = f"choose one of its codes, as {default_language}"
                if default_language is None:
                    advice = "leave it out"
                raise UsageError(
                    f"model.{setting}={language} is no language of {self.pretrained.shown_as}: {advice}"
                )
            setattr(tokenizer, attribute, language)
        if default_language and tokenizer.tgt_lang is None:
            tokenizer.tgt_lang = tokenizer.src_lang
