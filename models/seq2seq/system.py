"""The system seq2seq. It reads all text of an example as one unit, cut at its end.

Letters: B examples, L input tokens, T target tokens.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeAlias

import datasets
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import AutoModelForSeq2SeqLM
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.models.bart.modeling_bart import shift_tokens_right

from longsumbench import core
from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints, units as packing
from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.encoder_decoder import token_cross_entropy
from longsumbench.modeling.processes import first_process_first
from longsumbench.modeling.tokenizer import special_tokens
from longsumbench.modeling.training.trainer import Objective, parameters
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.models.seq2seq.config import Seq2SeqConfig
from longsumbench.models.seq2seq.model_builder import Seq2SeqBuilder

# Model types that write line breaks as "<n>".
_LINE_BREAKERS = ("pegasus", "pegasus_x", "bigbird_pegasus")
_Sentences: TypeAlias = list[packing.EncodedSentence]  # of a document


@dataclass(frozen=True)
class TextCollator(UnitCollator):
    """Collates rows of one unit each as the library's models read them."""

    # Inputs are padded to a multiple of it.
    multiple: int = 1
    # Inputs are padded to this length; 0: to the longest one of the batch.
    padded_length: int = 0
    # True to mark the first token in `global_attention_mask`.
    marks_first: bool = False
    # A token that is marked everywhere; None: none.
    marked: int | None = None
    # True if the input is read in windows.
    has_windows: bool = False

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch of texts.

        Returns:
            `input_ids`, `attention_mask` and, if tokens are marked, `global_attention_mask` [B, L]; if rows have
            labels, `labels` [B, T] and `unit_mask` [B, 1, L], which the trainer counts; with windows, `head_length`
            [B], the number of tokens that precede each window.
        """
        units = super().__call__(rows)
        length = max(units["input_ids"].shape[-1], self.padded_length)
        missing = (0, -(-length // self.multiple) * self.multiple - units["input_ids"].shape[-1])
        input_ids = F.pad(units["input_ids"][:, 0], missing, value=self.pad_token_id)
        unit_mask = F.pad(units["unit_mask"], missing)
        batch = {"input_ids": input_ids, "attention_mask": unit_mask[:, 0].long()}
        if self.marks_first:
            batch["global_attention_mask"] = torch.zeros_like(input_ids)
            batch["global_attention_mask"][:, 0] = 1
            if self.marked is not None:
                batch["global_attention_mask"][input_ids == self.marked] = 1
        if self.has_windows:
            batch["head_length"] = torch.tensor([row["head_length"] for row in rows])
        if "labels" in units:
            batch |= {"labels": units["labels"], "unit_mask": unit_mask}
        return batch


class TextReader(UnitReader):
    """Reads prefix, query and all documents as one text between the special tokens of the checkpoint's tokenizer."""

    config: Seq2SeqConfig
    # Knows how much the checkpoint can read; set by the system.
    builder: Seq2SeqBuilder

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        if config.window_length is not None:
            self.columns["head_length"] = datasets.Value("int32")

    def encode(self, sentences: Sequence[str]) -> list[packing.EncodedSentence]:
        """Tokenize consecutive sentences; special tokens in them ("</s>") are tokenized as text."""
        if self.tokenizer.is_fast:
            self.tokenizer.backend_tokenizer.encode_special_tokens = True
        return super().encode(sentences)

    @cached_property
    def special_tokens(self) -> tuple[list[int], list[int]]:
        """The tokens that the tokenizer adds before and after a text."""
        return special_tokens(self.tokenizer)

    def encode_target(self, text: str) -> packing.EncodedSentence:
        """Tokenize a target; Marian has another vocabulary for it."""
        ids = self.tokenizer(
            text_target=text, add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        return packing.EncodedSentence(ids["input_ids"], core.count_words([text]))

    def target(self, ids: Sequence[int]) -> list[int]:
        """Add the special tokens to a target; the end token is always there."""
        start_ids, end_ids = special_tokens(self.tokenizer, "text_target")
        end = self.tokenizer.eos_token_id
        return [*start_ids, *ids, *end_ids, *([] if end in end_ids else [end])]

    def check(self) -> None:
        """Check the settings that need the tokenizer.

        Raises:
            UsageError: the separator is not one token; the input has no room for text.
        """
        _, room = self.separator_id, self.room
        if room < 2:
            raise UsageError(
                f"model.input_length={self.builder.input_length} leaves no room for text after the prefix and special"
                " tokens: choose more"
            )
        if self.window_room < 2:
            raise UsageError(
                f"model.window_length={self.config.window_length} leaves no room for text after the prefix, special"
                f" tokens and model.window_overlap={self.config.window_overlap}: choose more"
            )

    @cached_property
    def separator_id(self) -> int | None:
        """The token between documents; None if there is none.

        Raises:
            UsageError: the tokenizer does not have it.
        """
        separator = self.config.separator
        if separator is None:
            return None
        token_id = self.tokenizer.convert_tokens_to_ids(separator)
        if token_id is None or self.tokenizer.convert_ids_to_tokens(token_id) != separator:
            raise UsageError(
                f"model.separator={separator} is no token of {self.builder.pretrained.shown_as}: choose one of its tokens, or"
                " model.separator=null"
            )
        return int(token_id)

    def units(self, example: core.Example) -> packing.Units:
        """Return one unit: prefix, query, text and special tokens; the text is cut at `input_length`.

        With `share=documents`, each document is cut first. Separators count as tokens of the text, and the prefix as a
        special token.
        """
        # In this order: each document's share, the separators, the cut of the whole, the query, special tokens.
        prefix, query, documents = self._encoded(example)
        room = self.room
        query_head = packing.Query.within(query, min(room, self.window_room))
        shares, cuts = self._shares(documents, room - len(query_head))
        ids, words = packing.ids_and_words(self._with_separators(shares))
        counts = packing.tokens_and_words(self._with_separators(documents))
        units = packing.Units(ids, (0,) * len(ids), words, core.Truncation(*counts, cuts))
        units = packing.prepend_query(packing.join_units(units, room - len(query_head)), query_head)
        start_ids, end_ids = self.special_tokens
        columns = {}
        if self.config.window_length is not None:
            head_length = len(prefix.ids) + len(query_head)
            columns["head_length"] = head_length + len(start_ids) if head_length else 0
        text = [*start_ids, *prefix.ids, *chain.from_iterable(units.ids), *end_ids]
        return replace(
            units,
            ids=(text or [self.tokenizer.eos_token_id],),
            documents=(0,),
            words=units.words or (0,),
            columns=columns,
        )

    @cached_property
    def room(self) -> int:
        """The most tokens of query and text."""
        return self.builder.input_length - self._fixed_length

    @cached_property
    def window_room(self) -> int:
        """The most tokens of query and text that a window does not share with the next one."""
        length = self.config.window_length or self.builder.input_length
        return length - self.config.window_overlap - self._fixed_length

    @cached_property
    def _fixed_length(self) -> int:
        prefix = self.encode([self.config.prefix.rstrip()])[0]
        return sum(map(len, self.special_tokens)) + len(prefix.ids)

    def _shares(
        self, documents: Sequence[_Sentences], room: int
    ) -> tuple[Sequence[_Sentences], tuple[core.Cut, ...]]:
        """Return the start of each document that the setting `share` keeps, and what it cuts.

        Each of n documents has a part of 1/n of the tokens, in which the special tokens count, as in PRIMERA's script.
        """
        if self.config.share == "text" or not documents:
            return documents, ()
        special = sum(map(len, self.special_tokens))
        share = max(0, (room + special) // len(documents) - special)
        shares = [packing.first_tokens(document, share) for document in documents]
        tokens, words = packing.tokens_and_words(chain.from_iterable(documents))
        kept_tokens, kept_words = packing.tokens_and_words(chain.from_iterable(shares))
        cut = core.Cut("share", tokens - kept_tokens, words - kept_words)
        return shares, (cut,) if cut.tokens else ()

    def _with_separators(self, documents: Sequence[_Sentences]) -> _Sentences:
        """Return all sentences, with the separator between documents; with `share=documents`, after each."""
        sentences: _Sentences = []
        for place, document in enumerate(documents, start=1):
            sentences += document
            is_marked = place < len(documents) or self.config.share == "documents"
            if is_marked and self.separator_id is not None:
                sentences.append(packing.EncodedSentence([self.separator_id], 0))
        return sentences

    def _encoded(
        self, example: core.Example
    ) -> tuple[packing.EncodedSentence, packing.EncodedSentence, list[_Sentences]]:
        """Return the tokens of prefix, query and documents, which are one running text up to the first separator."""
        # Text before the first separator is tokenized as one, so that blanks are where the tokenizer expects them.
        documents = [list(document.sentences()) for document in example.documents]
        documents = [sentences for sentences in documents if sentences]
        if self.separator_id is None:
            documents = [list(chain.from_iterable(documents))]
        prefix, query = self.config.prefix.rstrip(), example.query or ""
        first, *later_documents = documents or [[]]
        head = self.encode([text for text in (prefix, query) if text] + first)
        nothing = packing.EncodedSentence((), 0)
        encoded_prefix = head.pop(0) if prefix else nothing
        encoded_query = head.pop(0) if query else nothing
        encoded = [head, *map(self.encode, later_documents)]
        return encoded_prefix, encoded_query, [document for document in encoded if document]

    def collator(self) -> TextCollator:
        """Return the collator of rows; its padding and its marks are those that the checkpoint needs."""
        family, padded_length = self.builder.family, 0
        has_windows = self.config.window_length is not None
        # windows of LED are padded one by one
        multiple = 1 if has_windows else family.multiple
        attention = self.config.global_attention or ("first" if family.kind == "led" else "none")
        if family.block:
            blocks = -(-self.builder.input_length // family.block)
            padded_length = min(blocks * family.block, family.encoder_positions or sys.maxsize)
        return TextCollator(
            self.tokenizer.pad_token_id,
            self.config.pad_to_multiple_of or multiple,
            padded_length,
            attention != "none",
            self.separator_id if attention == "separator" else None,
            has_windows,
        )


class Seq2Seq(NeuralSystem):
    """An encoder-decoder of transformers: it reads the start of all text, and is used as it is or trained further."""

    Config, Reader, Model, Builder = (
        Seq2SeqConfig,
        TextReader,
        AutoModelForSeq2SeqLM,
        Seq2SeqBuilder,
    )
    config: Seq2SeqConfig
    reader: TextReader
    builder: Seq2SeqBuilder

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self.reader.builder = self.builder

    def fit(self, context: core.FitContext) -> core.FitReport:
        """Train the checkpoint further; with `train.max_steps=0` load it, which needs no training split."""
        if context.recipe.max_steps:
            return super().fit(context)
        if self.config.init == "random":
            raise UsageError(
                "model.init=random needs training: set train.max_steps, or choose model.init=checkpoint"
            )
        with first_process_first():
            self.prepare(context)
            self.model = self.builder.writer(self.tokenizer)
        return core.FitReport(parameters=parameters(self.model), precision=self.config.dtype)

    def prepare(self, context: core.FitContext) -> None:
        """Load the tokenizer, and check the settings."""
        if context.recipe.max_steps:
            super().prepare(context)
        else:
            self.reader.tokenizer = self.builder.tokenizer(context)
        self.reader.check()

    def objective(self, recipe: core.TrainConfig) -> Objective:
        """Return the cross-entropy of the targets, as all systems are trained."""
        return Objective(partial(self._output, recipe.label_smoothing))

    def _output(
        self,
        smoothing: float,
        labels: Tensor,
        unit_mask: Tensor,
        num_items_in_batch: Tensor | int,
        **inputs: Tensor,
    ) -> Seq2SeqLMOutput:
        """Return logits [B, T, V] and loss of a batch; the library's own loss has no label smoothing."""
        config = self.model.config
        # Not every model of the library has its own way.
        if hasattr(self.model, "prepare_decoder_input_ids_from_labels"):
            fed = self.model.prepare_decoder_input_ids_from_labels(labels)
        else:
            fed = shift_tokens_right(labels, config.pad_token_id, config.decoder_start_token_id)
        with checkpoints.reading_checkpoint(self.builder.pretrained.shown_as):
            logits = self.model(**inputs, decoder_input_ids=fed, use_cache=False).logits
        loss = token_cross_entropy(
            logits, labels, num_items_in_batch, smoothing if self.model.training else 0.0
        )
        return Seq2SeqLMOutput(loss=loss, logits=logits)

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Decode one batch; what the checkpoint writes for a line break becomes one."""
        for summary in super().summarize(examples, decoding):
            if self.builder.family.kind in _LINE_BREAKERS:
                summary = replace(summary, text=re.sub(r"\s*<n>\s*", "\n", summary.text).strip())
            yield summary

    def metadata(self) -> dict[str, Any]:
        """Return where the weights are from, their number, and the longest input."""
        return {
            "released": self.config.released,
            **self.config.pretrained.metadata(),
            "parameters": parameters(self.model),
            "context": self.builder.input_length,
        }
