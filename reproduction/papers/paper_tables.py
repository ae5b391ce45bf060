"""The tables and figures of the papers ("paper tables"), read from `conf/paper/*.yaml`.

conf/paper/seal.yaml --read_paper_tables--> PaperTable --points--> runs --kinds--> Page --write--> results/papers/
"""

import shlex
from collections.abc import Mapping
from functools import cache
from itertools import chain, combinations
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from omegaconf import OmegaConf

from longsumbench.errors import DataError, UnknownName
from longsumbench_reproduction.conf import PAPERS_CONF

PAPER = "paper"  # the scale with the paper's sizes and data
Option = str | int | float | None
_Scaled = TypeVar("_Scaled")


def at_scale(value: _Scaled | Mapping[str, _Scaled], scale: str) -> _Scaled | None:
    """Return a value that holds at all scales, or that of one scale; None if it has none."""
    return value.get(scale) if isinstance(value, Mapping) else value


def dataset_name(line: str) -> str:
    """Return NAME of `dataset=NAME` in a line of overrides; empty without one."""
    values = dict(word.partition("=")[::2] for word in shlex.split(line))
    return values.get("dataset.name", values.get("dataset", ""))


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


class Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a test was stated: measures, texts, systems with settings, seeds, margin and budget.

    Attributes:
        at: the time, "2026-11-29T06:00:00+00:00"; empty if the test was chosen after looking at results.
        commit: the commit that fixed the statement.
        looks: how often results were looked at, with more seeds each time; each look has its share of the level.
        note: why runs are older than the statement, or what was chosen after looking; empty if nothing was.
    """

    at: str = ""
    commit: str = ""
    looks: int = 1
    note: str = ""


class PaperClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim of the paper: orderings that all hold, or rows that are alike. It is tested once.

    Without rows, it cannot be tested at any scale, and `untested` says why.

    Attributes:
        says: what the paper says, in a few words.
        source: where the paper says it ("§5, Table 2").
        orders: each "ROW > ROW", by the labels of the rows; of an analysis of texts, by words of its kind.
        alike: labels of rows that the paper finds alike, two or more.
        on: the measures, separated by commas, or scale → measures. "rouge1 - rouge2" is the difference of two.
        datasets: the paper's names of the datasets for which it is claimed; empty: all.
        margin: the difference from which on rows are not alike, or scale → difference; None: rows are not tested.
        margin_source: where the margin comes from.
        untested: why it is not tested, or scale → why; empty if it is.
        scales: the scales at which it is a claim; empty: all.
        withdrawn: why its test no longer counts, or scale → why; empty if it counts.
        stated: scale → when its test was stated, if that is not the statement of the table.
    """

    says: str = ""
    source: str = ""
    orders: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    on: str | Mapping[str, str] = "rouge1"
    datasets: tuple[str, ...] = ()
    margin: float | Mapping[str, float] | None = None
    margin_source: str = ""
    untested: str | Mapping[str, str] = ""
    scales: tuple[str, ...] = ()
    withdrawn: str | Mapping[str, str] = ""
    stated: Mapping[str, Statement] = {}

    @property
    def pairs(self) -> tuple[str, ...]:
        """The compared rows: each "ROW > ROW", or each two rows that are alike, "ROW ~ ROW"."""
        return self.orders or tuple(map(" ~ ".join, combinations(self.alike, 2)))

    @property
    def rows(self) -> tuple[str, ...]:
        """Labels of all rows."""
        return tuple(dict.fromkeys(chain.from_iterable(map(split_pair, self.pairs))))

    def measures_at(self, scale: str) -> tuple[str, ...]:
        """Return the measures at a scale."""
        return tuple((at_scale(self.on, scale) or "").split(", "))


def split_pair(pair: str) -> tuple[str, str]:
    """Return the labels of "ROW > ROW", the row that the paper finds better first; or of "ROW ~ ROW"."""
    first, _, second = pair.partition(" > " if " > " in pair else " ~ ")
    return first, second


class PaperTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table or figure of a paper.

    Attributes:
        kind: what is computed and shown, a key of `longsumbench_reproduction.papers.page_model.PAPER_TABLE_KINDS`.
        title: what it shows.
        default: the scale if none is typed.
        scales: scale → overrides of all rows, as typed after `longsumbench run -m`.
        datasets: the paper's name of a dataset → scale → overrides that choose the dataset. A dataset without a scale
            is not read at that scale.
        rows: label → row.
        measures: the columns of numbers.
        part: statistic of ROUGE: "f", "p" (precision) or "r" (recall).
        claims: what the paper claims.
        options: setting of this kind of paper table → default, or scale → default; typed on the command line as
            `KEY=VALUE`.
        not_given: settings that the paper does not give, and what is used; one sentence each.
        notes: other sentences below the table.
        stated: scale → when the tests of its claims were stated.
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
    claims: tuple[PaperClaim, ...] = ()
    options: Mapping[str, Option | Mapping[str, Option]] = {}
    not_given: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stated: Mapping[str, Statement] = {}
    name: str = ""
    prints: str = ""
    source: str = ""
    citation: str = ""

    @property
    def scale_names(self) -> tuple[str, ...]:
        """The scales, the default first."""
        return tuple(dict.fromkeys([self.default, *self.scales]))

    def claims_at(self, scale: str) -> tuple[PaperClaim, ...]:
        """Return the claims at a scale."""
        return tuple(claim for claim in self.claims if scale in (claim.scales or [scale]))

    def options_at(self, scale: str) -> dict[str, Option]:
        """Return setting of this kind → default at a scale."""
        return {key: at_scale(value, scale) for key, value in self.options.items()}


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
    for path in sorted((PAPERS_CONF / "paper").glob("*.yaml")):
        try:
            paper = msgspec.convert(OmegaConf.to_container(OmegaConf.load(path)), _Paper)
            for short, content in paper.artifacts.items():
                word = short.rstrip("0123456789")  # "table2" → "Table 2"
                facts = {
                    "name": f"{path.stem}-{short}",
                    "prints": f"{word.capitalize()} {short[len(word) :]}",
                }
                facts |= {"source": paper.source, "citation": paper.citation}
                paper_tables[facts["name"]] = msgspec.convert({**content, **facts}, PaperTable)
        except (msgspec.ValidationError, ValueError) as error:
            raise DataError(
                f"not a list of tables and figures ({error})", Path(path.name)
            ) from error
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
