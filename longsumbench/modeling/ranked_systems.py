"""The order in which a system reads an example's texts, and the settings of systems with one. Imports no torch.

A plain ranker is a function (`ranking`). A learned one is a class: it is fitted once for the same texts and settings,
cached as the stage "ranker", and then called like a function. `longsumbench.api.registry.rankers` lists both by name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

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
from longsumbench.api.config import RankerName, Recipe
from longsumbench.api.documents import Example
from longsumbench.api.ranker import RANKABLE_UNITS, UNRANKED, LearnedRanker, Ranker, RankerSettings, learned_ranker
from longsumbench.api.system import FitContext, Split
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import UsageError
from longsumbench.modeling.ranking import rank

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
    """Return the indices of an example's texts from the best to the worst.

    Args:
        ranker: scores the texts.
        example: gives the topic.
        texts: the texts to rank.
        setting: the setting that chose the ranker, for messages ("model.rank=tfidf").

    Raises:
        UsageError: the ranker needs a title or a query, and the example has neither.
    """
    try:
        return rank(ranker(example.topic, texts))
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
        """Return the settings of a learned ranker; a trained tokenizer of the system gives the vocabulary size."""
        config, own = self.config, {}
        if getattr(config, "tokenizer", None) == "trained":
            own["vocabulary_size"] = config.vocabulary_size
        if isinstance(config, RankedConfig):
            own |= {name: getattr(config, f"ranker_{name}") for name in ("dimension", "steps", "batch_size")}
            own["unit"] = config.unit if config.unit in RANKABLE_UNITS else RANKABLE_UNITS[0]
        return RankerSettings(seed=recipe.seed, device=recipe.device, **own)

    def order(self, example: Example, texts: Sequence[str]) -> list[int]:
        """Return the indices of an example's texts from the best to the worst.

        Raises:
            UsageError: the ranker needs a title or a query, and the example has neither.
        """
        if self.name == UNRANKED:
            return list(range(len(texts)))
        if self.ranker is None:
            if learned_ranker(self.name):
                raise RuntimeError(f"the ranker '{self.name}' learns: fit or load the system first")
            self.ranker = registry.rankers.load(self.name)
        return order_by(self.ranker, example, texts, f"model.rank={self.name}")

    def use_device(self, device: str) -> None:
        """Set where a learned ranker runs ("auto", "cpu", "cuda")."""
        if self.learned:
            self.learned.device = device

    def identity(self) -> dict[str, Any]:
        """Return the version of a learned ranker, fitted or not."""
        kind = learned_ranker(self.name)
        return {"ranker": kind.version} if kind else {}

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

    name: Text = ""  # the registered name
    rank: RankerName = "lstm"  # none | lstm | tfidf | title | …: the ranker (longsumbench list rankers)
    ranker_dimension: Width = 256  # width of the LSTM ranker (Hierarchical Transformer §4)
    ranker_steps: Count = 5_000  # optimizer steps of the ranker's training (not in the paper)
    ranker_batch_size: BatchSize = 8  # titles a step, each with about 2,000 tokens of paragraphs (not in the paper)
    unit: UnitToRank = "paragraph"  # paragraph | section | snippet (sentences packed to paragraph_length)
    paragraph_length: TokenCount = 500  # maximum tokens of a paragraph (not in the paper; the release's default)
    input_length: TokenCount = 1600  # maximum input tokens, the title included (Hierarchical Transformer §4)
    test_input_length: TokenCount | None = None  # input_length of examples to summarize; None: as in training
    decode_length: TargetTokens = 400  # maximum target and output tokens (as in the release)
    dropout: FractionBelowOne = 0.1  # Hierarchical Transformer §4
    tokenizer: Text = "trained"  # trained (byte-level BPE) | words (word level) | a Hugging Face name or folder
    vocabulary_size: VocabularySize = 32_000  # entries of a trained tokenizer (Hierarchical Transformer §4)
    init: Text = "random"  # random, or the folder of a checkpoint of this system

    def __post_init__(self) -> None:
        check_settings(self, "model.")
