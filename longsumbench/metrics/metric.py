"""What a metric is: it scores one example at a time; means and intervals are made here, for all metrics alike.

    predictions, references --score_all--> Scored: a table, one row an example --aggregate--> means, 95 % intervals

Per example 0–1, aggregated 0–100.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pandas as pd

from longsumbench.documents import Sentences
from longsumbench.errors import DataError
from longsumbench.records import write_atomically
from longsumbench.statistics import bootstrap_intervals

BOOTSTRAP_SEED = 1  # the same for every run, so that an interval depends on the scores alone
PERCENT = 100.0


class Metric(ABC):
    """Scores predictions against references.

    Attributes:
        name: as it is registered.
        types: what it measures; each has the columns `<type>_p`, `<type>_r` and `<type>_f`.
    """

    name: ClassVar[str]
    types: ClassVar[tuple[str, ...]]

    @property
    def columns(self) -> list[str]:
        """The columns of the table of scores, without `id`."""
        return [f"{kind}_{part}" for kind in self.types for part in "prf"]

    @abstractmethod
    def score(self, prediction: str, references: Sequence[Sentences]) -> dict[str, float]:
        """Score one prediction; column → 0–1. An empty prediction scores 0 in all of them."""

    @abstractmethod
    def can_score(self, references: Sequence[Sentences]) -> bool:
        """Tell whether any reference holds something to be matched."""

    @abstractmethod
    def signature(self, n: int) -> str:
        """Describe in one string how a mean over `n` examples is computed.

        Two numbers with different signatures never stand in one column.
        """


@dataclass(frozen=True)
class Scored:
    """The scores of a run.

    Attributes:
        per_example: a row for each example, indexed by `id`, in the order they came; 0–1.
        empty_references: ids of the examples that were left out because no reference can be scored.
        empty_predictions: how many of the rows are 0 because nothing was predicted.
    """

    per_example: pd.DataFrame
    empty_references: tuple[str, ...] = ()
    empty_predictions: int = 0


def score_all(metric: Metric, items: Iterable[tuple[str, str, Sequence[Sentences]]]) -> Scored:
    """Score every prediction once.

    Args:
        metric: how.
        items: (example id, prediction, references), read as they are needed.

    Raises:
        DataError: two examples have the same id.
    """
    rows: dict[str, dict[str, float]] = {}
    unusable: dict[str, None] = {}  # a set that keeps its order
    empty = 0
    for name, prediction, references in items:
        if name in rows or name in unusable:
            raise DataError(f"two predictions for the example '{name}'; keep one")
        if not metric.can_score(references):
            unusable[name] = None
            continue
        rows[name] = metric.score(prediction, references)
        empty += not prediction.strip()
    table = pd.DataFrame(list(rows.values()), index=pd.Index(list(rows), name="id", dtype=object), dtype=float)
    return Scored(table.reindex(columns=metric.columns), tuple(unusable), empty)


def aggregate(
    per_example: pd.DataFrame, resamples: int = 1_000, seed: int = BOOTSTRAP_SEED
) -> dict[str, dict[str, float]]:
    """Return type → {"p", "r", "f": plain means; "f_lo", "f_hi": the 95 % interval of f}, all 0–100.

    Args:
        per_example: as in `Scored`; the order of its rows does not matter.
        resamples: of the percentile bootstrap over examples.
        seed: of the resamples, which are the same for all types.

    Raises:
        DataError: there is no example to average over.
    """
    if per_example.empty:
        raise DataError("no example can be scored: no reference holds a word that the tokenizer keeps")
    table = per_example.sort_index() * PERCENT
    means = table.mean()
    types = [str(column)[:-2] for column in table.columns if str(column).endswith("_f")]
    intervals = bootstrap_intervals(table[[f"{kind}_f" for kind in types]].to_numpy(), resamples, seed)
    scores = {}
    for kind, (low, high) in zip(types, intervals.tolist(), strict=True):
        scores[kind] = {part: float(means[f"{kind}_{part}"]) for part in "prf"} | {"f_lo": low, "f_hi": high}
    return scores


def write_scores(path: Path, per_example: pd.DataFrame) -> None:
    """Write `scores.csv`: `id` and a column for each score, 0–1, in full precision."""
    write_atomically(path, per_example.to_csv(index_label="id", lineterminator="\n"))


def read_scores(path: Path) -> pd.DataFrame:
    """Read what `write_scores` wrote, to the last bit.

    Raises:
        DataError: the file is missing or no table of scores.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        return table.set_index("id").astype(float)  # Python's own reading of numbers: exact
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"not a table of scores ({error})", path) from error
