"""The system PageSum: its model, at random or with the weights of a BART checkpoint, and its evidence."""

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import (
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from longsumbench.core import REFERENCE_AXIS, Evidence, FitContext, Span
from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.checkpoint_files import read_config
from longsumbench.modeling.generation import GeneratedText, text_batch
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.pretrained import Pretrained
from longsumbench.modeling.tokenizer import load_tokenizer, token_texts
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.pagesum.config import PageSumConfig
from longsumbench.models.pagesum.model import (
    Pages,
    PageSumForConditionalGeneration,
    PageSumModelConfig,
)
from longsumbench.models.pagesum.pages import PageReader


class PageSumBuilder(ModelBuilder):
    """As ModelBuilder, except: it starts from checkpoints of BART or PageSum."""

    config: PageSumConfig

    def model_config(
        self, vocabulary: int, special: tuple[int, int | None, int], multi_document: bool = False
    ) -> PreTrainedConfig:
        """Return the model's configuration; decoding starts with the end token, as BART's."""
        config = super().model_config(vocabulary, special, multi_document)
        config.decoder_start_token_id = config.eos_token_id
        return config

    def build(self, reader: UnitReader) -> PreTrainedModel:
        """Build the model with random weights."""
        return _force_first_token(super().build(reader), reader.tokenizer.bos_token_id)

    def initial_model(self, reader: UnitReader) -> PreTrainedModel:
        """Return the model with random weights, or with those of a checkpoint; only the confidence layer may be new."""
        folder = self.config.initial_folder()
        if folder is None:
            return super().initial_model(reader)
        # Sizes are the checkpoint's; what training and decoding need is the user's.
        initial = Pretrained(folder, f"model.init={folder}")
        with checkpoints.reading_checkpoint(initial.shown_as):
            settings = PageSumModelConfig.from_pretrained(
                folder,
                decoding=self.config.decoding,
                official=self.config.fidelity == "official",
                dropout=self.config.dropout,
                **checkpoints.SAFE_LOADING,
            )
            model = initial.network(
                self.Model, config=settings, may_lack="confidence.", dtype=torch.float32
            )
            return _force_first_token(model, model.config.bos_token_id)

    def tokenizer(self, context: FitContext) -> PreTrainedTokenizerBase:
        """Return the tokenizer; check that it has a start token, and an embedding for every token."""
        folder = self.config.initial_folder()
        tokenizer = load_tokenizer(folder) if folder else super().tokenizer(context)
        # An end token would end every summary at once.
        if tokenizer.bos_token_id in (None, tokenizer.eos_token_id):
            owner = self.config.init if folder else self.config.tokenizer
            raise UsageError(
                f"the tokenizer of {owner} has no start token other than its end token: choose another"
            )
        if folder:
            initial = Pretrained(folder, f"model.init={self.config.init}")
            initial.check_vocabulary(tokenizer, read_config(folder)["vocab_size"])
        return tokenizer


def _force_first_token(model: PreTrainedModel, token: int) -> PreTrainedModel:
    """Force every summary to begin with a token, as BART's summarization checkpoints do.

    A checkpoint's other generation settings are dropped: the library would use them as defaults of `decode.*`.
    """
    config = model.config
    model.generation_config = GenerationConfig(
        forced_bos_token_id=token,
        pad_token_id=config.pad_token_id,
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        decoder_start_token_id=config.decoder_start_token_id,
    )
    return model


class PageSum(NeuralSystem):
    """PageSum: encode and decode every page separately; mix the hidden states at every step by learned confidences."""

    Config, Reader, Model, Builder = (
        PageSumConfig,
        PageReader,
        PageSumForConditionalGeneration,
        PageSumBuilder,
    )
    config: PageSumConfig

    def weigh_spans(self, output: GeneratedText) -> tuple[Sequence[Span], NDArray[Any]]:
        """Return the confidence of each page at each step."""
        return output.units.spans, self.evidence(output).arrays["confidence"]

    @torch.inference_mode()
    def evidence(self, output: GeneratedText) -> Evidence:
        """Return the confidences of the pages at every token of the output, and of a given reference.

        They are computed again, given the output: beam search does not keep them.
        """
        output_ids, reference = output.ids, output.reference
        pages = self.model.model.encoder(**text_batch(self.model, self.reader, output))
        start, begin = self.model.config.decoder_start_token_id, self.tokenizer.bos_token_id
        # The start token is forced, and is not text.
        text = output_ids[1:] if output_ids[:1] == [begin] else output_ids
        arrays = {"confidence": self._confidences(pages, [start, begin], text)}
        axes = {"confidence": ("unit", "step")}
        texts = {
            "unit": self.decode_texts(output.units.ids, skip_special_tokens=True),
            "step": tuple(token_texts(self.tokenizer, text)),
        }
        if reference is not None:
            # As in training.
            fed = [begin] if self.config.fidelity == "official" else [start, begin]
            arrays["reference_confidence"] = self._confidences(pages, fed, reference)
            axes["reference_confidence"] = ("unit", REFERENCE_AXIS)
            texts[REFERENCE_AXIS] = tuple(token_texts(self.tokenizer, reference))
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)

    def _confidences(self, pages: Pages, prefix: Sequence[int], ids: Sequence[int]) -> Tensor:
        """Return the confidences with which the tokens `ids` are predicted after the tokens `before`: [P, T]."""
        fed = torch.tensor([[*prefix, *ids[:-1]]], device=self.model.device)
        weights: Tensor = self.model.decode(pages, fed).unit_scores
        return weights[0, :, 0, len(prefix) - 1 :][:, : len(ids)]
