"""Fitting of learned rankers, and the base of systems whose units a ranker orders. Imports no torch.

A plain ranker is a function (`ranking`). A learned one is a class: it is fitted once for the same texts and settings,
cached as the stage "ranker", and then called like a function. `longsumbench.api.registry.rankers` lists both by name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from longsumbench.api import registry
from longsumbench.api.bounds import (
    BatchSize,
    Count,
    FractionBelowOne,
    OneOf,
    TargetTokens,
    Text,
    TokenCount,
    VocabularySize,
    Width,
)
from longsumbench.api.config import Decoding, RankerName, Recipe
from longsumbench.api.documents import Example
from longsumbench.api.ranker import UNRANKED, LearnedRanker, Ranker, RankerSettings, learned_ranker
from longsumbench.api.settings import setting
from longsumbench.api.system import Split, Summary, System
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import UsageError
from longsumbench.modeling.ranking import rank

_PAPER = "Hierarchical Transformer §4"  # source of defaults
UnitToRank = Annotated[str, OneOf("paragraph", "section", "snippet")]


def find_ranker(
    name: str, train: Split | None, validation: Split | None, settings: RankerSettings, stages: ArtifactCache
) -> Ranker:
    """Return a registered ranker by name; a learned one is fitted first, with the other arguments.

    Raises:
        UnknownName: no ranker has this name.
        DataError: the ranker is learned, and there is no training split.
    """
    if kind := learned_ranker(name):
        return kind.fitted(train, validation, settings, stages)
    ranker: Ranker = registry.rankers.load(name)
    return ranker


def order_by(ranker: Ranker, example: Example, texts: Sequence[str], setting: str) -> list[int]:
    """Return the indices of an example's texts from the best to the worst.

    Args:
        ranker: scores the texts.
        example: gives the topic.
        texts: the texts to rank.
        setting: the setting that chose the ranker, for messages ("model.rank=tfidf").

    Raises:
        UsageError: the ranker needs a title or a query, and the example has neither.
    """
    try:
        return rank(ranker(example.topic, texts))
    except UsageError as problem:
        if example.topic is not None:
            raise
        missing = f"example '{example.id}' has no title and no query, and {setting} needs one"
        choices = f"choose {setting.partition('=')[0]}=none, lexrank or lstm, or give it a title"
        raise UsageError(f"{missing}: {choices}") from problem


class RankedUnits(System):
    """Mixin for systems with `config.rank`, "none" or a registered ranker; precedes their other base class.

    A learned ranker is fitted before units are made. Units and checkpoint depend on it; it is saved in the checkpoint's
    folder `ranker/`.

    Attributes:
        ranker: set by `prepare` and `load`; None if nothing is ranked.
    """

    ranker: Ranker | None = None

    def ranker_settings(self, recipe: Recipe) -> RankerSettings:
        """Return the settings of a learned ranker; a trained tokenizer of the system gives the vocabulary size."""
        own = {"vocabulary_size": self.config.vocabulary_size} if self.config.tokenizer == "trained" else {}
        return RankerSettings(seed=recipe.seed, device=recipe.device, **own)

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that every example has the title or query that a plain ranker needs.

        Raises:
            UsageError: an example has neither.
        """
        super().check_examples(examples)
        if self.config.rank != UNRANKED and not learned_ranker(self.config.rank):
            for example in examples:
                if example.topic is None:
                    self.order(example, ["any text"])

    def order(self, example: Example, paragraphs: Sequence[str]) -> list[int]:
        """Return the indices of an example's paragraphs from the best to the worst; rank=none keeps their order.

        Raises:
            UsageError: the ranker needs a title or a query, and the example has neither.
        """
        if self.config.rank == UNRANKED:
            return list(range(len(paragraphs)))
        return order_by(self._loaded_ranker(), example, paragraphs, f"model.rank={self.config.rank}")

    def _loaded_ranker(self) -> Ranker:
        if self.ranker is None:
            if learned_ranker(self.config.rank):
                raise RuntimeError(f"the ranker '{self.config.rank}' learns: fit or load the system first")
            self.ranker = registry.rankers.load(self.config.rank)
        return self.ranker

    def prepare(self, train: Split, validation: Split | None, recipe: Recipe, stages: ArtifactCache) -> None:
        """Load the ranker; fit a learned one."""
        if self.config.rank != UNRANKED:
            self.ranker = find_ranker(self.config.rank, train, validation, self.ranker_settings(recipe), stages)

    def units_also_decided_by(self) -> dict[str, Any]:
        """Return the identity of a learned ranker."""
        return {"ranker": self.ranker.identity} if isinstance(self.ranker, LearnedRanker) else {}

    def identity(self) -> dict[str, Any]:
        """Return the settings and the version of a learned ranker."""
        kind = learned_ranker(self.config.rank)
        return {**super().identity(), "ranker": kind and kind.version}

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Decode one batch; a learned ranker runs on the same device."""
        if isinstance(self.ranker, LearnedRanker):
            self.ranker.device = decoding.device
        return super().summarize(examples, decoding)  # type: ignore[safe-super]  # implemented by NeuralSystem

    def save(self, folder: Path) -> None:
        """Save the system, and a learned ranker in the folder `ranker/`."""
        super().save(folder)
        if isinstance(self.ranker, LearnedRanker):
            (folder / "ranker").mkdir(exist_ok=True)
            self.ranker.save(folder / "ranker")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote.

        Raises:
            UsageError: the folder is not a checkpoint of this system.
            DataError: a file is damaged or missing.
        """
        system = super().load(folder)
        if kind := learned_ranker(system.config.rank):
            system.ranker = kind.load(folder / "ranker")
        return system


@dataclass
class RankedConfig:
    """Settings of the systems that read ranked paragraphs."""

    name: Text = setting("", "name of the system")
    rank: RankerName = setting("lstm", "none, or a ranker (longsumbench list rankers)", decides="units")
    ranker_dimension: Width = setting(256, "width of the LSTM ranker", source=_PAPER, decides="units")
    ranker_steps: Count = setting(5_000, "of the ranker's training; unstated", "optimizer steps", decides="units")
    ranker_batch_size: BatchSize = setting(8, "of a step; unstated in the paper", "titles", decides="units")
    unit: UnitToRank = setting("paragraph", "paragraph | section | snippet (sentences packed)", decides="units")
    paragraph_length: TokenCount = setting(500, "longest paragraph", "tokens", "released code", decides="units")
    input_length: TokenCount = setting(1600, "longest input, with the title", "tokens", _PAPER, decides="units")
    test_input_length: TokenCount | None = setting(
        None, "of examples to summarize; null: as in training", "tokens", decides="summaries"
    )
    decode_length: TargetTokens = setting(400, "longest target and output", "tokens", "released code", decides="units")
    dropout: FractionBelowOne = setting(0.1, "dropout probability", source=_PAPER)
    tokenizer: Text = setting("trained", "trained (byte-level BPE) | words (word level) | hub name or folder")
    vocabulary_size: VocabularySize = setting(32_000, "of a trained tokenizer", "entries", _PAPER)
    init: Text = setting("random", "random, or the folder of a checkpoint of this system")
