"""The order in which a system reads an example's texts, and the settings of systems with one. Imports no torch.

A plain ranker is a function (`ranking`). A learned one is a class: it is fitted once for the same texts and settings,
cached as the stage "ranker", and then called like a function. `longsumbench.core.registry.rankers` lists both by name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    RANKABLE_UNITS,
    UNRANKED,
    BatchSize,
    Count,
    Decoding,
    Example,
    FitContext,
    FractionBelowOne,
    LearnedRanker,
    OneOf,
    Ranker,
    RankerName,
    RankerSettings,
    Recipe,
    Scores,
    Split,
    TargetTokens,
    Text,
    TokenCount,
    VocabularySize,
    Width,
    learned_ranker,
    registry,
    setting,
)
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
    """Return the indices of an example's texts from the best to the worst; arguments as in `score_by`."""
    return rank(score_by(ranker, example, texts, setting))


def score_by(ranker: Ranker, example: Example, texts: Sequence[str], setting: str) -> Scores:
    """Return the scores of an example's texts.

    Args:
        ranker: scores the texts.
        example: gives the topic.
        texts: the texts to score.
        setting: the setting that chose the ranker, for messages ("model.rank=tfidf").

    Raises:
        UsageError: the ranker needs a title or a query, and the example has neither.
    """
    try:
        return ranker(example.topic, texts)
    except UsageError as problem:
        if example.topic is not None:
            raise
        missing = f"example '{example.id}' has no title and no query, and {setting} needs one"
        choices = f"choose {setting.partition('=')[0]}=none, lexrank or lstm, or give it a title"
        raise UsageError(f"{missing}: {choices}") from problem


class Ranking:
    """The order of an example's texts by the setting `rank`; without it, or with "none", the order of the source.

    A learned ranker is fitted by `prepare`, and saved in the checkpoint's folder `ranker/`.

    Attributes:
        name: "none", or a registered ranker.
        ranker: set by `prepare` and `load`; a plain one by its first use.
    """

    def __init__(self, config: Any) -> None:
        self.config = config
        self.name: str = getattr(config, "rank", UNRANKED)
        self.ranker: Ranker | None = None

    @property
    def learned(self) -> LearnedRanker | None:
        """The fitted ranker if it learns, else None."""
        return self.ranker if isinstance(self.ranker, LearnedRanker) else None

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that every example has the title or query that a plain ranker needs.

        Raises:
            UsageError: an example has neither.
        """
        if self.name != UNRANKED and not learned_ranker(self.name):
            for example in examples:
                if example.topic is None:
                    self.order(example, ["any text"])

    def prepare(self, context: FitContext) -> None:
        """Load the ranker; fit a learned one."""
        if self.name != UNRANKED:
            settings = self.settings(context.recipe)
            self.ranker = find_ranker(self.name, context.train, context.validation, settings, context.stages)

    def settings(self, recipe: Recipe) -> RankerSettings:
        """Return the settings of a learned ranker: those of the system, and defaults for what it does not have."""
        config, names = self.config, ("dimension", "steps", "batch_size")
        own = {name: getattr(config, f"ranker_{name}") for name in names if hasattr(config, f"ranker_{name}")}
        if getattr(config, "tokenizer", "trained") == "trained" and hasattr(config, "vocabulary_size"):
            own["vocabulary_size"] = config.vocabulary_size
        if getattr(config, "unit", None) in RANKABLE_UNITS:
            own["unit"] = config.unit
        return RankerSettings(seed=recipe.seed, device=recipe.device, **own)

    def order(self, example: Example, texts: Sequence[str]) -> list[int]:
        """Return the indices of an example's texts from the best to the worst.

        Raises:
            UsageError: the ranker needs a title or a query, and the example has neither.
        """
        return rank(self.scores(example, texts))

    def scores(self, example: Example, texts: Sequence[str]) -> Scores:
        """Return the scores of an example's texts: [texts], higher is better; errors are those of `order`."""
        if self.name == UNRANKED:
            return -np.arange(len(texts), dtype=np.float64)
        if self.ranker is None:
            if learned_ranker(self.name):
                raise RuntimeError(f"the ranker '{self.name}' learns: fit or load the system first")
            self.ranker = registry.rankers.load(self.name)
        return score_by(self.ranker, example, texts, f"model.rank={self.name}")

    def use_device(self, device: str) -> None:
        """Set where a learned ranker runs ("auto", "cpu", "cuda")."""
        if self.learned:
            self.learned.device = device

    def identity(self) -> dict[str, Any]:
        """Return the version of a learned ranker, fitted or not."""
        kind = learned_ranker(self.name)
        return {"ranker": kind and kind.version}

    def fitted_identity(self) -> dict[str, Any]:
        """Return the identity of a learned ranker that is fitted."""
        return {"ranker": self.learned.identity} if self.learned else {}

    def save(self, folder: Path) -> None:
        """Save a learned ranker in the folder `ranker/` of a checkpoint."""
        if self.learned:
            (folder / "ranker").mkdir(exist_ok=True)
            self.learned.save(folder / "ranker")

    def load(self, folder: Path) -> None:
        """Load what `save` wrote.

        Raises:
            DataError: a file is damaged or missing.
        """
        if kind := learned_ranker(self.name):
            self.ranker = kind.load(folder / "ranker")


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

    def without_effect(self, train: Recipe, decode: Decoding) -> set[str]:
        """Return the settings that change nothing: those of a learned ranker, without one."""
        return set() if learned_ranker(self.rank) else {"ranker_dimension", "ranker_steps", "ranker_batch_size"}
