"""Means and 95 % intervals of scores per example, and the file of these scores.

Shares are 0–1 per example and 0–100 aggregated; other columns keep their unit. ROUGE scores every example. A column of
another metric may not apply to an example (NaN); its mean is over the examples to which it applies.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longsumbench.errors import DataError
from longsumbench.files import format_csv, open_regular, write_atomically
from longsumbench.formatting import unguard_cell
from longsumbench.metrics.statistics import (
    Groups,
    Numbers,
    bootstrap_interval,
    bootstrap_intervals,
    bootstrap_shares,
    perl_intervals,
)

if TYPE_CHECKING:
    import pandas as pd

GROUP = "group"  # column with the number of an example's group; only where examples share a source
PERCENT = 100.0
MEAN_RESAMPLES = 1_000  # of the bootstrap for an interval, where no setting says otherwise


class Estimate(NamedTuple):
    """A mean and its 95 % interval, 0–100 or in its own unit; the interval is NaN if it is unknown."""

    mean: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """Format the mean and half the interval: "30.1 ±0.8"; "30.1 ±–" if the interval is unknown."""
        half = (self.high - self.low) / 2
        return f"{self.mean:{spec}} ±{'–' if math.isnan(half) else format(half, spec)}"


def stored_estimate(mean: float, low: float | None, high: float | None) -> Estimate:
    """Return a mean with an interval as records store it: None if it is unknown."""
    bounds = (math.nan if bound is None else bound for bound in (low, high))
    return Estimate(mean, *bounds)


@dataclass(frozen=True)
class RougeMeans:
    """Mean precision, recall and F1 of one type of ROUGE, and the 95 % interval of F1; all 0–100.

    The interval of a single example is unknown: None.
    """

    p: float
    r: float
    f: float
    f_lo: float | None
    f_hi: float | None

    @property
    def f1(self) -> Estimate:
        """F1 with its interval."""
        return stored_estimate(self.f, self.f_lo, self.f_hi)


@dataclass(frozen=True)
class MeasureMean:
    """The mean of a measure and its 95 % interval, 0–100 or in its unit, over the `n` examples it applies to.

    The interval of a single example is unknown: None.
    """

    mean: float
    lo: float | None
    hi: float | None
    n: int

    def __post_init__(self) -> None:
        if self.n == 1:  # earlier records have an interval without width
            object.__setattr__(self, "lo", None)
            object.__setattr__(self, "hi", None)

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval."""
        return stored_estimate(self.mean, self.lo, self.hi)


def read_groups(table: "ScoreTable | pd.DataFrame") -> Groups | None:
    """Return the number of each example's group; None if each example has a source of its own."""
    return np.asarray(table[GROUP], dtype=np.int64) if GROUP in table else None


def column_means(per_example: "pd.DataFrame", in_units: Collection[str] = ()) -> dict[str, float]:
    """Return column → mean over the examples to which it applies, 0–100 or, for those `in_units`, in its unit.

    A column that applies to no example is left out. The order of the rows does not matter.
    """
    means = per_example.drop(columns=GROUP, errors="ignore").sort_index().mean().dropna()
    return {
        str(name): float(mean if name in in_units else PERCENT * mean)
        for name, mean in means.items()
    }


def aggregate(
    per_example: "pd.DataFrame",
    resamples: int = MEAN_RESAMPLES,
    perl_resampling: bool = False,
) -> dict[str, RougeMeans]:
    """Return type of ROUGE → its plain means, and the 95 % interval of F1.

    Args:
        per_example: ROUGE's columns of `Scored`, and that of groups; the order of the rows does not matter.
        resamples: of the percentile bootstrap over groups of examples.
        perl_resampling: compute the intervals of ROUGE-1.5.5, with its seeds, over examples. The means stay plain means,
            not the means of its resamples.

    Raises:
        DataError: there is no example.
    """
    if per_example.empty:
        problem = "no example can be scored: no reference holds a word that the tokenizer keeps"
        raise DataError(f"{problem}; score.tokenizer=unicode keeps the letters of every script")
    means = (per_example.sort_index() * PERCENT).mean()
    columns = [str(name) for name in per_example if str(name).endswith("_f")]
    scores = {}
    intervals = compute_intervals(
        per_example[columns], resamples, perl_resampling, read_groups(per_example)
    )
    for column, interval in intervals.items():
        rouge_type = column.removesuffix("_f")
        plain_means = [float(means[f"{rouge_type}_{statistic}"]) for statistic in "prf"]
        scores[rouge_type] = RougeMeans(*plain_means, *_known(interval))
    return scores


def compute_intervals(
    per_example: "pd.DataFrame",
    resamples: int = MEAN_RESAMPLES,
    perl_resampling: bool = False,
    groups: Groups | None = None,
) -> dict[str, tuple[float, float]]:
    """Return column → the 95 % interval of its mean, 0–100; arguments as in `aggregate`."""
    order = np.argsort(per_example.index, kind="stable")
    values = (per_example.iloc[order] * PERCENT).to_numpy()
    groups = None if groups is None else groups[order]
    if perl_resampling:
        bounds = perl_intervals(values, resamples)[:, 1:]
    else:
        bounds = bootstrap_intervals(values, resamples, groups)
    return dict(zip(map(str, per_example.columns), map(tuple, bounds.tolist()), strict=True))


def aggregate_measures(
    per_example: "pd.DataFrame",
    resamples: int = MEAN_RESAMPLES,
    in_units: Collection[str] = (),
) -> dict[str, MeasureMean]:
    """Return column → its mean, with the 95 % interval and the number of examples to which it applies.

    Args:
        per_example: columns of `Scored`, and that of groups; the order of the rows does not matter.
        resamples: of the percentile bootstrap over groups of these examples.
        in_units: the columns that are not shares.

    Returns:
        Shares as 0–100, other columns in their unit. A column that applies to no example is left out.
    """
    measures = {}
    table = per_example.sort_index()
    groups = read_groups(table)
    for name, column in table.drop(columns=GROUP, errors="ignore").items():
        applies = column.notna().to_numpy()
        values = column.to_numpy()[applies]
        value_groups = None if groups is None else groups[applies]
        scale, interval = PERCENT, bootstrap_shares
        if name in in_units:
            scale, interval = 1.0, bootstrap_interval
        if len(values):
            bounds = interval(values, resamples, value_groups)
            low, high = _known(scale * bound for bound in bounds)
            mean = float((scale * values).mean())
            measures[str(name)] = MeasureMean(mean, low, high, len(values))
    return measures


def _known(bounds: Iterable[float]) -> Iterator[float | None]:
    for bound in bounds:
        yield None if math.isnan(bound) else bound


def write_scores(path: Path, per_example: "pd.DataFrame", decimals: int | None = None) -> None:
    """Write `scores.csv`: `id` and a column for each score; "nan" where it does not apply. Default: full precision."""
    digits = None if decimals is None else f"%.{decimals}f"
    write_atomically(
        path, format_csv(per_example.reset_index(names="id"), na_rep="nan", float_format=digits)
    )


@dataclass(frozen=True)
class ScoreTable:
    """The scores of a run as arrays; reading them needs no pandas.

    Attributes:
        index: ids of the examples.
        columns: name of a score → its value for each example, NaN where it does not apply.
    """

    index: Sequence[str]
    columns: Mapping[str, Numbers]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Numbers:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.index)

    def assign(self, **columns: Numbers) -> "ScoreTable":
        """Return the table with more columns, or with others in their place."""
        return ScoreTable(self.index, {**self.columns, **columns})

    def sort(self) -> "ScoreTable":
        """Return the table with its examples sorted by id."""
        return self.select(sorted(self.index))

    def select(self, ids: Sequence[str]) -> "ScoreTable":
        """Return the table of some examples, in this order."""
        return ScoreTable(ids, {name: values_at(self, name, ids) for name in self.columns})

    def frame(self) -> "pd.DataFrame":
        """Return a row for each example."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns), pd.Index(list(self.index), name="id", dtype=object))


def values_at(table: "ScoreTable | pd.DataFrame", name: str, ids: Sequence[str]) -> Numbers:
    """Return a score of some examples; NaN for an example that the table does not have."""
    values, index = np.asarray(table[name], dtype=np.float64), list(table.index)
    if list(ids) == index:
        return values
    by_id = dict(zip(index, values, strict=True))
    return np.array([by_id.get(example, math.nan) for example in ids])


def read_score_table(path: Path) -> ScoreTable:
    """Read what `write_scores` wrote, without loss.

    Raises:
        DataError: the file is missing or not a table of scores.
    """
    from pyarrow import csv, string  # type: ignore[import-untyped] # has no annotations

    options = csv.ConvertOptions(column_types={"id": string()}, null_values=[])  # "nan" is a number
    try:
        with open_regular(path) as file:  # one thread: processes share the cores
            table = csv.read_csv(
                file,
                csv.ReadOptions(use_threads=False),
                csv.ParseOptions(newlines_in_values=True),
                options,
            )
        name, *columns = table.column_names
        if name != "id":
            raise ValueError("its first column is not id")
        ids = [unguard_cell(cell) for cell in table["id"].to_pylist()]
        values = {column: _numbers(table[column].combine_chunks()) for column in columns}
        return ScoreTable(ids, values)
    except (OSError, ValueError) as error:
        raise DataError(
            f"not a table of scores ({error}); repeat its run with overwrite=true", path
        ) from error


def _numbers(column: Any) -> Numbers:
    """Return the numbers of a column of Arrow; its own method would import pandas."""
    if not len(column):
        return np.empty(0)
    types = {"double": np.float64, "int64": np.int64}
    if str(column.type) not in types:
        raise ValueError(f"a column has the type {column.type}")
    values = np.frombuffer(column.buffers()[1], types[str(column.type)], len(column))
    return values.astype(np.float64)


def read_scores(path: Path) -> "pd.DataFrame":
    """Return what `read_score_table` reads, with a row for each example."""
    return read_score_table(path).frame()
