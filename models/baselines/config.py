"""The settings of the baselines."""

from dataclasses import dataclass
from typing import Any

from longsumbench import core

_PAPER = "Hierarchical Transformer §4"


class LengthConfig(core.SystemConfig):
    """Base class of settings with a `length` in words."""

    length: str

    @property
    def capabilities(self) -> core.Capabilities:
        """An extract as long as the reference is an oracle's."""
        return core.Capabilities(oracle=self.length == "reference")


class RankedExtractorConfig(LengthConfig):
    """Base class of settings with a ranker."""

    @property
    def decided_by(self) -> frozenset[str]:
        """The seed, which only the training of a learned ranker uses."""
        return frozenset({"seed"} if core.learned_ranker(self.rank) else ())

    def identity(self) -> dict[str, Any]:
        """Return the settings, and the version of a learned ranker."""
        return {**super().identity(), "ranker": core.ranker_version(self.rank)}

    def ranker_settings(self) -> core.RankerSettings:
        """Return the settings of a learned ranker: its defaults."""
        return core.RankerSettings()


@dataclass
class LeadConfig(RankedExtractorConfig):
    """The first words of the source."""

    name: core.Text = core.setting("lead", "name of the system")
    length: core.SummaryWords = core.setting(
        "train",
        "length of the extract: a number | train: the mean target | reference: the example's (an oracle)",
        "words",
    )
    title: bool = core.setting(False, "begin with the title", source=_PAPER)
    rank: core.RankerName = core.setting(
        "none", "none, or the ranker of paragraphs (longsumbench list rankers)"
    )


@dataclass
class RandomConfig(LengthConfig):
    """Sentences drawn at random from the whole source."""

    name: core.Text = core.setting("random", "name of the system")
    length: core.SummaryWords = core.setting("train", "length of the extract, as for lead", "words")
    decided_by = frozenset({"seed"})


@dataclass
class LexRankConfig(LengthConfig):
    """The sentences, or paragraphs, that are most similar to all others."""

    name: core.Text = core.setting("lexrank", "name of the system")
    unit: core.RankedUnit = core.setting(
        "sentence",
        "what is ranked and copied: sentence, in the order of the source | paragraph | section, best first",
    )
    length: core.SummaryWords = core.setting("train", "length of the extract, as for lead", "words")
    damping: core.FractionBelowOne = core.setting(
        0.85, "weight of the ranks of similar texts", source="Erkan & Radev 2004"
    )
    version = 2  # 1 ranked paragraphs by default


@dataclass
class RankedExtractConfig(RankedExtractorConfig):
    """The sentences or paragraphs that a ranker scores highest."""

    name: core.Text = core.setting("ranker", "name of the system")
    rank: core.RankerName = core.setting(
        "lexrank", "the ranker (longsumbench list rankers); none: the order of the source"
    )
    unit: core.RankedUnit = core.setting(
        "sentence", "sentence | paragraph | section: what is scored and copied"
    )
    length: core.SummaryWords = core.setting("train", "length of the extract, as for lead", "words")
    redundancy: core.Fraction = core.setting(
        0.0, "weight of the similarity to chosen texts (MMR); 0: none"
    )
    ranker_dimension: core.Width = core.setting(256, "width of the LSTM ranker", source=_PAPER)
    ranker_steps: core.Count = core.setting(
        5_000, "length of the LSTM ranker's training", "optimizer steps"
    )
    ranker_batch_size: core.BatchSize = core.setting(8, "batch size of the LSTM ranker", "titles")
    vocabulary_size: core.RankerVocabulary = core.setting(
        32_000, "size of the LSTM ranker's vocabulary", "entries", _PAPER
    )

    def ranker_settings(self) -> core.RankerSettings:
        """Return the settings of a learned ranker."""
        sizes = self.ranker_dimension, self.ranker_steps, self.ranker_batch_size
        return core.RankerSettings(*sizes, self.vocabulary_size, self.unit)


@dataclass
class OracleConfig(core.SystemConfig):
    """The sentences that a greedy search finds closest to the references: about the best that extraction can reach."""

    name: core.Text = core.setting("oracle", "name of the system")
    capabilities = core.Capabilities(oracle=True, counts_overlap=True)
