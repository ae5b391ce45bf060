"""The tables and figures of the papers ("paper tables"), read from `conf/paper/*.yaml`.

conf/paper/seal.yaml --read_paper_tables--> PaperTable --points--> runs --kinds--> Page --write--> results/papers/
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from omegaconf import OmegaConf

from longsumbench.conf import CONF
from longsumbench.errors import DataError, UnknownName

PAPER = "paper"  # the scale with the paper's sizes and data
Option = str | int | float | None


class PaperRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of a table, or one point of a curve: a system with its settings.

    Attributes:
        run: overrides at every scale, as typed after `longsumbench run -m`.
        at: scale → more overrides. If it is not empty and lacks a scale, the row does not exist at that scale.
        datasets: the paper's names of the datasets that have this row; empty: all.
        published: column of `published.csv` → value: the printed numbers of this row. Empty: the paper prints none.
        panel, line: of a figure: where the point belongs; a line may name settings of its system, in braces.
        x: of a figure: scale → place on the horizontal axis.
    """

    run: str = ""
    at: Mapping[str, str] = {}
    datasets: tuple[str, ...] = ()
    published: Mapping[str, str] = {}
    panel: str = ""
    line: str = ""
    x: Mapping[str, float] = {}


class Ordering(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ordering that the paper claims.

    Attributes:
        claim: "ROW > ROW", by the labels of the rows; of an analysis of texts, by words of its kind.
        on: the measure (`rouge1`, …).
        says: what the paper says, in a few words.
        source: where the paper says it ("§5, Table 2").
        datasets: the paper's names of the datasets for which it is claimed; empty: all.
    """

    claim: str
    on: str = "rouge1"
    says: str = ""
    source: str = ""
    datasets: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[str, ...]:
        """Labels of the row that the paper finds better, and of the other row."""
        higher, _, lower = self.claim.partition(" > ")
        return higher, lower


class AlikeRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows that the paper finds alike.

    Attributes:
        rows: their labels, two or more.
        margin: the difference, in points of `on`, from which on rows are not alike; None: the largest difference of
            the printed numbers.
        on, says, source, datasets: as of an ordering.
    """

    rows: tuple[str, ...]
    on: str = "rouge1"
    margin: float | None = None
    says: str = ""
    source: str = ""
    datasets: tuple[str, ...] = ()

    @property
    def claim(self) -> str:
        """The labels of the rows; of many rows, their number."""
        return " ~ ".join(self.rows) if len(self.rows) == 2 else f"all {len(self.rows)} rows ~ each other"


PaperClaim = Ordering | AlikeRows


class PaperTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table or figure of a paper.

    Attributes:
        kind: what is computed and shown, a key of `longsumbench.papers.page.PAPER_TABLE_KINDS`.
        title: what it shows.
        default: the scale if none is typed.
        scales: scale → overrides of all rows, as typed after `longsumbench run -m`.
        datasets: the paper's name of a dataset → scale → overrides that choose the dataset. A dataset without a scale
            is not read at that scale.
        rows: label → row.
        measures: the columns of numbers.
        part: part of ROUGE: "f", "p" (precision) or "r" (recall).
        orderings, alike: what the paper claims.
        options: setting of this kind of paper table → default, or scale → default; typed on the command line as
            `KEY=VALUE`.
        not_given: settings that the paper does not give, and what is used; one sentence each.
        notes: other sentences below the table.
        name, prints, source, citation: set on reading: "seal-table2", "Table 2", the key in `published.csv`, the paper.
    """

    kind: str
    title: str
    default: str
    scales: Mapping[str, str]
    datasets: Mapping[str, Mapping[str, str]]
    rows: Mapping[str, PaperRow] = {}
    measures: tuple[str, ...] = ("rouge1", "rouge2", "rougeL")
    part: str = "f"
    orderings: tuple[Ordering, ...] = ()
    alike: tuple[AlikeRows, ...] = ()
    options: Mapping[str, Option | Mapping[str, Option]] = {}
    not_given: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    name: str = ""
    prints: str = ""
    source: str = ""
    citation: str = ""

    @property
    def claims(self) -> tuple[PaperClaim, ...]:
        """What the paper claims: orderings, then rows that are alike."""
        return (*self.orderings, *self.alike)

    @property
    def scale_names(self) -> tuple[str, ...]:
        """The scales, the default first."""
        return tuple(dict.fromkeys([self.default, *self.scales]))

    def options_at(self, scale: str) -> dict[str, Option]:
        """Return setting of this kind → default at a scale."""
        return {key: value.get(scale) if isinstance(value, Mapping) else value for key, value in self.options.items()}


class _Paper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of `conf/paper`: one paper with its paper tables ("table2" → paper table)."""

    source: str
    citation: str
    artifacts: Mapping[str, dict[str, Any]]


@cache
def read_paper_tables() -> Mapping[str, PaperTable]:
    """Return name → paper table, in the order of the papers.

    Raises:
        DataError: a file of `conf/paper` is invalid.
    """
    paper_tables: dict[str, PaperTable] = {}
    for path in sorted((CONF / "paper").glob("*.yaml")):
        try:
            paper = msgspec.convert(OmegaConf.to_container(OmegaConf.load(path)), _Paper)
            for short, content in paper.artifacts.items():
                word = short.rstrip("0123456789")  # "table2" → "Table 2"
                facts = {"name": f"{path.stem}-{short}", "prints": f"{word.capitalize()} {short[len(word) :]}"}
                facts |= {"source": paper.source, "citation": paper.citation}
                paper_tables[facts["name"]] = msgspec.convert({**content, **facts}, PaperTable)
        except (msgspec.ValidationError, ValueError) as error:
            raise DataError(f"not a list of tables and figures ({error})", Path(path.name)) from error
    return paper_tables


def find_paper_table(name: str) -> PaperTable:
    """Return a paper table by name.

    Raises:
        UnknownName: there is none.
    """
    paper_tables = read_paper_tables()
    if name not in paper_tables:
        raise UnknownName("table or figure", name, paper_tables)
    return paper_tables[name]
