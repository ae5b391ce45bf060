"""Published numbers of papers and repositories, read from `published.csv`, as printed. Begin with `read_published`."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.core import Row
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.loading.row_files import parse_rows
from longsumbench.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

PROVENANCE = {
    "own": "",
    "reported-by": "quoted",
    "reproduced-by": "re-run",
}  # how a source got a number
# (metric, ROUGE-L kind) → column; different kinds of ROUGE-L have separate columns
COLUMNS = {
    ("rouge1", ""): "R-1",
    ("rouge2", ""): "R-2",
    ("rougeL", "sentence"): "R-L sentence",
    ("rougeLsum", "summary"): "R-L summary",
    ("rougeL", "unstated"): "R-L unstated",
}

# Name in published.csv → our name; the version in parentheses is shown with the split.
PUBLISHED_AS = {
    "arXiv": "arxiv",
    "PubMed": "pubmed",
    "CNN/DailyMail": "cnn_dailymail",
    "CNN/DailyMail (anonymized)": "cnn_dailymail",
    "WikiSum": "wikisum",
    "Multi-News": "multi_news",
    "Multi-News (LongBench 200)": "multi_news",
    "GovReport": "gov_report",
    "GovReport (SCROLLS)": "gov_report",
    "GovReport (ZeroSCROLLS)": "gov_report",
    "GovReport (LongBench 200)": "gov_report",
    "Search2Wiki": "search2wiki",
}
# Lines of a source that agree in these are about one system on one test set
_ROW = ("source_key", "system", "variant", "dataset", "split", "input_tokens", "provenance")
# Of a user's file
_DEFAULTS = dict.fromkeys((*_ROW, "source_table", "metric", "value", "rouge_l_kind", "note"), "")
_DEFAULTS |= {"source_key": "a file of yours", "statistic": "f", "provenance": "own"}


@dataclass
class Published:
    """The numbers that one source prints for one system on one test set.

    Attributes:
        key: the source, and `provenance` how it got the numbers: a key of `PROVENANCE`.
        variant: its name in the source; may be empty.
        input_tokens: the maximum that the system reads; empty if unknown.
        tables: the source's tables, which agree on the numbers.
        scores: column → F1, precision or recall, 0–100, as printed.
        doubted: True if another publication or table contradicts them; `published.csv` has a note.
        chosen: True if it is shown with runs on any dataset; its source then says so.
    """

    key: str
    system: str
    variant: str
    dataset: str
    split: str
    input_tokens: str
    provenance: str
    tables: list[str] = field(default_factory=list)
    scores: dict[str, str] = field(default_factory=dict)
    doubted: bool = False
    chosen: bool = False

    @property
    def source(self) -> str:
        """The source's key, its tables, and how it got the numbers if they are not its own."""
        tables = [name for name in self.tables if name.startswith(("Table ", "§"))]  # not URLs
        text = " ".join([self.key, *tables[:1]])
        for name in tables[1:]:
            text += f", {name.removeprefix('Table ')}"
        if self.chosen:
            text = f"printed in {text}, {self.dataset}".removesuffix(", ")
        origin = PROVENANCE.get(self.provenance, self.provenance)
        return f"{text} ({origin})" if origin else text

    @property
    def test_set(self) -> str:
        """The split, and the version of the dataset if it is not the usual one."""
        version = self.dataset.partition(" (")[2].removesuffix(")")
        return f"{self.split}, {version}" if version else self.split

    def agrees(self, scores: dict[str, str]) -> bool:
        """Return True if no number differs."""
        return all(self.scores.get(name, value) == value for name, value in scores.items())


def read_published(dataset: str, statistic: str = "f") -> list[Published]:
    """Return the published numbers on a dataset, sorted by system, variant, input length and source.

    Tables of one source that contradict each other are several rows; `statistic` is a key of `ROUGE_STATISTICS`.
    """
    names = [name for name, our_name in PUBLISHED_AS.items() if our_name == dataset]
    cells = _read_published_cells() if names else ()
    return _join_cells([cell for cell in cells if cell["dataset"] in names], statistic)


def find_published(words: Sequence[str], statistic: str = "f") -> list[Published]:
    """Return published numbers on any dataset, marked as printed.

    A word is a part of the name of a system, a source or a dataset; or a CSV file with the columns of `published.csv`, of
    which `system`, `metric` and `value` are needed.

    Raises:
        UsageError: no published number has the word.
        DataError: a line of the file has no system, or no known metric.
    """
    rows: list[Published] = []
    for word in words:
        if word.endswith(".csv"):
            cells = [cell for _, cell in parse_rows(Path(word), (), _complete_row)]
        else:
            cells = [cell for cell in _read_published_cells() if _has_name(cell, word)]
        chosen = _join_cells(cells, statistic)
        if not chosen:
            raise UsageError(f"--published {word}: no such system, source or dataset with numbers")
        rows += [replace(row, chosen=True) for row in chosen]
    return rows


def _has_name(cell: Mapping[str, str], word: str) -> bool:
    names = cell["system"], cell["source_key"], cell["dataset"]
    return word.casefold() in " ".join(names).casefold()


def _complete_row(row: Row) -> dict[str, Any]:
    """Return a row of a user's file with all columns; BadRow if it is no published number."""
    cell = _complete_cell(_DEFAULTS | {name: value for name, value in row.items() if value})
    if not (cell["system"] and cell["column"]):
        needs = "system, value, metric and, of rougeL and rougeLsum, rouge_l_kind"
        raise BadRow(f"a published number needs {needs} as in published.csv")
    return cell


def _join_cells(cells: Iterable[Mapping[str, Any]], statistic: str) -> list[Published]:
    tables: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for cell in cells:
        if cell["statistic"] == statistic and cell["column"]:
            key = [cell[name] for name in ("source_table", *_ROW)]
            tables.setdefault(tuple(key), []).append(cell)
    # Tables of one source are joined as long as no number differs
    published: dict[tuple[str, ...], list[Published]] = {}
    for (source_table, *row), numbers in tables.items():
        scores = {cell["column"]: cell["value"] for cell in numbers}
        versions = published.setdefault(tuple(row), [])
        version = next((version for version in versions if version.agrees(scores)), None)
        if version is None:
            source, system, variant, dataset, split, input_tokens, provenance = row
            version = Published(source, system, variant, dataset, split, input_tokens, provenance)
            versions.append(version)
        version.tables.append(source_table)
        version.scores |= scores
        version.doubted |= any(cell["doubted"] for cell in numbers)
    rows: list[Published] = []
    for versions in published.values():
        rows += versions
    return sorted(rows, key=_published_order)


def _published_order(row: Published) -> tuple[str, ...]:
    return row.system.casefold(), row.variant, row.input_tokens.zfill(9), row.source


def _read_published_cells() -> list[dict[str, Any]]:
    """Return the lines of `published.csv` as text, with `column` (a value of `COLUMNS`, or empty) and `doubted`."""
    text = files("longsumbench").joinpath("published.csv").read_text(encoding="utf-8")
    return [_complete_cell(cell) for cell in csv.DictReader(StringIO(text))]


def _complete_cell(cell: Mapping[str, str]) -> dict[str, Any]:
    doubted = re.search("contradiction|inconsistent", cell["note"], re.IGNORECASE) is not None
    column = COLUMNS.get((cell["metric"], cell["rouge_l_kind"]), "")
    return {**cell, "column": column, "doubted": doubted}


def read_published_table() -> "pd.DataFrame":
    """Return the lines of `published.csv` as text, with `column` (a value of `COLUMNS`, or empty) and `doubted`."""
    import pandas as pd

    return pd.DataFrame(_read_published_cells())
