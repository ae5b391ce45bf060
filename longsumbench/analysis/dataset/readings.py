"""Counts how much of a dataset each system would read, without training its weights or decoding.

settings of a system, splits --fit_reader--> FittedReader --see_source, see_target--> Reading
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    UNRANKED,
    Example,
    FitContext,
    RunConfig,
    Split,
    System,
    Truncation,
    learned_ranker,
    registry,
    total_truncation,
)
from longsumbench.runs.record import split_variant

_EMPTY_LEDGER = Truncation(0, 0)
NO_LEDGER = "keeps no ledger: it reads everything, or does not report what it cuts"


@dataclass
class Reading:
    """What a system would read.

    Attributes:
        model, variant: the system, and its model settings that differ from the recipe.
        note: difference from a run; empty if there is none.
        has_tokens: whether the system has a tokenizer; if not, words count as tokens.
        sources: number of examples whose source was read.
        num_whole: number of sources without a cut; None if the system keeps no ledger.
        source: total ledger of the sources.
        targets: number of training targets that were read.
        targets_cut: number of targets that training would cut.
        target: total ledger of the targets; None if the system cuts none.
    """

    model: str
    variant: str = ""
    note: str = ""
    has_tokens: bool = False
    sources: int = 0
    num_whole: int | None = None
    source: Truncation = _EMPTY_LEDGER
    targets: int = 0
    targets_cut: int = 0
    target: Truncation | None = None

    @property
    def label(self) -> str:
        """Model and variant."""
        return " ".join([self.model, *split_variant(self.variant)])

    def see_source(self, ledger: Truncation | None) -> None:
        """Add an example's source ledger; None if the system keeps none."""
        self.sources += 1
        if ledger is not None:
            self.num_whole = (self.num_whole or 0) + (not ledger.cuts)
            self.source = total_truncation([self.source, ledger])

    def see_target(self, ledger: Truncation | None) -> None:
        """Add the ledger of an example's first reference in training; None if the system keeps none."""
        if ledger is not None:
            self.targets += 1
            self.targets_cut += bool(ledger.cuts)
            self.target = total_truncation([self.target or _EMPTY_LEDGER, ledger])


@dataclass
class FittedReader:
    """A system that is ready to read.

    Attributes:
        system: the system.
        reading: counts so far.
        tokenizer: identity of the tokenizer; None if the system has none.
        count: counts the tokens of consecutive sentences; None without a tokenizer.
    """

    system: System
    reading: Reading
    tokenizer: str | None = None
    count: Callable[[list[str]], int] | None = None


class SharedTokenizer(NamedTuple):
    """A tokenizer of one or several systems.

    Attributes:
        label: name of the unit, with the systems' names.
        count: counts the tokens of consecutive sentences.
    """

    label: str
    count: Callable[[list[str]], int]

    def of_source(self, example: Example) -> int:
        """Count the source's tokens, without titles and section names."""
        return sum(self.count(list(document.sentences())) for document in example.documents)

    def of_target(self, example: Example) -> int:
        """Count the first reference's tokens, without special ones."""
        return self.count([" ".join(example.references[0])])


def fit_reader(
    config: RunConfig, variant: str, splits: Mapping[str, Split], stages: ArtifactCache, train_ranker: bool
) -> FittedReader:
    """Return a system with its tokenizer and, if `train_ranker`, its trained ranker.

    Args:
        config: all settings of the system, as for `run`.
        variant: the settings that differ from the recipe.
        splits: splits of the dataset.
        stages: artifact cache; tokenizers and rankers are shared with runs.
        train_ranker: train a learned ranker; False: texts are read in the order of the source.

    Raises:
        UsageError: the texts do not fit the settings.
        DataError: the system needs a training split, and there is none.
        EnvironmentProblem: a tokenizer is not available.
    """
    model, note = config.model, ""
    ranker = getattr(model, "rank", UNRANKED)
    if not train_ranker and learned_ranker(ranker):
        model = replace(model, rank=UNRANKED)
        note = f"its ranker, {ranker}, is not trained: texts are read in the order of the source"
        note = f"{note}; train_ranker=true ranks them as a run does"
    system: System = registry.systems.load(model.name)(model)
    system.prepare(FitContext.of(splits, config.train, stages))
    reader = FittedReader(system, Reading(model.name, variant, note))
    units: Any = getattr(system, "reader", None)  # of a NeuralSystem; importing that class would import torch
    if units is not None:
        from longsumbench.modeling.tokenizer import tokenizer_identity

        reader.reading.has_tokens = True
        reader.tokenizer = tokenizer_identity(units.tokenizer)
        reader.count = lambda sentences: sum(len(sentence.ids) for sentence in units.encode(sentences))
    return reader


def tokenizers(readers: Sequence[FittedReader]) -> list[SharedTokenizer]:
    """Return the distinct tokenizers, in the order of the systems."""
    models: dict[str, dict[str, None]] = {}  # tokenizer → names of its systems
    for reader in readers:
        if reader.tokenizer is not None:
            models.setdefault(reader.tokenizer, {})[reader.reading.model] = None
    counts = {reader.tokenizer: reader.count for reader in reversed(readers) if reader.count}  # the first system's
    return [SharedTokenizer(f"tokens of {', '.join(names)}", counts[tokenizer]) for tokenizer, names in models.items()]
