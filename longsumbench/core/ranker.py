"""The interface of a ranker: a function that scores paragraphs, or a class with a network that does."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import registry
from longsumbench.core.bounds import BatchSize, Between, Count, Device, OneOf, Seed, Text, Width
from longsumbench.core.documents import Example
from longsumbench.core.run_settings import TRAINED_TOKENIZERS
from longsumbench.core.settings import setting
from longsumbench.core.system import Split
from longsumbench.core.system_config import UNRANKED
from longsumbench.errors import UsageError

Scores: TypeAlias = NDArray[np.float64]
Ranker: TypeAlias = Callable[[str | None, Sequence[str]], Scores]
RANKABLE_UNITS = ("paragraph", "section", "sentence")
RankedUnit = Annotated[str, OneOf(*RANKABLE_UNITS)]
RankerVocabulary = Annotated[int, Between(TRAINED_TOKENIZERS["trained"], 10**7)]


@dataclass(frozen=True)
class RankerSettings:
    """How a learned ranker is trained (`ranker.*` of `longsumbench stats`); systems have their own settings."""

    dimension: Width = setting(
        256, "width of embeddings, LSTMs and features", source="Hierarchical Transformer §4"
    )
    steps: Count = setting(5_000, "optimizer steps; unstated in the paper")
    batch_size: BatchSize = setting(
        8, "rows of a step: titles with about 2,000 tokens of paragraphs; unstated"
    )
    vocabulary_size: RankerVocabulary = setting(32_000, "entries of its tokenizer, byte-level BPE")
    unit: RankedUnit = setting(
        "paragraph", "scored unit of training texts: paragraph | section | sentence"
    )
    seed: Seed = setting(1, "default: the top-level seed", decides="seed")
    device: Device = setting("auto", "default: the top-level device", decides="nothing")
    score: dict[Text, Any] = setting(
        {}, "settings of score.* that decide the words of its labels, except defaults"
    )
    rank_checkpoint: Text | None = setting(
        None, "sentence encoder of the rankers embedding and embedding_lexrank"
    )


def texts_to_rank(example: Example, unit: str = "paragraph") -> list[str]:
    """Return an example's non-empty paragraphs, sections (without names) or sentences, in reading order."""
    return [" ".join(sentences) for sentences in example.texts(unit)]


class NetworkRanker(ABC):
    """A ranker with a network. A call with a title and paragraphs returns one score for each; higher is better.

    Attributes:
        device: where it runs ("auto", "cpu", "cuda"); its user may set it.
        version: increases when the same settings, or the defaults, give another outcome.
    """

    device: str = "auto"
    version: ClassVar[int] = 1

    @abstractmethod
    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> Scores:
        """Score paragraphs: [paragraphs]."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """A text that differs between rankers with different scores."""


class EncoderRanker(NetworkRanker):
    """A ranker that uses a pretrained sentence encoder as it is.

    Building it loads no network, so that a plan can ask for its `identity`.
    """

    @abstractmethod
    def __init__(self, settings: RankerSettings) -> None:
        """Find the encoder, `settings.rank_checkpoint`."""

    @abstractmethod
    def metadata(self) -> dict[str, int]:
        """Return counts for the record of a run."""


class LearnedRanker(NetworkRanker):
    """A ranker that learns."""

    @classmethod
    @abstractmethod
    def fitted(
        cls,
        train: Split | None,
        validation: Split | None,
        settings: RankerSettings,
        cache: ArtifactCache,
    ) -> Self:
        """Return a ranker fitted to a training split, from the stage "ranker", which is built if needed.

        Raises:
            DataError: the training split is missing, or has nothing to learn from.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write all that `load` needs into an existing folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote.

        Raises:
            DataError: a file is damaged or missing.
        """


def learned_ranker(name: str) -> type[LearnedRanker] | None:
    """Return the class of a registered ranker that learns; None for other rankers and for "none".

    Raises:
        UnknownName: the name is not registered.
    """
    ranker = _network_ranker(name)
    return ranker if ranker and issubclass(ranker, LearnedRanker) else None


def encoder_ranker(name: str) -> type[EncoderRanker] | None:
    """Return the class of a registered ranker with a pretrained encoder; None for other rankers and for "none".

    Raises:
        UnknownName: the name is not registered.
    """
    ranker = _network_ranker(name)
    return ranker if ranker and issubclass(ranker, EncoderRanker) else None


def ranker_version(name: str) -> int | None:
    """Return the version of a registered ranker with a network; None for other rankers and for "none".

    Raises:
        UnknownName: the name is not registered.
    """
    ranker = _network_ranker(name)
    return ranker.version if ranker else None


def _network_ranker(name: str) -> type[NetworkRanker] | None:
    ranker = None if name == UNRANKED else registry.rankers.load(name)
    return ranker if isinstance(ranker, type) and issubclass(ranker, NetworkRanker) else None


def ranker_identity(name: str, checkpoint: str | None) -> dict[str, Any]:
    """Return JSON values that identify a ranker before it is fitted: its version, and what its encoder contains.

    Raises:
        UsageError: the encoder is missing or cannot be used, or is given to a ranker that has none.
        EnvironmentProblem: it is on the hub, and cannot be fetched.
    """
    version = {"ranker": ranker_version(name)}
    if encoder := encoder_ranker(name):
        ranker = encoder(RankerSettings(rank_checkpoint=checkpoint))
        return {**version, "rank_checkpoint": ranker.identity}
    if checkpoint is not None:
        advice = "choose embedding or embedding_lexrank, or leave it out"
        raise UsageError(
            f"rank_checkpoint is a sentence encoder, which the ranker '{name}' does not use: {advice}"
        )
    return version
