"""Orders of a split's paragraphs by a learned ranker, cached for all runs that rank the same texts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import datasets

from longsumbench.api import Example, Split
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.modeling.collate import stored_rows
from longsumbench.progress import track

_VERSION = 1  # rises, with the version of every learned ranker, when the same scores give another order
_FEATURES = datasets.Features({"id": datasets.Value("string"), "order": datasets.List(datasets.Value("int32"))})


class Orders:
    """The orders of a split's first examples: the stage "orders", which the first call reads or builds.

    Args:
        split: the texts.
        examples: the number of examples.
        rank: an example → its order, the best first.
        decided_by: identifies the ranker and the unit it ranks: JSON values.
        stages: the artifact cache.
    """

    def __init__(
        self,
        split: Split,
        examples: int,
        rank: Callable[[Example], Sequence[int]],
        decided_by: Mapping[str, Any],
        stages: ArtifactCache,
    ) -> None:
        self._split, self._examples, self._rank, self._stages = split, examples, rank, stages
        self._inputs = {**decided_by, "split": split.fingerprint, "examples": examples, "version": _VERSION}
        self._rows: datasets.Dataset | None = None
        self._places: dict[str, int] = {}

    def __call__(self, identity: str) -> list[int]:
        """Return the order of an example, by its id."""
        if self._rows is None:
            self._rows = stored_rows("orders", self._inputs, _FEATURES, self._compute(), self._stages)
            self._places = {name: place for place, name in enumerate(self._rows["id"])}
        order: list[int] = self._rows[self._places[identity]]["order"]
        return order

    def _compute(self) -> Iterator[dict[str, Any]]:
        for index in track(range(self._examples), f"ranking {self._split.name}", self._examples):
            example = self._split[index]
            yield {"id": example.id, "order": self._rank(example)}
