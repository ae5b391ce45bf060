"""Tables as text: blocks of rows under headings, for the terminal, in Markdown and in LaTeX."""

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tabulate import tabulate

TERMINAL_WIDTH = 130  # columns; longer notes are wrapped
ROWS_ON_A_PAGE = 40  # longer LaTeX tables may break across pages
_MARKDOWN = re.compile(r"[\\|<`*_\[]")  # what Markdown would read as its own
_STRESS, _END = "\x02", "\x03"  # around stressed cells while tabulate escapes LaTeX


class Stressed(str):
    """A cell that is the best of its column: bold, or starred on the terminal."""


@dataclass(frozen=True)
class Block:
    """Rows that belong together.

    Attributes:
        heading: what they are; empty for rows that follow the block before.
        notes: lines between heading and rows.
        columns: names; a line break in one is a space outside the terminal.
        align: a letter a column, "l" or "r".
        rows: cells; as many as columns.
        widths: the widest that the column may be on the terminal, by name; cells are wrapped there.
    """

    heading: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    align: str
    rows: Sequence[Sequence[str]]
    widths: tuple[tuple[str, int], ...] = ()


def terminal(title: str, blocks: Sequence[Block]) -> str:
    """Draw for reading in a terminal."""
    parts = [title]
    for block in blocks:
        widths = dict(block.widths)
        wraps = [widths.get(column) for column in block.columns]
        told = [textwrap.fill(line, TERMINAL_WIDTH, break_on_hyphens=False) for line in (block.heading, *block.notes)]
        drawn = _draw(block, "simple", lambda cell: f"*{cell}", maxcolwidths=wraps) if block.rows else ""
        parts.append("\n".join(part for part in (*told, drawn) if part))
    return "\n\n".join(parts)


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """Write Markdown, ending with a line break."""
    parts = [f"# {_escape_markdown(title)}"]
    for block in map(_escaped_for_markdown, blocks):
        drawn = _draw(block, "github", lambda cell: f"**{cell}**") if block.rows else ""
        parts += [part for part in (block.heading and f"## {block.heading}", *block.notes, drawn) if part]
    return "\n\n".join(parts) + "\n"


def _escaped_for_markdown(block: Block) -> Block:
    """Escape whatever was typed or read; the only markers are the ones this file adds."""
    rows = [[type(cell)(_escape_markdown(cell)) for cell in row] for row in block.rows]
    notes = tuple(_escape_markdown(note) for note in block.notes)
    columns = tuple(_escape_markdown(column) for column in block.columns)
    return replace(block, heading=_escape_markdown(block.heading), notes=notes, columns=columns, rows=rows)


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", text)


def latex(title: str, blocks: Sequence[Block]) -> str:
    """Write LaTeX tables (packages booktabs and longtable), captions included, ending with a line break."""
    text = "\n".join([f"% {title}; needs \\usepackage{{booktabs,longtable}}", *map(_latex_table, blocks)]) + "\n"
    return text.replace("±", r"$\pm$").replace("×", r"$\times$")


def _latex_table(block: Block) -> str:
    drawn = _draw(block, "latex_booktabs", lambda cell: f"{_STRESS}{cell}{_END}")
    drawn = drawn.replace(_STRESS, r"\textbf{").replace(_END, "}")
    told = ". ".join(part.rstrip(".") for part in (block.heading, *block.notes) if part)
    caption = rf"\caption{{{_escape(told)}.}}"
    if len(block.rows) <= ROWS_ON_A_PAGE:
        return "\n".join([r"\begin{table}", r"\small\centering", caption, drawn, r"\end{table}"])
    begin, _, rest = drawn.replace("{tabular}", "{longtable}").partition("\n")
    return "\n".join([begin, rf"{caption}\\", rest])


def _escape(text: str) -> str:
    """Escape what LaTeX would read as a command, exactly as tabulate does in cells."""
    line: str = tabulate([[text]], tablefmt="latex_booktabs", disable_numparse=True).split("\n")[2]
    return line.strip().removesuffix(r"\\").strip()


def _draw(
    block: Block, style: str, stress: Callable[[str], str], maxcolwidths: Sequence[int | None] | None = None
) -> str:
    cells = [[stress(cell) if isinstance(cell, Stressed) else cell for cell in row] for row in block.rows]
    names = block.columns if style == "simple" else [name.replace("\n", " ") for name in block.columns]
    alignment = [{"l": "left", "r": "right"}[letter] for letter in block.align]
    return tabulate(cells, names, style, colalign=alignment, disable_numparse=True, maxcolwidths=maxcolwidths)
