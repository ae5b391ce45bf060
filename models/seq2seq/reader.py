"""What an encoder-decoder reads: all text of an example as one unit, cut at its end.

Letters: B examples, L input tokens, T target tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from longsumbench.core import Cut, Example, Truncation
from longsumbench.errors import UsageError
from longsumbench.modeling.collate import UnitCollator
from longsumbench.modeling.tokenizer import special_tokens
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.modeling.units import EncodedSentence, Query, Units, join_units, prepend_query, tokens_and_words
from longsumbench.models.seq2seq.config import Seq2SeqConfig
from longsumbench.models.seq2seq.network import Seq2SeqNetwork

_Sentences: TypeAlias = list[EncodedSentence]  # of a document


@dataclass(frozen=True)
class TextCollator(UnitCollator):
    """Collates rows of one unit each as the library's models read them.

    Attributes:
        multiple: inputs are padded to a multiple of it.
        padded_length: inputs are padded to this length; 0: to the longest one of the batch.
        marks_first: True to mark the first token in `global_attention_mask`.
        marked: a token that is marked everywhere; None: none.
    """

    multiple: int = 1
    padded_length: int = 0
    marks_first: bool = False
    marked: int | None = None

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch of texts.

        Returns:
            `input_ids`, `attention_mask` and, if tokens are marked, `global_attention_mask` [B, L]; `unit_mask`
            [B, 1, L], which the trainer counts; `labels` [B, T], left out if no row has any.
        """
        units = super().__call__(rows)
        length = max(units["input_ids"].shape[-1], self.padded_length)
        missing = (0, -(-length // self.multiple) * self.multiple - units["input_ids"].shape[-1])
        input_ids = F.pad(units["input_ids"][:, 0], missing, value=self.pad_token_id)
        unit_mask = F.pad(units["unit_mask"], missing)
        batch = {"input_ids": input_ids, "attention_mask": unit_mask[:, 0].long(), "unit_mask": unit_mask}
        if self.marks_first:
            batch["global_attention_mask"] = torch.zeros_like(input_ids)
            batch["global_attention_mask"][:, 0] = 1
            if self.marked is not None:
                batch["global_attention_mask"][input_ids == self.marked] = 1
        return batch | {name: units[name] for name in ("labels",) if name in units}


class TextReader(UnitReader):
    """Reads prefix, query and all documents as one text between the special tokens of the checkpoint's tokenizer.

    Attributes:
        network: knows how much the checkpoint can read; set by the system.
    """

    config: Seq2SeqConfig
    network: Seq2SeqNetwork

    def identity(self) -> dict[str, Any]:
        """Return the longest input, which the checkpoint decides if no setting does."""
        return {**super().identity(), "input_length": self.network.input_length}

    def encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        """Tokenize consecutive sentences; special tokens in them ("</s>") are tokenized as text."""
        if self.tokenizer.is_fast:
            self.tokenizer.backend_tokenizer.encode_special_tokens = True
        return super().encode(sentences)

    @cached_property
    def special_tokens(self) -> tuple[list[int], list[int]]:
        """The tokens that the tokenizer adds before and after a text."""
        return special_tokens(self.tokenizer)

    def encode_target(self, text: str) -> EncodedSentence:
        """Tokenize a target; Marian has another vocabulary for it."""
        ids = self.tokenizer(text_target=text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return EncodedSentence(ids["input_ids"], len(text.split()))

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
            length = f"model.input_length={self.network.input_length}"
            raise UsageError(f"{length} leaves no room for text after the prefix and special tokens: choose more")

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
        if token_id is None or (token_id == self.tokenizer.unk_token_id and separator != self.tokenizer.unk_token):
            unknown = f"model.separator={separator} is no token of model.checkpoint={self.config.checkpoint}"
            raise UsageError(f"{unknown}: choose one of its tokens, or model.separator=null")
        return int(token_id)

    def units(self, example: Example) -> Units:
        """Return one unit: prefix, query, text and special tokens; the text is cut at `input_length`.

        With `share=documents`, each document is cut first. Separators count as tokens of the text, and the prefix as a
        special token.
        """
        prefix, query, documents = self._encoded(example)
        room = self.room
        query_head = Query.within(query, room)
        shares, cuts = self._shares(documents, room - len(query_head))
        sentences = self._with_separators(shares)
        counts = tokens_and_words(self._with_separators(documents))
        zeros, words = (0,) * len(sentences), tuple(sentence.words for sentence in sentences)
        units = Units(tuple(list(sentence.ids) for sentence in sentences), zeros, words, Truncation(*counts, cuts))
        units = prepend_query(join_units(units, room - len(query_head)), query_head)
        start_ids, end_ids = self.special_tokens
        text = [*start_ids, *prefix.ids, *(units.ids[0] if units.ids else ()), *end_ids]
        words = units.words or (0,)
        return replace(units, ids=(text or [self.tokenizer.eos_token_id],), documents=(0,), words=words)

    @cached_property
    def room(self) -> int:
        """The most tokens of query and text."""
        prefix = self.encode([self.config.prefix.rstrip()])[0]
        return self.network.input_length - sum(map(len, self.special_tokens)) - len(prefix.ids)

    def _shares(self, documents: Sequence[_Sentences], room: int) -> tuple[Sequence[_Sentences], tuple[Cut, ...]]:
        """Return the start of each document that the setting `share` keeps, and what it cuts.

        Each of n documents has a part of 1/n of the tokens, in which the special tokens count, as in PRIMERA's script.
        """
        if self.config.share == "text" or not documents:
            return documents, ()
        special = sum(map(len, self.special_tokens))
        share = max(0, (room + special) // len(documents) - special)
        shares = [_document_start(document, share) for document in documents]
        counts, share_counts = (tokens_and_words(chain.from_iterable(parts)) for parts in (documents, shares))
        cut = Cut("share", counts[0] - share_counts[0], counts[1] - share_counts[1])
        return shares, (cut,) if cut.tokens else ()

    def _with_separators(self, documents: Sequence[_Sentences]) -> _Sentences:
        """Return all sentences, with the separator between documents; with `share=documents`, after each."""
        separator, ends = self.separator_id, len(documents) - (self.config.share == "text")
        mark = [] if separator is None else [EncodedSentence([separator], 0)]
        marked = ([*document, *(mark if place < ends else ())] for place, document in enumerate(documents))
        return list(chain.from_iterable(marked))

    def _encoded(self, example: Example) -> tuple[EncodedSentence, EncodedSentence, list[_Sentences]]:
        """Return the tokens of prefix, query and documents, which are one running text up to the first separator."""
        documents = [sentences for document in example.documents if (sentences := list(document.sentences()))]
        if self.separator_id is None:
            documents = [list(chain.from_iterable(documents))]
        prefix, query = self.config.prefix.rstrip(), example.query or ""
        first, *later_documents = documents or [[]]
        head = self.encode([text for text in (prefix, query) if text] + first)
        starts = [head.pop(0) if text else EncodedSentence((), 0) for text in (prefix, query)]
        return starts[0], starts[1], [document for document in (head, *map(self.encode, later_documents)) if document]

    def collator(self) -> TextCollator:
        """Return the collator of rows."""
        network = self.network
        return TextCollator(
            self.tokenizer.pad_token_id,
            network.multiple,
            network.padded_length,
            network.global_attention != "none",
            self.separator_id if network.global_attention == "separator" else None,
        )

    def collate(self, units_of_examples: Sequence[Units]) -> dict[str, Tensor]:
        """Return the batch of some examples' units, as the model takes it."""
        batch = super().collate(units_of_examples)
        return {name: value for name, value in batch.items() if name != "unit_mask"}


def _document_start(sentences: _Sentences, length: int) -> _Sentences:
    """Return the first `length` tokens of sentences."""
    head = []
    for sentence in sentences:
        head.append(sentence.head(length))
        length -= len(head[-1].ids)
    return head
