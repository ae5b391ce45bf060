"""Numbers over all examples with evidence: how much a selection changes, how much weight is on one unit.

evidence of a run --measure_examples--> a table, one row per example --number_blocks--> blocks

Measures of an example:

    Selections    share of the segments, after the first, that have another selection than the segment before
    Weights       mean weight of the best unit; share of the steps, after the first, that have the best unit of the step
                  before; share of any two steps with the same best unit, which is expected if the order of the steps
                  has no effect
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from longsumbench.errors import DataError
from longsumbench.metrics.aggregate import PERCENT, Estimate, estimate_mean
from longsumbench.papers.claims import PairDifference, compare_examples
from longsumbench.papers.examples.row_examples import describe_problem
from longsumbench.report.evidence.views import Selections, View, Weights, views
from longsumbench.report.tables import Block
from longsumbench.runs.evidence import kept_places, read_evidence

_CHANGED, _SELECTED = "changed_selections", "selected_units"
_BEST, _EQUAL, SAME_BEST, _CHANCE = "best_weight", "equal_weight", "same_best_unit", "same_best_unit_any_two"
_COUNTS = (_SELECTED,)  # the others are shares
_SELECTION_COLUMNS = {
    _CHANGED: "other selection than\nthe segment before, %",
    _SELECTED: "units selected\nfor a segment",
}
_WEIGHT_COLUMNS = {
    _BEST: "weight of the\nbest unit, %",
    _EQUAL: "if all\nwere equal",
    SAME_BEST: "same best unit as\nthe step before, %",
    _CHANCE: "as any\nother step",
}
_NOTES = {
    _CHANGED: "A unit is a snippet of the source. A selection differs if it has other snippets.",
    _BEST: "A unit is a page of the source. The best unit of a step is the one with the greatest weight.",
}
_FOOTNOTE = "Means over the examples with evidence; ±: half the 95 % interval over examples."


def views_of_reference(drawn: Sequence[View]) -> list[View]:
    """Return the views without weights at the steps of the output, if there are weights at those of the reference."""
    if not any(has_reference_steps(view) for view in drawn):
        return list(drawn)
    return [view for view in drawn if not isinstance(view, Weights) or has_reference_steps(view)]


def has_reference_steps(view: View) -> bool:
    """Return True for weights at each step of the reference."""
    return isinstance(view, Weights) and view.text == "reference"


def measure_examples(folder: Path) -> pd.DataFrame:
    """Measure all examples in a folder of evidence, a row for each place; NaN where a measure does not apply.

    Raises:
        DataError: a file is damaged.
    """
    rows = {}
    for place in sorted(kept_places(folder)):
        try:
            _, evidence = read_evidence(folder, place)
        except DataError as error:
            raise DataError(describe_problem(error), folder / f"{place}.json") from error
        drawn = views_of_reference(views(evidence))
        rows[place] = {name: value for view in drawn for name, value in measure_view(view)}
    return pd.DataFrame([*rows.values()], index=[*rows], dtype=float)


def measure_view(view: View) -> Iterator[tuple[str, float]]:
    """Yield the name and the number of each measure of a view; nothing for an empty output. Shares are 0–1."""
    if isinstance(view, Selections) and len(view.taken):
        taken = view.taken > 0
        changed = (taken[1:] != taken[:-1]).any(axis=1)
        yield _CHANGED, float(changed.mean()) if len(changed) else np.nan
        yield _SELECTED, float(taken.sum(axis=1).mean())
    elif isinstance(view, Weights) and view.values.size:
        best = np.array(view.strongest)
        counts, steps = np.bincount(best), len(best)
        yield _BEST, float(np.nanmax(view.values, axis=0).mean())
        yield _EQUAL, 1 / len(view.values)
        yield SAME_BEST, float((best[1:] == best[:-1]).mean()) if steps > 1 else np.nan
        yield _CHANCE, float((counts * (counts - 1)).sum() / (steps * (steps - 1))) if steps > 1 else np.nan


def number_blocks(tables: Mapping[str, pd.DataFrame]) -> list[Block]:
    """Return a block for each kind of evidence; `tables` has the measures of each row's examples."""
    blocks = []
    for columns in (_SELECTION_COLUMNS, _WEIGHT_COLUMNS):
        first = next(iter(columns))
        rows = [_cells(name, table, columns) for name, table in tables.items() if first in table]
        if rows:
            heads = ("row", "examples", *columns.values())
            align = "l" + "r" * (len(heads) - 1)
            heading = "All examples with evidence"
            blocks.append(Block(heading, (_NOTES[first],), heads, align, rows, footnotes=(_FOOTNOTE,)))
    return blocks


def _cells(name: str, table: pd.DataFrame, columns: Mapping[str, str]) -> list[str]:
    numbers = [estimate_measure(table[column], column) for column in columns]
    return [name, f"{len(table):,}", *(f"{number:.1f}" if number else "" for number in numbers)]


def estimate_measure(values: "pd.Series[float]", name: str) -> Estimate | None:
    """Return the mean of a measure with its interval, shares as 0–100; None if it applies to no example."""
    return estimate_mean(np.asarray(values.dropna(), np.float64) * (1.0 if name in _COUNTS else PERCENT))


def compare_steps(tables: Sequence[pd.DataFrame]) -> PairDifference | None:
    """Compare steps with the same best unit as the step before with any two steps; None without such steps.

    Args:
        tables: measures of the same examples, of one run for each seed.
    """
    gaps = [PERCENT * (table[SAME_BEST] - table[_CHANCE]) for table in tables if SAME_BEST in table]
    if not gaps or len(gaps) < len(tables):
        return None
    return compare_examples(pd.concat(gaps, axis=1, join="inner").to_numpy(np.float64))
