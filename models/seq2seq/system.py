"""The system seq2seq."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.models.bart.modeling_bart import shift_tokens_right

from longsumbench.core import Decoding, Example, FitContext, FitReport, Recipe, Summary
from longsumbench.errors import UsageError
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.encoder_decoder import token_cross_entropy
from longsumbench.modeling.processes import first_process_first
from longsumbench.modeling.training.trainer import Objective, parameters
from longsumbench.models.seq2seq.config import Seq2SeqConfig
from longsumbench.models.seq2seq.network import Seq2SeqNetwork
from longsumbench.models.seq2seq.reader import TextReader


class Seq2Seq(NeuralSystem):
    """An encoder-decoder of transformers: it reads the start of all text, and is used as it is or trained further."""

    runs_untrained = True
    Config, Reader, Network = Seq2SeqConfig, TextReader, Seq2SeqNetwork
    config: Seq2SeqConfig
    reader: TextReader
    network: Seq2SeqNetwork

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self.reader.network = self.network

    def fit(self, context: FitContext) -> FitReport:
        """Train the checkpoint further; with `train.max_steps=0` load it, which needs no training split."""
        if context.recipe.max_steps:
            return super().fit(context)
        if self.config.init == "random":
            raise UsageError("model.init=random needs training: set train.max_steps, or choose model.init=checkpoint")
        with first_process_first():
            self.ready_to_read(context)
            self.model = self.network.writer(self.tokenizer)
        return FitReport(parameters=parameters(self.model), precision=self.config.dtype)

    def ready_to_read(self, context: FitContext) -> None:
        """Load the tokenizer, and check the settings.

        Raises:
            UsageError: the checkpoint is not as the settings need it.
            DataError: it is to be trained, and there is no training split.
        """
        if context.recipe.max_steps:
            super().ready_to_read(context)
        else:
            self.reader.tokenizer = self.network.tokenizer(context)
        self.reader.check()

    def objective(self, recipe: Recipe) -> Objective:
        """Return the cross-entropy of the targets, as all systems are trained."""
        return Objective(partial(self._output, recipe.label_smoothing))

    def _output(
        self, smoothing: float, labels: Tensor, unit_mask: Tensor, num_items_in_batch: Tensor | int, **inputs: Tensor
    ) -> Seq2SeqLMOutput:
        """Return logits [B, T, V] and loss of a batch; the library's own loss has no label smoothing."""
        config = self.model.config
        shift = getattr(self.model, "prepare_decoder_input_ids_from_labels", None)
        fed = shift(labels) if shift else shift_tokens_right(labels, config.pad_token_id, config.decoder_start_token_id)
        logits = self.model(**inputs, decoder_input_ids=fed, use_cache=False).logits
        loss = token_cross_entropy(logits, labels, num_items_in_batch, smoothing if self.model.training else 0.0)
        return Seq2SeqLMOutput(loss=loss, logits=logits)

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Decode one batch; what the checkpoint writes for a line break becomes one."""
        mark = self.network.line_break
        for summary in super().summarize(examples, decoding):
            text = summary.text if mark is None else re.sub(rf"\s*{mark}\s*", "\n", summary.text).strip()
            yield replace(summary, text=text)

    def facts(self) -> dict[str, Any]:
        """Return where the weights are from, their number, and the longest input."""
        sizes = {"parameters": parameters(self.model), "context": self.network.input_length}
        return {**super().facts(), **self.network.facts(), **sizes}
