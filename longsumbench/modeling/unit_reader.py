"""How a neural system reads: an example → its units → rows on disk → batches."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import datasets
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Cut, Example, FitContext, Split, Truncation, settings_deciding
from longsumbench.modeling import tokenizer as tokenization
from longsumbench.modeling.collate import UnitCollator, row_of_units, stored_rows
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.ranking import Ranking
from longsumbench.modeling.units import QUERIES_VERSION, EncodedSentence, Query, Units
from longsumbench.progress import track

Rows: TypeAlias = datasets.Dataset

# "units" rises when rows of units change, "queries" when units with queries do.
READER_VERSIONS = {"units": 2, "queries": QUERIES_VERSION, "tokenizer": tokenization.TOKENIZER_VERSION}


class UnitReader(ABC):
    """One way to read examples. A subclass defines `units`; settings with `decides="units"` decide them.

    Attributes:
        Collator: rows → a batch.
        config: the system's settings.
        version: the system's version.
        ranking: the order by the setting `rank`, for readers that use it.
        tokenizer: set by the system's `ready_to_read` and `load`.
        state: "multi_document", "queried": facts about the training texts; set with the tokenizer.
    """

    Collator: ClassVar[type[UnitCollator]] = UnitCollator
    config: NeuralConfig
    tokenizer: PreTrainedTokenizerBase

    def __init__(self, config: NeuralConfig, version: int = 1) -> None:
        self.config, self.version = config, version
        self.state: Mapping[str, Any] = {}
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

    def identity(self) -> dict[str, Any]:
        """Return JSON values, known before fitting, on which `units` depends besides settings, tokenizer and texts."""
        return self.ranking.identity()

    def inputs(self) -> dict[str, Any]:
        """Return JSON values that decide the units of a given text."""
        return {
            "system": self.config.name,
            "settings": settings_deciding(self.config, "units"),
            "tokenizer": tokenization.tokenizer_identity(self.tokenizer),
            "texts": dict(self.state),
            "version": [READER_VERSIONS["units"], self.version],
            **self.identity(),
            **self.ranking.fitted_identity(),
        }

    @property
    def multi_document(self) -> bool:
        """True if the training texts have several documents each."""
        return bool(self.state.get("multi_document", False))

    def encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        """Tokenize consecutive sentences, without special tokens."""
        return tokenization.encode_sentences(self.tokenizer, sentences)

    def query(self, example: Example, unit_length: int) -> Query:
        """Return the query that starts every unit of an example; empty if the example has none.

        Choice, not in the papers: the query is the first sentence of every unit, and counts in `unit_length`.
        """
        return Query.within(self.encode([example.query])[0], unit_length) if example.query else Query()

    def encode_target(self, text: str) -> EncodedSentence:
        """Tokenize a target, without special tokens."""
        return self.encode([text])[0]

    def target(self, ids: Sequence[int]) -> list[int]:
        """Add the special tokens to a target."""
        return [*ids, self.tokenizer.eos_token_id]

    def reference(self, example: Example) -> tuple[EncodedSentence, EncodedSentence]:
        """Return an example's first reference, and its leading tokens that fit into a target."""
        target = self.encode_target(" ".join(example.references[0])) if example.references else EncodedSentence([], 0)
        return target, target.head(self.config.decode_length - len(self.target([])))

    def reference_ledger(self, example: Example) -> Truncation:
        """Return the ledger of an example's first reference, which is cut at `decode_length`."""
        target, head = self.reference(example)
        tokens, words = len(target.ids) - len(head.ids), target.words - head.words
        return Truncation(len(target.ids), target.words, (Cut("decode_length", tokens, words),) if tokens else ())

    def labelled_rows(self, split: Split, examples: int, stages: ArtifactCache) -> Rows:
        """Return the first examples of a split as rows to train on; a network with more targets adds columns here."""
        return self.rows(split, examples, stages)

    def rows(self, split: Split, examples: int, stages: ArtifactCache) -> Rows:
        """Return the first examples of a split as rows; they are cached as the stage "units"."""
        inputs = {**self.inputs(), "split": split.fingerprint, "examples": examples}
        return stored_rows("units", inputs, self.features(), self.read_rows(split, examples, stages), stages)

    def read_rows(self, split: Split, examples: int, stages: ArtifactCache) -> Iterator[dict[str, Any]]:
        """Yield the rows of the first examples of a split."""
        for index in track(range(examples), f"tokenizing {split.name}", examples):
            yield self.row(split[index])

    def features(self) -> datasets.Features:
        """Return the columns of a row; a reader whose units have more `columns` overrides this."""
        ids = datasets.List(datasets.Value("int32"))
        names = ("length", "source_words", "target_tokens", "target_words", "target_words_cut", "query_length")
        counts = dict.fromkeys(names, datasets.Value("int32"))
        return datasets.Features({"units": datasets.List(ids), "unit_documents": ids, "labels": ids, **counts})

    def row(self, example: Example) -> dict[str, Any]:
        """Return an example as a training row; the target is its first reference."""
        units, (target, head) = self.training_units(example), self.reference(example)
        return {
            **row_of_units(units, self.target(head.ids)),
            "source_words": example.source_words(),
            "target_tokens": len(target.ids),
            "target_words": target.words,
            "target_words_cut": target.words - head.words,
            "query_length": units.query_length,
        }

    def collator(self) -> UnitCollator:
        """Return the collator of rows."""
        return self.Collator(self.tokenizer.pad_token_id)

    def collate(self, units_of_examples: Sequence[Units]) -> dict[str, Tensor]:
        """Return the batch of some examples' units, without targets."""
        return self.collator()([row_of_units(units) for units in units_of_examples])
