"""How a neural system reads: an example → its units → rows on disk → batches; the readers of ranked paragraphs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
from typing import Any, ClassVar, TypeAlias

import datasets
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Example, FitContext, Split, settings_deciding
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.modeling import tokenizer as tokenization, units as packing
from longsumbench.modeling.collate import UnitCollator, make_unit_row, stored_rows
from longsumbench.modeling.neural_config import NeuralConfig, RankedConfig
from longsumbench.modeling.ranking import Ranking
from longsumbench.modeling.units import EncodedSentence, Limits, Paragraph, Query, Units
from longsumbench.progress import track

Rows: TypeAlias = datasets.Dataset

_IDS = datasets.List(datasets.Value("int32"))
_COUNTS = (
    "length",
    "source_words",
    "target_tokens",
    "target_words",
    "target_words_cut",
    "query_length",
)
# The columns of rows; texts are token ids.
UNIT_COLUMNS = {
    "units": datasets.List(_IDS),
    "unit_documents": _IDS,
    "labels": _IDS,
    **dict.fromkeys(_COUNTS, datasets.Value("int32")),
}


class UnitReader(ABC):
    """One way to read examples. A subclass defines `units`; settings with `decides="units"` decide them.

    The system's `prepare` and `load` set the tokenizer, `multi_document` and `queries_version`.
    """

    # Rows → a batch.
    Collator: ClassVar[type[UnitCollator]] = UnitCollator
    config: NeuralConfig
    tokenizer: PreTrainedTokenizerBase

    def __init__(self, config: NeuralConfig) -> None:
        self.config = config
        # True if the training texts have several documents each.
        self.multi_document = False
        # None if the training texts have no queries.
        self.queries_version: int | None = None
        # Name → feature of a further column, which units have in their `columns`.
        self.columns: dict[str, Any] = {}
        # For readers that use it.
        self.ranking = Ranking(config.rank, config.ranker_settings)

    @abstractmethod
    def units(self, example: Example) -> Units:
        """Split an example into units, each with the example's `query` before its text."""

    def training_units(self, example: Example) -> Units:
        """Split an example of the training or validation split into units; by default as `units`."""
        return self.units(example)

    def prepare(self, context: FitContext) -> None:
        """Check the texts, and fit what `units` needs besides the tokenizer; here the ranker.

        It is called before `tokenizer` is set, so that texts are refused before any work.
        """
        self.ranking.prepare(context)

    def inputs(self) -> dict[str, Any]:
        """Return JSON values that decide the units of a given text."""
        texts = {"multi_document": self.multi_document, "queried": self.queries_version}
        return {
            "system": self.config.name,
            "settings": settings_deciding(self.config, "units"),
            "tokenizer": tokenization.tokenizer_identity(self.tokenizer),
            "texts": {name: value for name, value in texts.items() if value is not None},
            "version": self.config.version,
            "reading": LOADING_VERSION,
            **self.config.reading_identity(),
            **self.ranking.fitted_identity(),
        }

    def encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        """Tokenize consecutive sentences, without special tokens."""
        return tokenization.encode_sentences(self.tokenizer, sentences)

    def query(self, example: Example, unit_length: int) -> Query:
        """Return the query that starts every unit of an example; empty if the example has none.

        Choice, not in the papers: the query is the first sentence of every unit, and counts in `unit_length`.
        """
        if not example.query:
            return Query()
        return Query.within(self.encode([example.query])[0], unit_length)

    def encode_target(self, text: str) -> EncodedSentence:
        """Tokenize a target, without special tokens."""
        return self.encode([text])[0]

    def target(self, ids: Sequence[int]) -> list[int]:
        """Add the special tokens to a target."""
        return [*ids, self.tokenizer.eos_token_id]

    def reference(self, example: Example) -> tuple[EncodedSentence, EncodedSentence]:
        """Return an example's first reference, and its leading tokens that fit into a target."""
        target = EncodedSentence([], 0)
        if example.references:
            target = self.encode_target(" ".join(example.references[0]))
        return target, target.head(self.config.decode_length - len(self.target([])))

    def rows(
        self, split: Split, examples: int, cache: ArtifactCache, with_labels: bool = False
    ) -> Rows:
        """Return the first examples of a split as rows; they are cached as the stage "units".

        `with_labels` adds the columns of a model that has more targets than the summary.
        """
        inputs = {**self.inputs(), "split": split.fingerprint, "examples": examples}
        indices = track(range(examples), f"tokenizing {split.name}", examples)
        rows = (self.row(split[index]) for index in indices)
        return stored_rows(
            "units", inputs, datasets.Features({**UNIT_COLUMNS, **self.columns}), rows, cache
        )

    def row(self, example: Example) -> dict[str, Any]:
        """Return an example as a training row; the target is its first reference."""
        units, (target, head) = self.training_units(example), self.reference(example)
        return {
            **make_unit_row(units, self.target(head.ids)),
            "source_words": example.source_words(),
            "target_tokens": len(target.ids),
            "target_words": target.words,
            "target_words_cut": target.words - head.words,
            "query_length": units.query_length,
        }

    def collator(self) -> UnitCollator:
        """Return the collator of rows."""
        return self.Collator(self.tokenizer.pad_token_id)


def collate_units(reader: UnitReader, units_of_examples: Sequence[Units]) -> dict[str, Tensor]:
    """Return the batch of some examples' units, without targets."""
    return reader.collator()([make_unit_row(units) for units in units_of_examples])


class BestParagraphs(UnitReader):
    """Reads the title and the best paragraphs as one unit.

    The input length of training may differ from that of summarizing (`test_input_length`).
    """

    config: RankedConfig

    def training_units(self, example: Example) -> Units:
        """Return the units of an example of the training or validation split."""
        return self.read(example, self.limits(training=True))

    def units(self, example: Example) -> Units:
        """Return the units of an example to summarize."""
        return self.read(example, self.limits(training=False))

    def limits(self, training: bool) -> Limits:
        """Return the limits of the input."""
        config = self.config
        length = config.input_length
        if not training and config.test_input_length:
            length = config.test_input_length
        return Limits(None, config.paragraph_length, length)

    def read(self, example: Example, limits: Limits) -> Units:
        """Return the query, the title and the best paragraphs as one unit, cut at the input length."""
        query = self.query(example, limits.input_length)
        limits = replace(limits, input_length=limits.input_length - len(query))
        separate = self.marked(self.best(example, limits)[0])
        units = packing.prepend_query(packing.group_units(separate, [0] * len(separate.ids)), query)
        return units if any(units.ids) else replace(units, ids=(), documents=(), words=())

    def marked(self, units: Units) -> Units:
        """Add separators to units that will be joined; by default none."""
        return units

    def best(self, example: Example, limits: Limits) -> tuple[Units, list[Paragraph]]:
        """Return the title and the best paragraphs as units, and these paragraphs."""
        paragraphs, encoded = self.paragraphs(example, limits.paragraph_length)
        title = self.encode([example.title])[0] if example.title else None
        texts = [paragraph.text for paragraph in paragraphs]
        order = self.ranking.order(example, texts)
        ranked = [paragraphs[index] for index in order]
        documents = [paragraph.position[0] for paragraph in ranked]
        units = packing.best_paragraphs(
            title, [encoded[index] for index in order], documents, limits
        )
        fitting = ranked[: len(units.ids) - 1]
        return replace(units, spans=((0, 0), *(paragraph.span for paragraph in fitting))), fitting

    def paragraphs(
        self, example: Example, snippet_length: int
    ) -> tuple[list[Paragraph], list[EncodedSentence]]:
        """Return the paragraphs, sections or snippets to rank, and their tokens.

        Snippets have at most `snippet_length` tokens, or are one longer sentence.
        """
        unit = self.config.unit
        paragraphs = packing.split_paragraphs(example, "sentence" if unit == "snippet" else unit)
        # all sentences are tokenized in one call, as running text
        texts = chain.from_iterable(paragraph.sentences for paragraph in paragraphs)
        sentences = iter(self.encode(list(texts)))
        encoded = []
        for paragraph in paragraphs:
            own = islice(sentences, len(paragraph.sentences))
            encoded.append(packing.join_sentences(list(own)))
        if unit == "snippet":
            return _pack_snippets(paragraphs, encoded, snippet_length)
        return paragraphs, encoded


def _pack_snippets(
    sentences: Sequence[Paragraph], encoded: Sequence[EncodedSentence], length: int
) -> tuple[list[Paragraph], list[EncodedSentence]]:
    """Pack consecutive sentences of a document into snippets; a sentence above `length` tokens is its own snippet."""
    snippets, packed = [], []
    pairs = zip(sentences, encoded, strict=True)
    for document, members in groupby(pairs, key=lambda pair: pair[0].position[0]):
        texts, tokens = zip(*members, strict=True)
        for number, span in enumerate(packing.pack_sentences(tokens, length)):
            group = texts[span]
            contents = tuple(chain.from_iterable(sentence.sentences for sentence in group))
            extent = group[0].span[0], group[-1].span[1]
            snippets.append(Paragraph((document, number), contents, extent))
            packed.append(packing.join_sentences(tokens[span]))
    return snippets, packed
