"""Watching: a toy system that writes the sentences it likes best and keeps evidence of having looked at them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from longsumbench.core import (
    Capabilities,
    Cut,
    Decoding,
    Evidence,
    Example,
    FitContext,
    FitReport,
    Summary,
    System,
    SystemConfig,
    Truncation,
    registry,
)
from support.json_files import read_json, write_json


@dataclass
class WatchingConfig(SystemConfig):
    """How much is read and written."""

    name: str = "watching"
    num_units: int = 6  # sentences read at most
    segments: int = 2  # of the summary, one sentence each
    capabilities = Capabilities(keeps_evidence=True)
    decided_by = frozenset({"decode"})


class Watching(System):
    """Its units are sentences; it writes those with the most distinct letters, one a segment.

    Attributes:
        batches: of all its instances: the ids of the batch, and the evidence that was asked for.
        fails_at: the number of batches after which it stops; None: never.
        suffix: what it writes behind every summary: other weights, or another device.
    """

    Config = WatchingConfig
    config: WatchingConfig
    batches: ClassVar[list[tuple[list[str], str]]] = []
    fails_at: ClassVar[int | None] = None
    suffix: ClassVar[str] = ""

    def fit(self, context: FitContext) -> FitReport:
        """Learn nothing, in a stage of its own."""

        def build(folder: Path) -> None:
            self.save(folder)
            write_json(folder / "fit.json", {"seconds": time.time()})

        folder = context.cache.get("checkpoint", asdict(self.config), build)
        return FitReport(**read_json(folder / "fit.json"))

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Write a batch; with evidence and inputs for all of it, or for none."""
        if self.fails_at is not None and len(self.batches) >= self.fails_at:
            raise KeyboardInterrupt
        self.batches.append(([example.id for example in examples], decoding.evidence))
        for example in examples:
            summary, evidence = self.read(example)
            if decoding.keep_inputs != "none":
                summary = replace(summary, read="\n".join(evidence.texts["unit"]))
            yield summary if decoding.evidence == "none" else replace(summary, evidence=evidence)

    def read(self, example: Example) -> tuple[Summary, Evidence]:
        """Return an example's summary and what was looked at for it."""
        sentences = list(example.sentences())
        units = tuple(sentences[: self.config.num_units])
        liked = np.array([len(set(unit)) / 100 for unit in units], dtype=np.float32)
        scores = np.stack([liked - 0.001 * segment for segment in range(self.config.segments)])
        order = np.argsort(-liked, kind="stable")[: self.config.segments]
        selected = np.zeros_like(scores, dtype=bool)
        selected[np.arange(len(order)), order] = True
        words = example.source_words()
        cut = words - sum(len(unit.split()) for unit in units)
        ledger = Truncation(words, words, (Cut("num_units", cut, cut),) if cut else ())
        evidence = Evidence(
            {"score": scores, "selected": selected},
            {"score": ("segment", "unit"), "selected": ("segment", "unit")},
            {"unit": units},
        )
        text = " ".join(units[index] for index in order) + self.suffix
        return Summary(
            example.id, text, ledger, complete=len(text.split()) < 40, tokens=len(text.split())
        ), evidence


def with_watching() -> registry.Registry:
    """Return the table of systems with this one in it."""
    return replace(
        registry.systems,
        built_in={**registry.systems.built_in, "watching": "support.watching:Watching"},
    )


def like(one: Evidence, other: Evidence) -> bool:
    """Tell whether two pieces of evidence are the same, numbers, types and shapes included."""

    def described(evidence: Evidence) -> tuple[object, ...]:
        arrays = {name: np.asarray(array) for name, array in evidence.arrays.items()}
        values = {name: (str(array.dtype), array.tolist()) for name, array in arrays.items()}
        return dict(evidence.axes), dict(evidence.texts), values

    return described(one) == described(other)
