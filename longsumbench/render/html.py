"""The frame of all HTML pages: self-contained, light or dark by the reader's preference."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from longsumbench.render.tables import TIED, Stressed, Tied


def static_text(name: str) -> str:
    """Return a style sheet or script of the folder `static`, after a line break."""
    return "\n" + (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


_STYLE = static_text("page.css")


def html_page(title: str, parts: Sequence[str], style: str = "", head: str = "") -> str:
    """Return a whole page.

    Args:
        title: text.
        parts: HTML of the body.
        style: CSS in addition to the common one.
        head: HTML of additional elements of the head.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def html_table(
    names: Sequence[str],
    align: str,
    rows: Iterable[Sequence[str]],
    groups: Sequence[str] = (),
    classes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a table, which scrolls if it is wider than the page.

    Args:
        names: names of the columns.
        align: "l" or "r" for each column.
        rows: cells, as text; `Stressed` cells are bold, `Tied` cells are marked.
        groups: a heading over each column; neighbours with the same one share it. Empty: none.
        classes: text of a cell → its CSS class.
    """
    sides = [' class="l"' if letter == "l" else "" for letter in align]
    over = "".join(f'<th colspan="{len(list(of))}">{escape(name)}</th>' for name, of in groupby(groups))
    head = "".join(f"<th{side}>{escape(name)}</th>" for side, name in zip(sides, names, strict=True))
    heads = (f"<tr>{over}</tr>" if over else "") + f"<tr>{head}</tr>"
    body = "\n".join(
        "<tr>" + "".join(_data_cell(letter, cell, classes) for letter, cell in zip(align, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table>\n<thead>{heads}</thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _data_cell(letter: str, cell: str, classes: Mapping[str, str]) -> str:
    names = " ".join(filter(None, ["l" if letter == "l" else "", classes.get(cell, "")]))
    return f'<td class="{names}">{_table_cell(cell)}</td>' if names else f"<td>{_table_cell(cell)}</td>"


def _table_cell(cell: str) -> str:
    if isinstance(cell, Stressed):
        return f"<strong>{escape(cell)}</strong>"
    return f"{escape(cell)} {TIED}" if isinstance(cell, Tied) else escape(cell)
