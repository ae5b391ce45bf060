"""Tables as text: blocks of rows under headings, for the terminal, in Markdown and in LaTeX."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pandas as pd
from tabulate import tabulate

from longsumbench.formatting import escape_line
from longsumbench.metrics.aggregate import Estimate

_TERMINAL_WIDTH = 130  # columns; longer notes are wrapped
TIED = "≈"  # after a cell that is not distinguishable from the best of its column
_ROWS_ON_A_PAGE = 40  # longer LaTeX tables may break across pages
_LATEX_SIGNS = {"±": r"\pm", "×": r"\times", "≥": r"\ge", TIED: r"\approx"}
_MARKDOWN = re.compile(r"[\\|<`*_\[~]|&(?=#?\w+;)")  # special characters of Markdown
_AFTER_UNDERSCORES = re.compile(r"(?<=_)")
_DECIMALS = 4  # of numbers in a CSV file
_STRESS, _END, _TIE = "\x02", "\x03", "\x04"  # placeholders of marks while tabulate escapes LaTeX


def rounded_frame(rows: Iterable[Mapping[str, Any]], columns: list[str] | None = None) -> pd.DataFrame:
    """Return rows as a table for a CSV file: floats with four decimals, other values as they are."""
    rounded = [{k: round(v, _DECIMALS) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    return pd.DataFrame(rounded, columns=columns, dtype=object)


def with_bounds(name: str, number: Estimate | None) -> dict[str, float | None]:
    """Return the cells of a number and its interval in a CSV file."""
    return dict(zip((name, f"{name}_lo", f"{name}_hi"), number or (None, None, None), strict=True))


class Stressed(str):
    """A cell that is the best of its column: bold, or starred on the terminal, with a legend below the table."""


class Tied(str):
    """A cell that is not distinguishable from its reference, marked with `TIED`."""


class _Marks(NamedTuple):
    """Text before and after a stressed cell, and after a tied one."""

    before: str
    after: str
    tied: str

    def put(self, cell: str) -> str:
        if isinstance(cell, Stressed):
            return f"{self.before}{cell}{self.after}"
        return f"{cell}{self.tied}" if isinstance(cell, Tied) else cell


@dataclass(frozen=True)
class Block:
    """Rows under a heading.

    Attributes:
        heading: empty if the rows continue the block before.
        notes: lines between heading and rows.
        columns: names; line breaks are used on the terminal only.
        align: "l" or "r" for each column.
        rows: cells; as many as columns.
        widths: column → maximum width on the terminal; longer cells are wrapped.
        groups: (heading, number of columns) over columns in LaTeX, from left to right; headings may be empty.
    """

    heading: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    align: str
    rows: Sequence[Sequence[str]]
    widths: tuple[tuple[str, int], ...] = ()
    groups: tuple[tuple[str, int], ...] = ()


def terminal(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks for the terminal."""
    parts = [title]
    for block in blocks:
        widths = dict(block.widths)
        wraps = [widths.get(column) for column in block.columns]
        lines = [textwrap.fill(line, _TERMINAL_WIDTH, break_on_hyphens=False) for line in (block.heading, *block.notes)]
        rows = [
            [type(cell)(_broken(escape_line(cell), width)) for cell, width in zip(row, wraps, strict=True)]
            for row in block.rows
        ]
        shown = replace(block, rows=rows)
        drawn = _draw(shown, "simple", _Marks("*", "", TIED), maxcolwidths=wraps) if rows else ""
        parts.append("\n".join(part for part in (*lines, drawn, _legend(block, "*")) if part))
    return "\n\n".join(parts)


def _broken(cell: str, width: int | None) -> str:
    """Break a name that is wider than its column after underscores; text with blanks is left to tabulate."""
    if width is None or len(cell) <= width or " " in cell:
        return cell
    lines = [""]
    for part in _AFTER_UNDERSCORES.split(cell):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks as Markdown, ending with a line break."""
    parts = [f"# {_escape_markdown(title)}"]
    for block in map(_escaped_for_markdown, blocks):
        drawn = _draw(block, "github", _Marks("**", "**", f" {TIED}")) if block.rows else ""
        heading = block.heading and f"## {block.heading}"
        parts += [part for part in (heading, *block.notes, drawn, _legend(block, "**Bold**")) if part]
    return "\n\n".join(parts) + "\n"


def _escaped_for_markdown(block: Block) -> Block:
    rows = [[type(cell)(_escape_markdown(cell)) for cell in row] for row in block.rows]
    notes = tuple(_escape_markdown(note) for note in block.notes)
    columns = tuple(_escape_markdown(column) for column in block.columns)
    return replace(block, heading=_escape_markdown(block.heading), notes=notes, columns=columns, rows=rows)


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", text)


def latex(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks as LaTeX tables with captions (packages booktabs, longtable, adjustbox)."""
    needs = rf"% {title}; needs \usepackage{{adjustbox,booktabs,longtable}}"
    text = "\n".join([needs, *map(_latex_table, blocks)]) + "\n"
    for sign, command in _LATEX_SIGNS.items():
        text = text.replace(sign, f"${command}$")
    return text


def _latex_table(block: Block) -> str:
    drawn = _draw(block, "latex_booktabs", _Marks(_STRESS, _END, _TIE))
    drawn = drawn.replace(_STRESS, r"\textbf{").replace(_END, "}").replace(_TIE, rf"\rlap{{\,{TIED}}}")
    drawn = drawn.replace(r"\toprule", "\n".join([r"\toprule", *_group_headings(block.groups)]), 1)
    text = ". ".join(part.rstrip(".") for part in (block.heading, *block.notes, _legend(block, "Bold")) if part)
    caption = rf"\caption{{{_escape(text)}.}}"
    if len(block.rows) <= _ROWS_ON_A_PAGE:
        fitted = [r"\begin{adjustbox}{max width=\textwidth}", drawn, r"\end{adjustbox}"]
        return "\n".join([r"\begin{table}", r"\small\centering", caption, *fitted, r"\end{table}"])
    begin, _, rest = drawn.replace("{tabular}", "{longtable}").partition("\n")
    return "\n".join([begin, rf"{caption}\\", rest])


def _legend(block: Block, mark: str) -> str:
    """Return the meaning of the mark of the best; empty if no cell has it."""
    stressed = any(isinstance(cell, Stressed) for row in block.rows for cell in row)
    return f"{mark}: the best of its column." if stressed else ""


def _group_headings(groups: Sequence[tuple[str, int]]) -> list[str]:
    """Return the line of headings over columns and the rules below it; empty if there are none."""
    cells, rules, column = [], [], 1
    for heading, width in groups:
        if heading:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_escape(heading)}}}")
            rules.append(rf"\cmidrule(lr){{{column}-{column + width - 1}}}")
        else:
            cells += [""] * width
        column += width
    return [rf"{' & '.join(cells)} \\", " ".join(rules)] if rules else []


def _escape(text: str) -> str:
    """Escape LaTeX commands, exactly as tabulate does in cells."""
    line: str = tabulate([[text]], tablefmt="latex_booktabs", disable_numparse=True).split("\n")[2]
    return line.strip().removesuffix(r"\\").strip()


def _draw(block: Block, style: str, marks: _Marks, maxcolwidths: Sequence[int | None] | None = None) -> str:
    cells = [[marks.put(cell) for cell in row] for row in block.rows]
    names = block.columns if style == "simple" else [name.replace("\n", " ") for name in block.columns]
    alignment = [{"l": "left", "r": "right"}[letter] for letter in block.align]
    return tabulate(cells, names, style, colalign=alignment, disable_numparse=True, maxcolwidths=maxcolwidths)
