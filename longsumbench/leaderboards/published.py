"""Published numbers of papers and repositories, read from `published.csv`, as printed."""

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO
from typing import TYPE_CHECKING, Any

from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_PARTS
from longsumbench.runs.record import RunRecord
from longsumbench.views.tables import Block

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
# Papers of the suite's systems; the terminal shows only what they report of these
OUR_PAPERS = ("liu2019hiersumm", "liu2022pagesum", "you2019etads", "zhao2020seal")

_VIEW = (
    *("system", "variant", "input\ntokens"),
    *(column.replace(" ", "\n") for column in COLUMNS.values()),
    *("split", "source"),
)
_ALIGNMENT = "llr" + "r" * len(COLUMNS) + "ll"
_OPTIONAL = ("input\ntokens", "split", "R-2")  # left out where room is scarce

_ROW = (
    "source_key",
    "system",
    "variant",
    "dataset",
    "split",
    "input_tokens",
    "provenance",
)  # they identify a row


@dataclass(frozen=True)
class Published:
    """The numbers that one source prints for one system on one test set.

    Attributes:
        source: the source's key, its tables, and how it got the numbers if they are not its own.
        self_reported: True if the source reports its own system or baseline.
        variant: its name in the source; may be empty.
        test_set: the split, and the version of the dataset if it is not the usual one.
        input_tokens: the maximum that the system reads; empty if unknown.
        scores: column → F1, precision or recall, 0–100, as printed.
        doubted: True if another publication or table contradicts them; `published.csv` has a note.
    """

    source: str
    key: str
    self_reported: bool
    system: str
    variant: str
    test_set: str
    input_tokens: str
    scores: tuple[tuple[str, str], ...]
    doubted: bool = False


def read_published(names: Collection[str], part: str = "f") -> list[Published]:
    """Return the published numbers on a dataset, sorted by system, variant, input length and source.

    `names` are the dataset's names in `published.csv`; `part` is a key of `ROUGE_PARTS`.
    """
    tables: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for cell in _read_published_cells() if names else ():
        if cell["dataset"] in names and cell["statistic"] == part and cell["column"]:
            tables.setdefault(tuple(cell[name] for name in ("source_table", *_ROW)), []).append(
                cell
            )
    printed_of: dict[
        tuple[str, ...], list[_Printed]
    ] = {}  # row → the numbers of tables that contradict each other
    for (source_table, *row), cells in tables.items():
        scores = {cell["column"]: cell["value"] for cell in cells}
        several = printed_of.setdefault(tuple(row), [])
        agreeing = [
            item
            for item in several
            if all(item.scores.get(name, v) == v for name, v in scores.items())
        ]
        if not agreeing:
            several.append(_Printed([], {}, False))
        printed = (agreeing or several[-1:])[0]
        printed.tables.append(source_table)
        printed.scores.update(scores)
        printed.doubted |= any(cell["doubted"] for cell in cells)
    published = [
        _published(row, printed) for row, several in printed_of.items() for printed in several
    ]
    return sorted(
        published, key=lambda r: (r.system.casefold(), r.variant, r.input_tokens.zfill(9), r.source)
    )


def published_blocks(
    dataset: str, runs: Sequence[RunRecord], brief: bool = False, part: str = "f"
) -> list[Block]:
    """Return a block of the published numbers on a dataset; empty if there are none.

    If runs may be on other texts than the official ones, a note warns. A brief block has only the best row of each of
    the suite's systems, and the number of others.
    """
    published = read_published(
        [name for name, our_name in PUBLISHED_AS.items() if our_name == dataset], part
    )
    if not published:
        return []
    selection = _best_of_our_systems(published) if brief else published
    measure = ROUGE_PARTS[part]
    notes = [
        f"As printed, on the official data, scored as in each source: {measure}, not ranked with our rows."
    ]
    if any(any(column.startswith("R-L") for column, _ in row.scores) for row in selection):
        notes.append(
            "Sentence-level and summary-level R-L of one output can differ by 10–20 points."
        )
    if any(row.doubted for row in selection):
        notes.append(
            "† Another publication or table contradicts this row: see the note in published.csv."
        )
    if any(record.config.dataset.path for record in runs):
        notes.append(
            "Our texts came from local files (dataset.path); nothing shows that they are the official ones."
        )
    if len(selection) < len(published):
        place = f"leaderboard/{dataset}.md" if part == "f" else "published.csv"
        notes.append(f"In {place}: {format_count(len(published) - len(selection), 'more row')}.")
    rows = [_published_row(row) for row in selection]
    block = Block(
        "Published numbers",
        (),
        _VIEW,
        _ALIGNMENT,
        rows,
        optional=_OPTIONAL,
        footnotes=(" ".join(notes),),
    )
    return [block.without_empty_columns()]


def _best_of_our_systems(published: Sequence[Published]) -> list[Published]:
    best: dict[str, Published] = {}
    for row in published:
        if row.self_reported and row.key in OUR_PAPERS:
            best[row.system] = max(
                best.get(row.system, row),
                row,
                key=lambda row: float(dict(row.scores).get("R-1", 0)),
            )
    return list(best.values())


def _published_row(row: Published) -> list[str]:
    scores = dict(row.scores)
    cells = [scores.get(column, "") for column in COLUMNS.values()]
    source = f"{row.source} †" if row.doubted else row.source
    return [row.system, row.variant, row.input_tokens, *cells, row.test_set, source]


def read_rank_recalls(dataset: str) -> list[tuple[str, dict[int, str]]]:
    """Return the published ROUGE-L recall (0–100) of the best-ranked paragraphs against the reference, as printed.

    For each ranker of each source: its name, and number of paragraphs → recall. `dataset` is that of `published.csv`.
    """
    table = read_published_table()
    recalls: dict[str, dict[int, str]] = {}
    for row in table[
        (table["dataset"] == dataset) & (table["metric"] == "rougeL_recall")
    ].itertuples():
        name = f"{row.system} ({row.source_key} {row.source_table})"
        recalls.setdefault(name, {})[int(str(row.variant).partition("=")[2].split()[0])] = str(
            row.value
        )
    return list(recalls.items())


@dataclass
class _Printed:
    """Numbers on which tables of one source agree."""

    tables: list[str]
    scores: dict[str, str]
    doubted: bool


def _read_published_cells() -> list[dict[str, Any]]:
    """Return the lines of `published.csv` as text, with `column` (a value of `COLUMNS`, or empty) and `doubted`."""
    text = files("longsumbench").joinpath("published.csv").read_text(encoding="utf-8")
    cells: list[dict[str, Any]] = list(csv.DictReader(StringIO(text)))
    for cell in cells:
        cell["column"] = COLUMNS.get((cell["metric"], cell["rouge_l_kind"]), "")
        cell["doubted"] = (
            re.search("contradiction|inconsistent", cell["note"], re.IGNORECASE) is not None
        )
    return cells


def read_published_table() -> "pd.DataFrame":
    """Return the lines of `published.csv` as text, with `column` (a value of `COLUMNS`, or empty) and `doubted`."""
    import pandas as pd

    return pd.DataFrame(_read_published_cells())


def _published(row: tuple[str, ...], printed: _Printed) -> Published:
    key, system, variant, dataset, split, input_tokens, provenance = row
    numbered = [
        name for name in printed.tables if name.startswith(("Table ", "§"))
    ]  # others are URLs
    source = ", ".join(
        [" ".join([key, *numbered[:1]]), *(name.removeprefix("Table ") for name in numbered[1:])]
    )
    source += f" ({PROVENANCE[provenance]})" if PROVENANCE[provenance] else ""
    version = dataset.partition(" (")[2].removesuffix(")")
    scores, test_set = tuple(printed.scores.items()), f"{split}, {version}" if version else split
    return Published(
        source,
        key,
        provenance == "own",
        system,
        variant,
        test_set,
        input_tokens,
        scores,
        printed.doubted,
    )
