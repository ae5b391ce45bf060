"""The settings of the baselines."""

from dataclasses import dataclass
from typing import Annotated

from longsumbench.api.bounds import FractionBelowOne, OneOf, Text, check_settings
from longsumbench.api.config import RankerName

_RULES = ("train", "reference")
_Words = Annotated[str, OneOf(*_RULES, number_of="words")]


@dataclass
class LeadConfig:
    """The first words of the source."""

    name: Text = "lead"
    length: _Words = "train"  # words: a number; train: the mean training target; reference: each example's (an oracle)
    title: bool = False  # True: begin with the title, as in the Hierarchical Transformer's paper (§4)
    rank: RankerName = "none"  # none | tfidf | title | lexrank | lstm: ranks paragraphs (longsumbench list rankers)

    def __post_init__(self) -> None:
        check_settings(self, "model.")


@dataclass
class RandomConfig:
    """Sentences drawn at random from the whole source."""

    name: Text = "random"
    length: _Words = "train"  # words, as for lead

    def __post_init__(self) -> None:
        check_settings(self, "model.")


@dataclass
class LexRankConfig:
    """The paragraphs most similar to all others, best first."""

    name: Text = "lexrank"
    length: _Words = "train"  # words, as for lead
    damping: FractionBelowOne = 0.85  # weight of the ranks of similar paragraphs, below 1 (Erkan & Radev 2004)

    def __post_init__(self) -> None:
        check_settings(self, "model.")


@dataclass
class OracleConfig:
    """The sentences that a greedy search finds closest to the references: about the best that extraction can reach."""

    name: Text = "oracle"
