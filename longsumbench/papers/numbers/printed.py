"""The numbers that a paper prints in a table: the rows of `published.csv` with its source and its table."""

from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple

import pandas as pd

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.published import COLUMNS, PROVENANCE, read_published_table
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.papers.artifacts import Artifact, ArtifactRow
from longsumbench.report.tables import Block

_ROW = ("system", "variant", "dataset", "split", "input_tokens", "provenance")
_DOUBTED = " †"
_SHARES = {"coherence_nsp": "coherence"}  # printed 0–1 → our measure, 0–100
UNSTATED = COLUMNS["rougeL", "unstated"]  # no measure of ours is known to be of that kind
OUR_COLUMNS = {measure: column for (measure, _), column in COLUMNS.items() if column != UNSTATED}


class PrintedRow(NamedTuple):
    """A row of a paper's table on one dataset.

    Attributes:
        label: of the artifact's row, or system, variant and input tokens.
        dataset, system, variant, input_tokens: as in `published.csv`; the last two may be empty.
        how: empty for the paper's own number; "quoted" or "re-run" for others.
        numbers: column ("R-1", "R-L sentence", or a measure's name) → number, as printed.
        doubted: True if another publication or table contradicts a number.
    """

    label: str
    dataset: str
    system: str
    variant: str
    input_tokens: str
    how: str
    numbers: Mapping[str, str]
    doubted: bool

    @property
    def source(self) -> str:
        """How the paper got the numbers: "own", "quoted" or "re-run"; † if they are doubted."""
        return (self.how or "own") + (_DOUBTED if self.doubted else "")


def read_printed_table(artifact: Artifact) -> pd.DataFrame:
    """Return the numbers of the artifact's table: of ROUGE those of its part, and all others."""
    table = read_published_table()
    here = (table["source_key"] == artifact.source) & (table["source_table"] == artifact.prints)
    part = (table["statistic"] == artifact.part) | ~table["metric"].isin(list(ROUGE_HEADINGS))
    return table[here & part]


def column_of(measure: str) -> str:
    """Return the column of printed numbers that are of the same kind as a measure: "R-1", "R-L sentence"."""
    return OUR_COLUMNS.get(measure, measure)


def find_printed_row(artifact: Artifact, label: str, dataset: str) -> PrintedRow | None:
    """Return what a table prints for a row of an artifact on one of the paper's datasets; None if it prints nothing."""
    found = _rows(_selected(read_printed_table(artifact), artifact.rows[label], dataset), {}, label)
    return found[0] if found else None


def read_other_rows(artifact: Artifact, datasets: Collection[str]) -> list[PrintedRow]:
    """Return the other printed rows of a table: those of other systems, and the artifact's rows on other datasets.

    Args:
        artifact: the table.
        datasets: the paper's names of the datasets on which the artifact's own rows are left out.
    """
    table = read_printed_table(artifact)
    labels: dict[Hashable, str] = {}
    for label, row in artifact.rows.items():
        for dataset in row.datasets or artifact.datasets:
            own = _selected(table, row, dataset)
            labels |= dict.fromkeys(own.index, label)
            if dataset in datasets:
                table = table.drop(index=own.index)
    return _rows(table, labels)


def printed_block(artifact: Artifact, rows: Collection[PrintedRow]) -> Block | None:
    """Return the block of printed rows for which there are no runs; None if there are none."""
    if not rows:
        return None
    columns = list(dict.fromkeys([*COLUMNS.values(), *(column for row in rows for column in row.numbers)]))
    numbers = [[row.numbers.get(one, "") for one in columns] for row in rows]
    cells = [
        [row.dataset, row.system, row.variant, row.input_tokens, *found, row.source]
        for row, found in zip(rows, numbers, strict=True)
    ]
    doubts = any(row.doubted for row in rows)
    return Block(
        f"Other rows of {artifact.prints}, as printed",
        (),
        ("dataset", "system", "variant", "input\ntokens", *(one.replace(" ", "\n") for one in columns), "source"),
        "lllr" + "r" * len(columns) + "l",
        cells,
        optional=("input\ntokens", "variant"),
        footnotes=("† Another publication or table contradicts this row: see the note in published.csv.",) * doubts,
    ).without_empty_columns()


def _in_our_unit(column: str, value: str) -> tuple[str, str]:
    """Return a printed number by the name of our measure, and in its unit."""
    return (_SHARES[column], f"{PERCENT * float(value):.2f}") if column in _SHARES else (column, value)


def _selected(table: pd.DataFrame, row: ArtifactRow, dataset: str) -> pd.DataFrame:
    if not row.published:
        return table.iloc[:0]
    for column, value in {"dataset": dataset, **row.published}.items():
        table = table[table[column] == value]
    return table


def _rows(table: pd.DataFrame, labels: Mapping[Hashable, str], label: str = "") -> list[PrintedRow]:
    """Return the printed rows of a table; their labels are by line of `published.csv`, or all the same."""
    found = []
    for names, cells in table.groupby(list(_ROW), sort=False):
        system, variant, dataset, _, input_tokens, provenance = map(str, names)
        tokens = f"{input_tokens} tokens" if input_tokens else ""
        named = label or labels.get(cells.index[0]) or ", ".join(filter(None, [system, variant, tokens]))
        columns = cells["column"].where(cells["column"] != "", cells["metric"])
        numbers = dict(map(_in_our_unit, columns, cells["value"]))
        how, doubted = PROVENANCE[provenance], bool(cells["doubted"].any())
        found.append(PrintedRow(named, dataset, system, variant, input_tokens, how, numbers, doubted))
    return found
