"""The tables and figures of the papers ("artifacts"), read from `conf/paper/*.yaml`.

conf/paper/seal.yaml --read_artifacts--> Artifact --points--> runs --kinds--> Page --write--> results/papers/
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


class ArtifactRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    """An ordering of two rows that the paper claims.

    Attributes:
        claim: "ROW > ROW", by the labels of the rows.
        on: the measure (`rouge1`, …).
        source: where the paper claims it ("§5, Table 2").
        datasets: the paper's names of the datasets for which it is claimed; empty: all.
    """

    claim: str
    on: str = "rouge1"
    source: str = ""
    datasets: tuple[str, ...] = ()

    @property
    def higher(self) -> str:
        """Label of the row that the paper finds better."""
        return self.claim.partition(" > ")[0]

    @property
    def lower(self) -> str:
        """Label of the other row."""
        return self.claim.partition(" > ")[2]


class Artifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table or figure of a paper.

    Attributes:
        kind: what is computed and shown, a key of `longsumbench.papers.kinds.ARTIFACT_KINDS`.
        title: what it shows.
        default: the scale if none is typed.
        scales: scale → overrides of all rows, as typed after `longsumbench run -m`.
        datasets: the paper's name of a dataset → scale → overrides that choose the dataset. A dataset without a scale
            is not read at that scale.
        rows: label → row.
        measures: the columns of numbers.
        part: part of ROUGE: "f", "p" (precision) or "r" (recall).
        orderings: what the paper claims.
        options: setting of this kind of artifact → default, or scale → default; typed on the command line as
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
    rows: Mapping[str, ArtifactRow] = {}
    measures: tuple[str, ...] = ("rouge1", "rouge2", "rougeL")
    part: str = "f"
    orderings: tuple[Ordering, ...] = ()
    options: Mapping[str, Option | Mapping[str, Option]] = {}
    not_given: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    name: str = ""
    prints: str = ""
    source: str = ""
    citation: str = ""

    def options_at(self, scale: str) -> dict[str, Option]:
        """Return setting of this kind → default at a scale."""
        return {key: value.get(scale) if isinstance(value, Mapping) else value for key, value in self.options.items()}


class _Paper(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of `conf/paper`: one paper with its artifacts ("table2" → artifact)."""

    source: str
    citation: str
    artifacts: Mapping[str, dict[str, Any]]


@cache
def read_artifacts() -> Mapping[str, Artifact]:
    """Return name → artifact, in the order of the papers.

    Raises:
        DataError: a file of `conf/paper` is invalid.
    """
    found: dict[str, Artifact] = {}
    for path in sorted((CONF / "paper").glob("*.yaml")):
        try:
            paper = msgspec.convert(OmegaConf.to_container(OmegaConf.load(path)), _Paper)
            for short, content in paper.artifacts.items():
                about = {"name": f"{path.stem}-{short}", "prints": _printed_name(short)}
                about |= {"source": paper.source, "citation": paper.citation}
                found[about["name"]] = msgspec.convert({**content, **about}, Artifact)
        except (msgspec.ValidationError, ValueError) as error:
            raise DataError(f"not a list of tables and figures ({error})", Path(path.name)) from error
    return found


def find_artifact(name: str) -> Artifact:
    """Return an artifact by name.

    Raises:
        UnknownName: there is none.
    """
    artifacts = read_artifacts()
    if name not in artifacts:
        raise UnknownName("table or figure", name, artifacts)
    return artifacts[name]


def _printed_name(short: str) -> str:
    """Return "Table 2" for "table2"."""
    word = short.rstrip("0123456789")
    return f"{word.capitalize()} {short[len(word) :]}"
