"""The settings of the baselines."""

from dataclasses import dataclass
from typing import Any

from longsumbench.core import (
    BatchSize,
    Capabilities,
    Count,
    Fraction,
    FractionBelowOne,
    RankedUnit,
    RankerName,
    RankerSettings,
    RankerVocabulary,
    SummaryWords,
    SystemConfig,
    Text,
    Width,
    learned_ranker,
    ranker_identity,
    setting,
)

_PAPER = "Hierarchical Transformer §4"
_ENCODER = "sentence encoder of an embedding ranker: folder or hub name"


class LengthConfig(SystemConfig):
    """Base class of settings with a `length` in words."""

    length: str

    @property
    def capabilities(self) -> Capabilities:
        """An extract as long as the reference is an oracle's."""
        return Capabilities(oracle=self.length == "reference")


class RankedExtractorConfig(LengthConfig):
    """Base class of settings with a ranker."""

    @property
    def decided_by(self) -> frozenset[str]:
        """The seed, which only the training of a learned ranker uses."""
        return frozenset({"seed"} if learned_ranker(self.rank) else ())

    def identity(self) -> dict[str, Any]:
        """Return the settings, the version of a ranker with a network, and what identifies its encoder."""
        return {**super().identity(), **ranker_identity(self.rank, self.rank_checkpoint)}

    def ranker_settings(self) -> RankerSettings:
        """Return the settings of a ranker: the defaults, and its encoder."""
        return RankerSettings(rank_checkpoint=self.rank_checkpoint)


@dataclass
class LeadConfig(RankedExtractorConfig):
    """The first words of the source."""

    name: Text = setting("lead", "name of the system")
    length: SummaryWords = setting(
        "train",
        "length of the extract: a number | train: the mean target | reference: the example's (an oracle)",
        "words",
        phrase="{} words",
    )
    title: bool = setting(False, "begin with the title", source=_PAPER)
    rank: RankerName = setting(
        "none", "none, or the ranker of paragraphs (longsumbench list rankers)", phrase="{}"
    )
    rank_checkpoint: Text | None = setting(None, _ENCODER)


@dataclass
class RandomConfig(LengthConfig):
    """Sentences drawn at random from the whole source."""

    name: Text = setting("random", "name of the system")
    length: SummaryWords = setting(
        "train", "length of the extract, as for lead", "words", phrase="{} words"
    )
    decided_by = frozenset({"seed"})


@dataclass
class LexRankConfig(LengthConfig):
    """The sentences, or paragraphs, that are most similar to all others."""

    name: Text = setting("lexrank", "name of the system")
    unit: RankedUnit = setting(
        "sentence",
        "what is ranked and copied: sentence, in the order of the source | paragraph | section, best first",
    )
    length: SummaryWords = setting(
        "train", "length of the extract, as for lead", "words", phrase="{} words"
    )
    damping: FractionBelowOne = setting(
        0.85, "weight of the ranks of similar texts", source="Erkan & Radev 2004"
    )
    # 1 ranked paragraphs by default.
    version = 2


@dataclass
class RankedExtractConfig(RankedExtractorConfig):
    """The sentences or paragraphs that a ranker scores highest."""

    name: Text = setting("ranker", "name of the system")
    rank: RankerName = setting(
        "lexrank",
        "the ranker (longsumbench list rankers); none: the order of the source",
        phrase="{}",
    )
    rank_checkpoint: Text | None = setting(None, _ENCODER)
    unit: RankedUnit = setting(
        "sentence", "sentence | paragraph | section: what is scored and copied"
    )
    length: SummaryWords = setting(
        "train", "length of the extract, as for lead", "words", phrase="{} words"
    )
    redundancy: Fraction = setting(0.0, "weight of the similarity to chosen texts (MMR); 0: none")
    ranker_dimension: Width = setting(256, "width of the LSTM ranker", source=_PAPER)
    ranker_steps: Count = setting(5_000, "length of the LSTM ranker's training", "optimizer steps")
    ranker_batch_size: BatchSize = setting(8, "batch size of the LSTM ranker", "titles")
    vocabulary_size: RankerVocabulary = setting(
        32_000, "size of the LSTM ranker's vocabulary", "entries", _PAPER
    )

    def ranker_settings(self) -> RankerSettings:
        """Return the settings of a learned ranker."""
        sizes = self.ranker_dimension, self.ranker_steps, self.ranker_batch_size
        return RankerSettings(
            *sizes, self.vocabulary_size, self.unit, rank_checkpoint=self.rank_checkpoint
        )


@dataclass
class OracleConfig(SystemConfig):
    """The sentences that a greedy search finds closest to the references: about the best that extraction can reach."""

    name: Text = setting("oracle", "name of the system")
    capabilities = Capabilities(oracle=True, counts_overlap=True)


@dataclass
class PersonConfig(SystemConfig):
    """One of the references, scored against the others: what another person reaches."""

    name: Text = setting("person", "name of the system")
    decided_by = frozenset({"seed"})
    capabilities = Capabilities(oracle=True, writes_reference=True)


@dataclass
class HighlightsConfig(SystemConfig):
    """The sentences that people highlighted: what readers, not a system, find important."""

    name: Text = setting("highlights", "name of the system")
    capabilities = Capabilities(oracle=True)
