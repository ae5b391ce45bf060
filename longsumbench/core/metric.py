"""The interface of a metric: it scores one prediction against its example."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from longsumbench.core.documents import Example
from longsumbench.core.run_settings import Scoring

if TYPE_CHECKING:
    import pandas as pd


class SentenceScore(NamedTuple):
    """A metric's score of one sentence.

    Attributes:
        score: 0–1.
        source: index of the source sentence that decided it, or begins there; −1 if none did.
        key_point: what was looked for in the summary; None: this is the score of one of its sentences.
    """

    score: float
    source: int
    key_point: str | None = None


SentenceScores: TypeAlias = Mapping[str, Mapping[str, Sequence[SentenceScore]]]  # metric → id → …


class Metric(ABC):
    """Base class of all metrics.

    Attributes:
        name: the registered name.
        columns: its columns in the table of scores. The first one ranks runs on a dataset that names the metric.
        further: columns that follow only if they apply to an example.
        units: column → unit, for columns that are not shares; the same per example and aggregated.
        agrees: a clause on how far it agrees with people, shown next to its name; from
            results/reference/agreement/agreement.csv. Empty if this was not measured.
        version: increases when the same predictions get other scores; part of the signature and, if the dataset names
            the metric, of the run id.
        needs_source: False if it scores a prediction without reading its source.
    """

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    further: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[Mapping[str, str]] = MappingProxyType({})
    agrees: ClassVar[str] = ""
    version: ClassVar[int] = 1
    needs_source: ClassVar[bool] = True

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring

    @abstractmethod
    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction: column → value, 0–1 or in its unit; NaN where a column does not apply.

        An empty prediction scores 0 in all columns that apply.
        """

    def score_sentences(
        self, prediction: str, example: Example
    ) -> tuple[dict[str, float], Sequence[SentenceScore]]:
        """Score one prediction, and each of its sentences, and each key point; most score the whole only."""
        return self.score(prediction, example), ()

    def check(self) -> None:  # noqa: B027 - most metrics need nothing
        """Check before a run starts that the metric can be computed.

        Raises:
            UsageError: a setting is missing or invalid.
            EnvironmentProblem: a package or a model is missing and cannot be downloaded.
        """

    def prepare(self, items: Iterable[tuple[str, Example]]) -> None:  # noqa: B027 - most metrics need nothing
        """Do together what all predictions need, with their examples, before the first one is scored."""

    def pooled(self) -> dict[str, tuple[float, float, float, int]]:
        """Return numbers that are no means: name → value, 95 % interval, scored examples; each has a unit."""
        return {}

    def can_score(self, example: Example) -> bool:
        """Return False if there is nothing to match; then no metric scores the example."""
        return True

    @abstractmethod
    def signature(self, n: int) -> str:
        """Describe in one string how a mean over `n` examples is computed.

        Numbers with different signatures never share a column.
        """


@dataclass(frozen=True)
class Scored:
    """The scores of a run.

    Attributes:
        per_example: a row for each example, indexed by `id`, in reading order; 0–1, or in a column's unit. If examples
            share a source, the column `GROUP` has the number of their group.
        empty_references: ids of examples that were skipped because no reference can be scored.
        empty_predictions: number of rows whose prediction is empty.
        sentences: metric → id → its scores of the prediction's sentences.
        targets: the examples of all predictions, without their documents, but with their group.
    """

    per_example: "pd.DataFrame"
    empty_references: tuple[str, ...] = ()
    empty_predictions: int = 0
    sentences: SentenceScores = field(default_factory=dict)
    targets: Sequence[Example] = ()
