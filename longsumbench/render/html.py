"""The frame of all HTML pages: self-contained, light or dark by the reader's preference."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from types import MappingProxyType

from longsumbench.render.tables import TIED, Stressed, Tied

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1d2126; --soft: #5f6873; --line: #dfe3e8; --card: #f6f7f9; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e4e7eb; --soft: #9aa4b0; --line: #303740;
  --card: #1c2127; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 76rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .5rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 2rem 0 .75rem; }
p { max-width: 52rem; margin: .5rem 0; }
.soft { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; text-align: right; vertical-align: bottom; }
th, td { padding: .35rem .6rem; white-space: nowrap; text-align: right; border-bottom: 1px solid var(--line); }
th.l, td.l { text-align: left; }
figure { margin: 1.5rem 0; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .4rem; }
.texts { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 1px;
  background: var(--line); border-top: 1px solid var(--line); border-radius: 0 0 .5rem .5rem; overflow: hidden; }
.texts section { background: var(--page); padding: .8rem .9rem 1rem; }
.texts h4 { margin: 0 0 .4rem; font-size: .85rem; color: var(--soft); }
.texts p { margin: 0 0 .5rem; font-size: .92rem; white-space: pre-line; overflow-wrap: anywhere; }
"""


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
