"""Rankers that learn from a training split, and systems that let a ranker order their units. No torch here.

A plain ranker is a function (`ranking`); a learned one is a class that is fitted once for the same texts and settings,
as the stage "ranker", and is a function then. `longsumbench.registry.rankers` knows both by name.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from longsumbench import registry
from longsumbench.bounds import BatchSize, Between, Count, Device, OneOf, Seed, Width, check_settings
from longsumbench.cache.artifacts import StageStore
from longsumbench.configuration import TRAINED, Decoding, Recipe
from longsumbench.documents import Example
from longsumbench.errors import UsageError
from longsumbench.ranking import Ranker, Scores, rank
from longsumbench.system import Split, Summary, System

UNRANKED = "none"  # the name of no ranker: texts stay in the order they have
RANKED = ("paragraph", "section")  # what of an example can be ranked
RankedUnit = Annotated[str, OneOf(*RANKED)]
RankerVocabulary = Annotated[int, Between(TRAINED["trained"], 10**7)]


@dataclass(frozen=True)
class RankerSettings:
    """How a learned ranker is made (`ranker.*` of `longsumbench stats`); systems have settings of their own."""

    dimension: Width = 256  # width of embeddings, LSTMs and features (Hierarchical Transformer §4)
    steps: Count = 5_000  # optimizer steps; unstated in the paper
    batch_size: BatchSize = 8  # rows a step: a title with about 2,000 tokens of paragraphs each; unstated in the paper
    vocabulary_size: RankerVocabulary = 32_000  # of its tokenizer, byte-level BPE trained on the training split
    unit: RankedUnit = "paragraph"  # paragraph | section: what of the training texts it learns to score
    seed: Seed = 1  # follows the top-level seed
    device: Device = "auto"  # follows the top-level device

    def __post_init__(self) -> None:
        check_settings(self, "ranker.")


def texts_to_rank(example: Example, unit: str = "paragraph") -> list[str]:
    """Return an example's paragraphs, or its sections without their names, in reading order; none is empty."""
    return [" ".join(sentences) for sentences in example.texts(unit)]


class LearnedRanker(ABC):
    """A ranker that learns: called with a title and paragraphs, it returns a score for each, higher is better.

    Attributes:
        device: where it computes ("auto", "cpu", "cuda"); whoever uses it may set it.
        version: rises when the same settings, or the defaults, would give another outcome.
    """

    device: str = "auto"
    version: ClassVar[int] = 1

    @classmethod
    @abstractmethod
    def fitted(
        cls, train: Split | None, validation: Split | None, settings: RankerSettings, stages: StageStore
    ) -> Self:
        """Return it fitted to a training split, found as the finished stage "ranker" or built as that.

        Raises:
            DataError: there is no training split, or nothing in it to learn from.
        """

    @abstractmethod
    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> Scores:
        """Score paragraphs: [paragraphs]."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells it from all others whose scores differ."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Rebuild what `save` wrote.

        Raises:
            DataError: a file is damaged or missing.
        """


def learned(name: str) -> type[LearnedRanker] | None:
    """Return the class of a registered ranker that learns; None for one that does not, and for "none".

    Raises:
        UnknownName: nobody registered the ranker.
    """
    if name == UNRANKED:
        return None
    found = registry.rankers.load(name)
    return found if isinstance(found, type) and issubclass(found, LearnedRanker) else None


def find_ranker(
    name: str, train: Split | None, validation: Split | None, settings: RankerSettings, stages: StageStore
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
    if kind := learned(name):
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
        if self.config.rank != UNRANKED and not learned(self.config.rank):
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
            if learned(self.config.rank):
                raise RuntimeError(f"the ranker '{self.config.rank}' learns: fit or load the system first")
            self.ranker = registry.rankers.load(self.config.rank)
        return self.ranker

    def prepare(self, train: Split, validation: Split | None, recipe: Recipe, stages: StageStore) -> None:
        """Fit the ranker, or find it."""
        if self.config.rank != UNRANKED:
            self.ranker = find_ranker(self.config.rank, train, validation, self.ranker_settings(recipe), stages)

    def units_also_decided_by(self) -> dict[str, Any]:
        """Return the learned ranker, of which no setting says what it has learned."""
        return {"ranker": self.ranker.identity} if isinstance(self.ranker, LearnedRanker) else {}

    def identity(self) -> dict[str, Any]:
        """Return the settings, with the version of a learned ranker."""
        kind = learned(self.config.rank)
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
        if kind := learned(system.config.rank):
            system.ranker = kind.load(folder / "ranker")
        return system
