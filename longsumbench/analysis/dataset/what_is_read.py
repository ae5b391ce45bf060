"""How much of a dataset's texts each system would see under its settings, counted without training or writing.

settings of a system, splits --ready--> Reader --see_source, see_target--> Reading
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longsumbench.api import registry
from longsumbench.api.config import RunConfig
from longsumbench.api.documents import Example, Truncation, total_truncation
from longsumbench.api.ranker import UNRANKED, learned_ranker
from longsumbench.api.system import Split, System
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.runs.record import split_variant

_NOTHING = Truncation(0, 0)
NO_LEDGER = "keeps no ledger: it reads all, or does not say what it leaves out"


@dataclass
class Reading:
    """What a system would see.

    Attributes:
        model, variant: the system, and its model settings that differ from the recipe.
        note: what is counted otherwise than in a run; empty: nothing.
        has_tokens: whether it has a tokenizer; otherwise words stand in the place of tokens.
        sources: examples whose source was looked at.
        whole: how many of them it reads without a cut; None: it keeps no ledger.
        source: the ledger of all of them.
        targets: training targets that were looked at.
        targets_cut: how many of them training would cut.
        target: the ledger of all of them; None: of a system that cuts none.
    """

    model: str
    variant: str = ""
    note: str = ""
    has_tokens: bool = False
    sources: int = 0
    whole: int | None = None
    source: Truncation = _NOTHING
    targets: int = 0
    targets_cut: int = 0
    target: Truncation | None = None

    @property
    def label(self) -> str:
        """Its name, in a few words."""
        return " ".join([self.model, *split_variant(self.variant)])

    @property
    def unit(self) -> str:
        """What its ledger counts: "words" for a system without tokens of its own."""
        return "tokens" if self.has_tokens else "words"

    def see_source(self, ledger: Truncation | None) -> None:
        """Add what would be read of an example; None: of a system that keeps no ledger."""
        self.sources += 1
        if ledger is not None:
            self.whole = (self.whole or 0) + (not ledger.cuts)
            self.source = total_truncation([self.source, ledger])

    def see_target(self, ledger: Truncation | None) -> None:
        """Add what training would cut from an example's first reference."""
        if ledger is not None:
            self.targets += 1
            self.targets_cut += bool(ledger.cuts)
            self.target = total_truncation([self.target or _NOTHING, ledger])


@dataclass
class FittedReader:
    """A system that is ready to read.

    Attributes:
        system: it.
        reading: what it has read so far.
        tokenizer: tells the tokenizers of systems apart; None: of a system that has none.
        count: counts the tokens of consecutive sentences; None likewise.
    """

    system: System
    reading: Reading
    tokenizer: str | None = None
    count: Callable[[list[str]], int] | None = None


@dataclass(frozen=True)
class SharedTokenizer:
    """A tokenizer that one system or several share.

    Attributes:
        models: whose it is.
        count: counts the tokens of consecutive sentences.
    """

    models: list[str] = field(default_factory=list)
    count: Callable[[list[str]], int] = len

    @property
    def label(self) -> str:
        """Whose tokens they are."""
        return f"tokens of {', '.join(self.models)}"

    def of_source(self, example: Example) -> int:
        """Count the source's, titles and section names left out."""
        return sum(self.count(list(document.sentences())) for document in example.documents)

    def of_target(self, example: Example) -> int:
        """Count the first reference's, special ones left out."""
        return self.count([" ".join(example.references[0])])


def fit_reader(
    config: RunConfig, variant: str, splits: Mapping[str, Split], stages: ArtifactCache, train_ranker: bool
) -> FittedReader:
    """Return a system that has learned what decides how it reads: its tokenizer, and a ranker where that is asked for.

    Args:
        config: all its settings, as `run` would use them.
        variant: those that differ from its recipe.
        splits: of the dataset.
        stages: finished pieces of work; a tokenizer, and a ranker, is the one that a run would have.
        train_ranker: whether a ranker that learns is trained; otherwise texts are read in their own order.

    Raises:
        UsageError: the texts do not fit the settings.
        DataError: there is no training split, and it learns.
        EnvironmentProblem: a tokenizer cannot be had.
    """
    model, note = config.model, ""
    ranker = getattr(model, "rank", UNRANKED)
    if not train_ranker and learned_ranker(ranker):
        model = replace(model, rank=UNRANKED)
        told = f"its ranker, {ranker}, is not trained for this: texts are read in their own order"
        note = f"{told}; train_ranker=true ranks them as a run does"
    system: System = registry.systems.load(model.name)(model)
    system.ready_to_read(splits.get("train"), splits.get("validation"), config.train, stages)
    reader = FittedReader(system, Reading(model.name, variant, note))
    tokenizer: Any = getattr(system, "tokenizer", None)  # of what extends NeuralSystem, which would import torch here
    encode: Any = getattr(system, "encode", None)
    if tokenizer is not None and encode is not None:
        from longsumbench.modeling.tokenizer import tokenizer_identity

        reader.reading.has_tokens = True
        reader.tokenizer = tokenizer_identity(tokenizer)
        reader.count = lambda sentences: sum(len(sentence.ids) for sentence in encode(sentences))
    return reader


def tokenizers(readers: list[FittedReader]) -> list[SharedTokenizer]:
    """Return the different tokenizers of some systems, in the systems' order."""
    found: dict[str, SharedTokenizer] = {}
    for reader in readers:
        if reader.tokenizer is not None and reader.count is not None:
            tokens = found.setdefault(reader.tokenizer, SharedTokenizer([], reader.count))
            if reader.reading.model not in tokens.models:
                tokens.models.append(reader.reading.model)
    return list(found.values())
