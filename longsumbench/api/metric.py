"""What a metric is: it scores one example at a time."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import pandas as pd

from longsumbench.api.config import Scoring
from longsumbench.api.documents import Example


class Metric(ABC):
    """Scores predictions against what is known of the examples.

    Args:
        scoring: the run's settings of scores.

    Attributes:
        name: as it is registered.
        columns: its columns of the table of scores; where the dataset names the metric, runs are ranked by the first.
        further: columns that the table has only where they apply to one of the examples, behind the others.
        units: of the columns that are no shares; column → unit, the same per example and aggregated.
        version: rises when the same predictions would score otherwise; part of the signature and, where the dataset
            names the metric, of the run id.
    """

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    further: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[Mapping[str, str]] = MappingProxyType({})
    version: ClassVar[int] = 1

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring

    @abstractmethod
    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; column → 0–1 or its unit, NaN where it does not apply.

        An empty prediction scores 0 elsewhere.
        """

    def check(self) -> None:  # noqa: B027 - most metrics need nothing
        """Look, before a run starts, whether all that the metric needs is here.

        Raises:
            UsageError: a setting is missing, or cannot be meant.
            EnvironmentProblem: a package or a model is missing, and cannot be fetched.
        """

    def can_score(self, example: Example) -> bool:
        """Tell whether there is anything to be matched; where there is not, no metric scores the example."""
        return True

    @abstractmethod
    def signature(self, n: int) -> str:
        """Describe in one string how a mean over `n` examples is computed.

        Two numbers with different signatures never stand in one column.
        """


@dataclass(frozen=True)
class Scored:
    """The scores of a run.

    Attributes:
        per_example: a row for each example, indexed by `id`, in the order they came; 0–1, or in a column's own unit.
        empty_references: ids of the examples that were left out because no reference can be scored.
        empty_predictions: how many of the rows are 0 because nothing was predicted.
    """

    per_example: pd.DataFrame
    empty_references: tuple[str, ...] = ()
    empty_predictions: int = 0
