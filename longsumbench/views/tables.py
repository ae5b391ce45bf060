"""Tables as text: blocks of rows under headings, for the terminal, in Markdown and in LaTeX.

One rule of marks holds in all of them: the best value of a column is bold (starred on the terminal), and ≈ follows a
value that is not distinguishable from it. The legend below a table explains the marks that it has. A `Block` is what
`terminal`, `markdown` and `latex` render.
"""

import csv
import io
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import SEPARATING_LINE, tabulate

from longsumbench.formatting import escape_line, guard_cell, terminal_width
from longsumbench.metrics.aggregate import Estimate

if TYPE_CHECKING:
    import pandas as pd

_WIDEST_TEXT = 120  # columns
_COLUMN_GAP = 2  # blanks between columns on the terminal
_WIDEST_PIECE = 16  # characters of a name that are kept on one line
_COMFORTABLE = 16  # width of a text column for which optional columns are left out
# A word with the signs after it, where a line may be broken
_PIECE = re.compile(r"[^\s_/,=@-]*[\s_/,=@-]*")
TIED = "≈"  # after a cell that is not distinguishable from the best of its column
_ALIGNMENT = {"l": "left", "r": "right"}
_CSV_DECIMALS = 4  # of numbers in a CSV file

_MARKDOWN = re.compile(r"[\\|<`*_\[~]|&(?=#?\w+;)")  # special characters of Markdown
_MARKDOWN_NAMES = {"<": "&lt;", "&": "&amp;", "~": "&#126;"}

_ROWS_ON_A_PAGE = 40  # longer LaTeX tables may break across pages
# "21.3", "-0.5", "21.3 ±1.5", "21.3 ±–": sign, integer, decimals, then those of the error
_NUMBER_CELL = re.compile(r"([-+−]?)(\d+)(?:\.(\d+))?(?: ±(?:–|(\d+)(?:\.(\d+))?))?")
_LATEX_SIGNS = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "±": r"\ensuremath{\pm}",
    "×": r"\ensuremath{\times}",
    "≥": r"\ensuremath{\ge}",
    TIED: r"\ensuremath{\approx}",
    "→": r"\ensuremath{\to}",
    "−": r"\ensuremath{-}",
}
_LATEX = str.maketrans(_LATEX_SIGNS)
# Columns with longer cells are broken
_LONG_CELL, _LATEX_BROKEN = 28, r">{\raggedright\arraybackslash}p{3cm}"
_LATEX_TIED = r"{\,$\approx$}"
_LATEX_UNKNOWN = r"{\,$\pm$\,--}"  # interval
_SIUNITX = (
    r"\sisetup{separate-uncertainty, table-align-uncertainty=false, detect-weight, retain-zero-uncertainty, "
    rf"table-align-text-post=false, table-space-text-post={_LATEX_TIED}}}"
)


def rounded_frame(
    rows: Iterable[Mapping[str, Any]], columns: list[str] | None = None
) -> "pd.DataFrame":
    """Return rows as a table for a CSV file: floats with four decimals, other values as they are."""
    import pandas as pd

    rounded = []
    for row in rows:
        cells = dict(row)
        for name, value in row.items():
            if isinstance(value, float):
                cells[name] = round(value, _CSV_DECIMALS)
        rounded.append(cells)
    return pd.DataFrame(rounded, columns=columns, dtype=object)


def csv_text(rows: Sequence[Mapping[str, Any]], decimals: int = _CSV_DECIMALS) -> str:
    """Return rows as CSV: floats with a few decimals; the cells of missing values and of those not finite are empty.

    The columns are in the order of their first occurrence.
    """
    names = dict[str, None]()
    for row in rows:
        names |= dict.fromkeys(row)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_csv_cell(row.get(name), decimals) for name in names])
    return text.getvalue()


def _csv_cell(value: object, decimals: int) -> object:
    if not isinstance(value, float):
        return guard_cell(value)
    return round(float(value), decimals) if math.isfinite(value) else None


def with_bounds(name: str, number: Estimate | None) -> dict[str, float | None]:
    """Return the cells of a number and its interval in a CSV file."""
    return dict(zip((name, f"{name}_lo", f"{name}_hi"), number or (None, None, None), strict=True))


class Stressed(str):
    """A cell that is the best of its column: bold, or starred on the terminal."""


class Tied(str):
    """A cell that is not distinguishable from its reference, marked with `TIED`."""


class Struck(str):
    """A cell that no longer counts: struck through where that is possible."""


class _Marks(NamedTuple):
    """Text before and after a stressed cell, after a tied one, and around a struck one."""

    start: str
    end: str
    tied: str
    struck: str

    def put(self, cell: str) -> str:
        if isinstance(cell, Struck):
            return f"{self.struck}{cell}{self.struck}"
        if isinstance(cell, Stressed):
            return f"{self.start}{cell}{self.end}"
        return f"{cell}{self.tied}" if isinstance(cell, Tied) else cell


_TERMINAL_MARKS = _Marks("*", "", TIED, "")
_MARKDOWN_MARKS = _Marks("**", "**", f" {TIED}", "~~")


@dataclass(frozen=True)
class Block:
    """Rows under a heading."""

    heading: str  # empty if the rows continue the block before
    notes: tuple[str, ...]  # lines between heading and rows
    columns: tuple[str, ...]  # names; line breaks are used on the terminal only
    align: str  # "l" or "r" for each column. On the terminal, cells of "l" are broken where room is scarce.
    rows: Sequence[Sequence[str]]  # cells; as many as columns
    # a heading over each column in LaTeX; neighbours with the same one share it. Empty: none.
    groups: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # of the columns after `--columns`; empty: none
    # columns that the terminal leaves out where room is scarce, the least important first
    optional: tuple[str, ...] = ()
    tied: str = "not distinguishable from it"  # the meaning of `TIED`
    footnotes: tuple[str, ...] = ()  # lines below the rows
    private: str = ""  # a part of the heading that a caption lacks

    def legend(self, best: str) -> str:
        """Explain the marks of the cells; empty if there are none. `best` is how the best cells look."""
        # Only marks that occur are explained
        marks: set[type] = set()
        for row in self.rows:
            marks.update(map(type, row))
        texts = [f"{best} best of its column"] if Stressed in marks else []
        texts += [f"{TIED} {self.tied}"] if Tied in marks else []
        return f"{'; '.join(texts)}." if texts else ""

    def map_cells(self, change: Callable[[str, int], str]) -> "Block":
        """Return the block with changed cells, which keep their marks; `change` gets a cell and its column's number."""
        rows = []
        for row in self.rows:
            rows.append([type(cell)(change(cell, index)) for index, cell in enumerate(row)])
        return replace(self, rows=rows)

    def select(self, indices: Sequence[int]) -> "Block":
        """Return the block with the columns that have these numbers."""
        rows = []
        for row in self.rows:
            rows.append([row[index] for index in indices])
        return replace(
            self,
            columns=tuple(self.columns[index] for index in indices),
            align="".join(self.align[index] for index in indices),
            rows=rows,
            groups=tuple(self.groups[index] for index in indices) if self.groups else (),
            names=tuple(self.names[index] for index in indices) if self.names else (),
        )

    def without_empty_columns(self) -> "Block":
        """Return the block without the columns that are empty in all rows."""
        filled: set[int] = set()
        for row in self.rows:
            filled.update(index for index, cell in enumerate(row) if cell)
        return self.select(sorted(filled))


def wrap_text(text: str) -> str:
    """Break a text into lines that fit the terminal."""
    return textwrap.fill(text, min(terminal_width(), _WIDEST_TEXT), break_on_hyphens=False)


def terminal(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks for the terminal, as wide as it is."""
    return "\n\n".join([wrap_text(title), *map(terminal_block, blocks)])


def terminal_block(block: Block) -> str:
    """Render a block for the terminal, as wide as it is."""
    width = terminal_width()
    fitted, left_out = _fit_columns(block, width)
    missing = f"Left out at {width} columns: {', '.join(left_out)}." if left_out else ""
    parts = [*map(wrap_text, (block.heading, *block.notes))]
    parts.append(_draw_text(fitted) if fitted.rows else "")
    parts += map(wrap_text, (fitted.legend("*"), missing, *block.footnotes))
    return "\n".join(part for part in parts if part)


def _fit_columns(block: Block, width: int) -> tuple[Block, list[str]]:
    """Fit a block into so many columns; return it and the names of the columns left out.

    Of the optional columns, the most important ones that fit are kept. Text cells are broken into lines if that is
    necessary.
    """
    block = block.map_cells(lambda cell, _: escape_line(cell))
    # First the columns that must be there, then the optional ones from the most important
    least = _narrowest(block, _COMFORTABLE)
    optional = [block.columns.index(name) for name in block.optional if name in block.columns]
    selected = [index for index in range(len(least)) if index not in optional]
    for index in reversed(optional):
        used = sum(least[other] + _COLUMN_GAP for other in selected)
        if used + least[index] <= width:
            selected.append(index)
    left_out = [on_one_line(block.columns[index]) for index in optional if index not in selected]
    block = block.select(sorted(selected))

    # What is left of the width goes to the columns that need most
    widths, natural = _narrowest(block), _natural(block)
    room = width - sum(widths) - _COLUMN_GAP * (len(widths) - 1)
    while room > 0 and widths != natural:
        missing = [full - least for full, least in zip(natural, widths, strict=True)]
        widths[missing.index(max(missing))] += 1
        room -= 1
    return block.map_cells(lambda cell, index: _broken(cell, widths[index])), left_out


def _natural(block: Block) -> list[int]:
    """Return the width of each column if no cell is broken."""
    widths = []
    for index, name in enumerate(block.columns):
        cells = [name, *(_TERMINAL_MARKS.put(row[index]) for row in block.rows)]
        widths.append(max(map(len, "\n".join(cells).split("\n"))))
    return widths


def on_one_line(name: str) -> str:
    """Return the name of a column without its line breaks."""
    return re.sub(r"(?<=[-_])\n", "", name).replace("\n", " ")


def _narrowest(block: Block, comfortable: int = 0) -> list[int]:
    """Return the least width of each column: of a text, that of its longest piece, or `comfortable` if it is longer."""
    least = _natural(block)
    for index, letter in enumerate(block.align):
        if letter == "l":
            text = " ".join(row[index] for row in block.rows)
            pieces = [len(piece.rstrip()) for piece in _PIECE.findall(text)]
            heading = max(map(len, block.columns[index].split("\n")))
            narrow = max(heading, min(_WIDEST_PIECE, max(pieces, default=0)))
            least[index] = max(narrow, min(comfortable, least[index]))
    return least


def _broken(cell: str, width: int) -> str:
    """Break a cell that is wider than its column, if possible after a blank or one of the signs _ / , = @ -."""
    if len(cell) <= width:
        return cell
    lines = [""]
    for piece in _PIECE.findall(cell):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        # A piece without a sign to break after is cut
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines)


def _draw_text(block: Block) -> str:
    """Draw columns and rows with blanks between them; cells may have several lines."""
    rows = [list(map(_TERMINAL_MARKS.put, row)) for row in block.rows]
    lines = [block.columns, SEPARATING_LINE, *rows]
    alignment = [_ALIGNMENT[side] for side in block.align]
    text = tabulate(lines, tablefmt="simple", colalign=alignment, disable_numparse=True)
    return "\n".join(text.split("\n")[1:-1])  # without the lines above and below


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks as Markdown, ending with a line break."""
    parts = [f"# {escape_markdown(title)}"]
    for block in blocks:
        parts.append(f"## {escape_markdown(block.heading)}" if block.heading else "")
        parts += map(escape_markdown, block.notes)
        parts.append(_draw_markdown(block) if block.rows else "")
        parts.append(block.legend("**Bold**"))
        parts += map(escape_markdown, block.footnotes)
    return "\n\n".join(part for part in parts if part) + "\n"


def _draw_markdown(block: Block) -> str:
    escaped = block.map_cells(lambda cell, _: escape_markdown(cell))
    cells = [list(map(_MARKDOWN_MARKS.put, row)) for row in escaped.rows]
    names = [on_one_line(escape_markdown(name)) for name in block.columns]
    alignment = [_ALIGNMENT[side] for side in block.align]
    return tabulate(cells, names, "github", colalign=alignment, disable_numparse=True)


def escape_markdown(text: str) -> str:
    """Escape the special characters of Markdown: by a name where only some readers know a backslash."""
    return _MARKDOWN.sub(lambda match: _MARKDOWN_NAMES.get(match[0], f"\\{match[0]}"), text)


def latex(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks as LaTeX tables, each with a caption and a label to fill in.

    Numbers are aligned by siunitx at their decimal points, with their uncertainties.
    """
    lines = [rf"% {title}; needs \usepackage{{adjustbox,booktabs,longtable,siunitx}}"]
    label = re.sub(r"\W+", "-", title).strip("-").lower()
    for number, block in enumerate(blocks, start=1):
        lines += _latex_table(block, title, f"tab:{label}-{number}")
    return "\n".join(line for line in lines if line) + "\n"


def _latex_table(block: Block, title: str, label: str) -> list[str]:
    """Return the lines of a table; some may be empty."""
    columns = list(zip(*block.rows, strict=True)) or [()] * len(block.columns)
    formats = list(map(_number_format, columns))
    aligned = "".join(map(_latex_alignment, block.align, formats, columns))
    head = [*_group_headings(block.groups), _latex_row(block.columns, formats), r"\midrule"]
    body = [_latex_row(row, formats) for row in block.rows]
    # The reason why a block is not comparable goes below the table
    # A caption has one line, and names no folder
    topic, _, unlike = block.heading.replace(block.private, "").partition("; ")
    heading = f"{title}, {topic}" if title and topic else title or topic
    caption = rf"\caption{{{_escape_latex(heading)}}}\label{{{label}}}"
    texts = [f"{unlike}." if unlike else "", block.legend("Bold:"), *block.notes, *block.footnotes]
    notes = " ".join(_escape_latex(text) for text in texts if text)
    below = rf"\par\smallskip\parbox{{\textwidth}}{{\footnotesize {notes}}}" if notes else ""
    if len(block.rows) > _ROWS_ON_A_PAGE:
        return [
            r"{\footnotesize\setlength{\tabcolsep}{3pt}",
            _SIUNITX,
            rf"\begin{{longtable}}{{{aligned}}}",
            rf"{caption}\\",
            *(r"\toprule", *head, r"\endfirsthead"),
            *(r"\toprule", *head, r"\endhead"),
            *body,
            r"\bottomrule",
            r"\end{longtable}",
            below,
            "}",
        ]
    return [
        r"\begin{table}",
        r"\centering\small",
        caption,
        _SIUNITX,
        r"\begin{adjustbox}{max width=\textwidth}",
        rf"\begin{{tabular}}{{{aligned}}}",
        r"\toprule",
        *head,
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
        below,
        r"\end{table}",
    ]


def _latex_alignment(side: str, number_format: str, cells: Sequence[str]) -> str:
    """Return the specifier of a column: numbers by siunitx, long texts broken into lines."""
    if number_format:
        return f"S[table-format={number_format}]"
    return _LATEX_BROKEN if side == "l" and max(map(len, cells), default=0) > _LONG_CELL else side


def _number_format(cells: Sequence[str]) -> str:
    """Return the `table-format` of siunitx for a column of numbers; empty for other columns."""
    sign, integers, decimals, uncertainty = "", 0, 0, 0
    for cell in filter(None, cells):
        number = _NUMBER_CELL.fullmatch(cell.replace(",", ""))
        if not number:
            return ""
        sign = "-" if number[1] else sign
        integers = max(integers, len(number[2]))
        decimals = max(decimals, len(number[3] or ""))
        error = f"{number[4] or ''}{number[5] or ''}"
        uncertainty = max(uncertainty, len(error.lstrip("0")), len(number[5] or ""))
    if not integers:
        return ""
    # siunitx reserves so many digits on each side of the point
    digits = f"{sign}{integers}.{decimals}" if decimals else f"{sign}{integers}"
    return f"{digits}({uncertainty})" if uncertainty else digits


def _latex_row(cells: Sequence[str], formats: Sequence[str]) -> str:
    texts = []
    for cell, number_format in zip(cells, formats, strict=True):
        number = cell.replace(",", "")
        if number_format and _NUMBER_CELL.fullmatch(number):
            text = number.replace(" ±–", _LATEX_UNKNOWN).replace("±", "+- ").replace("−", "-")
            text = rf"\bfseries {text}" if isinstance(cell, Stressed) else text
        else:
            text = _escape_latex(cell).replace("\n", r"\\")
            text = rf"\shortstack{{{text}}}" if "\n" in cell else text
            text = rf"\textbf{{{text}}}" if isinstance(cell, Stressed) else text
            text = f"{{{text}}}" if number_format and text else text
        texts.append(text + (_LATEX_TIED if isinstance(cell, Tied) else ""))
    return rf"{' & '.join(texts)} \\"


def _group_headings(groups: Sequence[str]) -> list[str]:
    """Return the line of headings over columns and the rules below it; empty if there are none."""
    cells, rules, column = [], [], 1
    for heading, members in groupby(groups):
        width = len(list(members))
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{_escape_latex(heading)}}}")
        if heading:
            rules.append(rf"\cmidrule(lr){{{column}-{column + width - 1}}}")
        column += width
    return [rf"{' & '.join(cells)} \\", " ".join(rules)] if rules else []


def _escape_latex(text: str) -> str:
    """Escape what LaTeX would take for commands, and write signs that are not letters as mathematics."""
    return text.translate(_LATEX)
