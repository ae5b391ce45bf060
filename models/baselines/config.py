"""The settings of the baselines."""

from dataclasses import dataclass

from longsumbench import registry
from longsumbench.configuration import allowed
from longsumbench.errors import UsageError, did_you_mean

RULES = ("train", "reference")


@dataclass
class LeadConfig:
    """The beginning of the source."""

    name: str = "lead"
    length: str = "train"  # words: a number; train: the mean training target; reference: each example's own (an oracle)
    title: bool = False  # True: begin with the title, as in the Hierarchical Transformer's paper (§4)
    rank: str = "none"  # none | tfidf | title | lexrank | lstm: what ranks paragraphs (longsumbench list rankers)

    def __post_init__(self) -> None:
        check_length(self.length)
        allowed("model.rank", self.rank, ("none", *registry.rankers.targets()))


@dataclass
class RandomConfig:
    """Sentences drawn from the whole source."""

    name: str = "random"
    length: str = "train"  # words, as lead's

    def __post_init__(self) -> None:
        check_length(self.length)


@dataclass
class LexRankConfig:
    """The paragraphs most like all others."""

    name: str = "lexrank"
    length: str = "train"  # words, as lead's
    damping: float = 0.85  # how much a rank depends on those of similar paragraphs, below 1 (Erkan & Radev 2004)

    def __post_init__(self) -> None:
        check_length(self.length)
        if not 0 <= self.damping < 1:
            raise UsageError(f"model.damping={self.damping}; allowed: a number from 0 to below 1")


@dataclass
class OracleConfig:
    """The sentences that score best; nothing to set."""

    name: str = "oracle"


def check_length(length: str) -> None:
    """Check that a length is a rule or a number of words.

    Raises:
        UsageError: it is neither.
    """
    if length not in RULES and not (length.isdecimal() and int(length) > 0):
        raise UsageError(
            f"model.length={length}{did_you_mean(length, RULES)}; allowed: {', '.join(RULES)}, or a number of words"
        )
