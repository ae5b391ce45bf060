"""The settings of the baselines."""

from dataclasses import dataclass
from typing import Annotated

from longsumbench.api import FractionBelowOne, OneOf, RankerName, Text, setting

_Length = Annotated[str, OneOf("train", "reference", number_of="words")]


@dataclass
class LeadConfig:
    """The first words of the source."""

    name: Text = setting("lead", "name of the system")
    length: _Length = setting(
        "train", "a number | train: the mean target | reference: the example's (an oracle)", "words"
    )
    title: bool = setting(False, "begin with the title", source="Hierarchical Transformer §4")
    rank: RankerName = setting("none", "none, or the ranker of paragraphs (longsumbench list rankers)")


@dataclass
class RandomConfig:
    """Sentences drawn at random from the whole source."""

    name: Text = setting("random", "name of the system")
    length: _Length = setting("train", "as for lead", "words")


@dataclass
class LexRankConfig:
    """The paragraphs most similar to all others, best first."""

    name: Text = setting("lexrank", "name of the system")
    length: _Length = setting("train", "as for lead", "words")
    damping: FractionBelowOne = setting(0.85, "weight of the ranks of similar paragraphs", source="Erkan & Radev 2004")


@dataclass
class OracleConfig:
    """The sentences that a greedy search finds closest to the references: about the best that extraction can reach."""

    name: Text = setting("oracle", "name of the system")
