"""Rankers that learn from a training split, and systems that let a ranker order their units. No torch here.

A plain ranker is a function (`ranking`); a learned one is a class that is fitted once for the same texts and settings,
as the stage "ranker", and is a function then. `longsumbench.api.registry.rankers` knows both by name.
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
    check_settings,
)
from longsumbench.api.config import Decoding, RankerName, Recipe
from longsumbench.api.documents import Example
from longsumbench.api.ranker import UNRANKED, LearnedRanker, Ranker, RankerSettings, learned_ranker
from longsumbench.api.system import Split, Summary, System
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import UsageError
from longsumbench.modeling.ranking import rank

Unit = Annotated[str, OneOf("paragraph", "section", "snippet")]


def find_ranker(
    name: str, train: Split | None, validation: Split | None, settings: RankerSettings, stages: ArtifactCache
) -> Ranker:
    """Return a registered ranker: a plain one as it is, one that learns fitted.

    Args:
        name: as it is registered.
        train: what it learns from, if it does; None when the dataset has no such split.
        validation: what its best weights are chosen by, likewise.
        settings: how it learns.
        stages: finished pieces of work.

    Raises:
        UnknownName: nobody registered the ranker.
        DataError: it learns, and there is nothing to learn from.
    """
    if kind := learned_ranker(name):
        return kind.fitted(train, validation, settings, stages)
    ranker: Ranker = registry.rankers.load(name)
    return ranker


def order_by(ranker: Ranker, example: Example, texts: Sequence[str], setting: str) -> list[int]:
    """Return the indices of an example's texts from the best to the worst.

    Args:
        ranker: scores them.
        example: whose they are.
        texts: as many as are ranked.
        setting: that chose the ranker ("model.rank=tfidf").

    Raises:
        UsageError: the ranker goes by title and query, and the example has neither.
    """
    try:
        return rank(ranker(example.topic, texts))
    except UsageError as problem:
        if example.topic is not None:
            raise
        told = f"example '{example.id}' has no title and no query, by which {setting} goes"
        choices = f"choose {setting.partition('=')[0]}=none, lexrank or lstm, or give it a title"
        raise UsageError(f"{told}: {choices}") from problem


class RankedUnits(System):
    """For systems with `config.rank`, "none" or a registered ranker; comes before their other base class.

    A learned ranker is fitted before any units are made, decides them and the checkpoint, and is kept in the
    checkpoint's folder `ranker/`.

    Attributes:
        ranker: set by `prepare` and `load`; None where nothing is ranked.
    """

    ranker: Ranker | None = None

    def ranker_settings(self, recipe: Recipe) -> RankerSettings:
        """Return how a learned ranker is made: as usual, with as many entries as the system's own trained tokenizer."""
        own = {"vocabulary_size": self.config.vocabulary_size} if self.config.tokenizer == "trained" else {}
        return RankerSettings(seed=recipe.seed, device=recipe.device, **own)

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Refuse an example without title and query under a ranker that goes by them; one that learns does without.

        Raises:
            UsageError: there is one.
        """
        super().check_examples(examples)
        if self.config.rank != UNRANKED and not learned_ranker(self.config.rank):
            for example in examples:
                if example.topic is None:
                    self.order(example, ["any text"])

    def order(self, example: Example, paragraphs: Sequence[str]) -> list[int]:
        """Return the indices of an example's paragraphs from the best to the worst; unranked, as they come.

        Raises:
            UsageError: the ranker compares with title and query, and the example has neither.
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
        """Fit the ranker, or find it."""
        if self.config.rank != UNRANKED:
            self.ranker = find_ranker(self.config.rank, train, validation, self.ranker_settings(recipe), stages)

    def units_also_decided_by(self) -> dict[str, Any]:
        """Return the learned ranker, of which no setting says what it has learned."""
        return {"ranker": self.ranker.identity} if isinstance(self.ranker, LearnedRanker) else {}

    def identity(self) -> dict[str, Any]:
        """Return the settings, with the version of a learned ranker."""
        kind = learned_ranker(self.config.rank)
        return {**super().identity(), **({"ranker": kind.version} if kind else {})}

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Decode one batch, the ranker on the same device."""
        if isinstance(self.ranker, LearnedRanker):
            self.ranker.device = decoding.device
        return super().summarize(examples, decoding)  # type: ignore[safe-super]  # NeuralSystem's stands behind

    def save(self, folder: Path) -> None:
        """Write the system, and a learned ranker into the folder `ranker/`."""
        super().save(folder)
        if isinstance(self.ranker, LearnedRanker):
            (folder / "ranker").mkdir(exist_ok=True)
            self.ranker.save(folder / "ranker")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Rebuild what `save` wrote.

        Raises:
            UsageError: the folder holds another system, or none.
            DataError: a file of it is damaged or missing.
        """
        system = super().load(folder)
        if kind := learned_ranker(system.config.rank):
            system.ranker = kind.load(folder / "ranker")
        return system


@dataclass
class RankedConfig:
    """What the three share: paragraphs, their ranking, the vocabulary."""

    name: Text = ""  # as it is registered
    rank: RankerName = (
        "lstm"  # none | lstm | tfidf | title | …: by what paragraphs are ranked (longsumbench list rankers)
    )
    ranker_dimension: Width = 256  # width of the LSTMs that rank (Hierarchical Transformer §4)
    ranker_steps: Count = 5_000  # optimizer steps of the ranker's training; unstated in the paper
    ranker_batch_size: BatchSize = 8  # titles with about 2,000 tokens of paragraphs a step of it; unstated in the paper
    unit: Unit = "paragraph"  # paragraph | section | snippet (sentences packed to paragraph_length): what is ranked
    paragraph_length: TokenCount = 500  # tokens of a paragraph at most (unstated in the paper; the release's default)
    input_length: TokenCount = 1600  # tokens that are read at most, the title included (Hierarchical Transformer §4)
    test_input_length: TokenCount | None = None  # of the examples that are summarized; None: as in training
    decode_length: TargetTokens = 400  # target and output tokens at most (the release's)
    dropout: FractionBelowOne = 0.1  # Hierarchical Transformer §4
    tokenizer: Text = "trained"  # trained (byte-level BPE) | words (word level) | a Hugging Face name or folder
    vocabulary_size: VocabularySize = 32_000  # of a trained tokenizer (Hierarchical Transformer §4)
    init: Text = "random"  # random, or the folder of a checkpoint of this system

    def __post_init__(self) -> None:
        check_settings(self, "model.")
