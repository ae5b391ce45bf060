"""What a ranker is: a function that scores paragraphs, or a class that learns to."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longsumbench.api import registry
from longsumbench.api.bounds import BatchSize, Between, Count, Device, OneOf, Seed, Width, check_settings
from longsumbench.api.config import TRAINED_TOKENIZERS
from longsumbench.api.documents import Example
from longsumbench.api.system import Split
from longsumbench.cache.artifacts import ArtifactCache

Scores: TypeAlias = NDArray[np.float64]


Ranker: TypeAlias = Callable[[str | None, Sequence[str]], Scores]


UNRANKED = "none"  # the name of no ranker: texts stay in the order they have


RANKABLE_UNITS = ("paragraph", "section")  # what of an example can be ranked


RankedUnit = Annotated[str, OneOf(*RANKABLE_UNITS)]


RankerVocabulary = Annotated[int, Between(TRAINED_TOKENIZERS["trained"], 10**7)]


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
        cls, train: Split | None, validation: Split | None, settings: RankerSettings, stages: ArtifactCache
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


def learned_ranker(name: str) -> type[LearnedRanker] | None:
    """Return the class of a registered ranker that learns; None for one that does not, and for "none".

    Raises:
        UnknownName: nobody registered the ranker.
    """
    if name == UNRANKED:
        return None
    found = registry.rankers.load(name)
    return found if isinstance(found, type) and issubclass(found, LearnedRanker) else None
