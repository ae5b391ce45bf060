"""Tables as text: blocks of rows under headings, for the terminal, in Markdown and in LaTeX.

One rule of marks holds in all of them: the best value of a column is bold (starred on the terminal), and ≈ follows a
value that is not distinguishable from it. The legend below a table explains the marks that it has.
"""

import csv
import io
import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

from longsumbench.formatting import escape_line, guard_cell
from longsumbench.metrics.aggregate import Estimate

if TYPE_CHECKING:
    import pandas as pd

_FALLBACK_WIDTH = 100  # columns, where stdout is not a terminal and COLUMNS is not set
_NARROWEST_TERMINAL, _WIDEST_TEXT = 40, 120  # columns
_COLUMN_GAP = 2  # blanks between columns on the terminal
_WIDEST_PIECE = 16  # characters of a name that are kept on one line
_COMFORTABLE = 16  # width of a text column for which optional columns are left out
TIED = "≈"  # after a cell that is not distinguishable from the best of its column
_ROWS_ON_A_PAGE = 40  # longer LaTeX tables may break across pages
_MARKDOWN = re.compile(r"[\\|<`*_\[~]|&(?=#?\w+;)")  # special characters of Markdown
_MARKDOWN_NAMES = {"<": "&lt;", "&": "&amp;", "~": "&#126;"}
_PIECE = re.compile(
    r"[^\s_/,=@-]*[\s_/,=@-]*"
)  # a word with the signs after it, where a line may be broken
_CSV_DECIMALS = 4  # of numbers in a CSV file
_NUMBER_CELL = re.compile(
    r"([-+−]?)(\d+)(?:\.(\d+))?(?: ±(\d+)(?:\.(\d+))?)?"
)  # "21.3", "-0.5", "21.3 ±1.5"
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{
            "<": r"\ensuremath{<}",
            ">": r"\ensuremath{>}",
            "±": r"\ensuremath{\pm}",
            "×": r"\ensuremath{\times}",
        },
        **{
            "≥": r"\ensuremath{\ge}",
            TIED: r"\ensuremath{\approx}",
            "→": r"\ensuremath{\to}",
            "−": r"\ensuremath{-}",
        },
    }
)
_LONG_CELL, _LATEX_BROKEN = (
    28,
    r">{\raggedright\arraybackslash}p{3cm}",
)  # columns with longer cells are broken
_LATEX_TIED = r"{\,$\approx$}"
_SIUNITX = (
    r"\sisetup{separate-uncertainty, table-align-uncertainty=false, detect-weight, retain-zero-uncertainty, "
    rf"table-align-text-post=false, table-space-text-post={_LATEX_TIED}}}"
)


def rounded_frame(
    rows: Iterable[Mapping[str, Any]], columns: list[str] | None = None
) -> "pd.DataFrame":
    """Return rows as a table for a CSV file: floats with four decimals, other values as they are."""
    import pandas as pd

    rounded = [
        {k: round(v, _CSV_DECIMALS) if isinstance(v, float) else v for k, v in row.items()}
        for row in rows
    ]
    return pd.DataFrame(rounded, columns=columns, dtype=object)


def csv_text(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    decimals: int = _CSV_DECIMALS,
) -> str:
    """Return rows as CSV: floats with a few decimals; the cells of missing values and of those not finite are empty.

    Default columns: all, in the order of their first occurrence.
    """
    names = list(columns or dict.fromkeys(name for row in rows for name in row))
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


class _Marks(NamedTuple):
    """Text before and after a stressed cell, and after a tied one."""

    start: str
    end: str
    tied: str

    def put(self, cell: str) -> str:
        if isinstance(cell, Stressed):
            return f"{self.start}{cell}{self.end}"
        return f"{cell}{self.tied}" if isinstance(cell, Tied) else cell


_TERMINAL_MARKS, _MARKDOWN_MARKS = _Marks("*", "", TIED), _Marks("**", "**", f" {TIED}")


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
    # columns that the terminal leaves out where room is scarce, the least important first
    optional: tuple[str, ...] = ()
    tied: str = "not distinguishable from it"  # the meaning of `TIED`
    footnotes: tuple[str, ...] = ()  # lines below the rows

    def legend(self, best: str) -> str:
        """Explain the marks of the cells; empty if there are none. `best` is how the best cells look."""
        cells = [cell for row in self.rows for cell in row]
        texts = {f"{best} best of its column": Stressed, f"{TIED} {self.tied}": Tied}
        explanations = [
            text for text, mark in texts.items() if any(isinstance(cell, mark) for cell in cells)
        ]
        return f"{'; '.join(explanations)}." if explanations else ""

    def select(self, places: Sequence[int]) -> "Block":
        """Return the block with the columns that have these numbers."""
        return replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            align="".join(self.align[place] for place in places),
            rows=[[row[place] for place in places] for row in self.rows],
            groups=tuple(self.groups[place] for place in places) if self.groups else (),
        )

    def without_empty_columns(self) -> "Block":
        """Return the block without the columns that are empty in all rows."""
        return self.select(
            [place for place in range(len(self.columns)) if any(row[place] for row in self.rows)]
        )


def terminal_width() -> int:
    """Return the number of columns of the terminal (COLUMNS, if it is set); 100 if stdout is not a terminal."""
    return max(_NARROWEST_TERMINAL, shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns)


def wrap_text(text: str) -> str:
    """Break a text into lines that fit the terminal."""
    return textwrap.fill(text, min(terminal_width(), _WIDEST_TEXT), break_on_hyphens=False)


def terminal(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks for the terminal, as wide as it is."""
    return "\n\n".join([wrap_text(title), *map(terminal_block, blocks)])


def terminal_block(block: Block) -> str:
    """Render a block for the terminal, as wide as it is."""
    width = terminal_width()
    fitted, left_out = _fitted(block, width)
    table = _draw_text(fitted) if fitted.rows else ""
    missing = f"Left out at {width} columns: {', '.join(left_out)}." if left_out else ""
    above, below = (
        [wrap_text(line) for line in lines if line]
        for lines in (
            (block.heading, *block.notes),
            (fitted.legend("*"), missing, *block.footnotes),
        )
    )
    return "\n".join(part for part in (*above, table, *below) if part)


def _fitted(block: Block, width: int) -> tuple[Block, list[str]]:
    """Fit a block into so many columns; return it and the names of the columns left out.

    Of the optional columns, the most important ones that fit are kept. Text cells are broken into lines if that is
    necessary.
    """
    block = replace(
        block, rows=[[type(cell)(escape_line(cell)) for cell in row] for row in block.rows]
    )
    least, optional = (
        _narrowest(block, _COMFORTABLE),
        [name for name in block.optional if name in block.columns],
    )
    selected = {place for place, name in enumerate(block.columns) if name not in optional}
    for place in map(block.columns.index, reversed(optional)):
        if (
            sum(least[column] for column in (*selected, place)) + _COLUMN_GAP * len(selected)
            <= width
        ):
            selected.add(place)
    left_out = [on_one_line(name) for name in optional if block.columns.index(name) not in selected]
    block = block.select(sorted(selected))
    widths = _narrowest(block)
    room = width - sum(widths) - _COLUMN_GAP * (len(widths) - 1)
    missing = [natural - width for natural, width in zip(_natural(block), widths, strict=True)]
    for _ in range(min(room, sum(missing))):
        neediest = missing.index(max(missing))
        widths[neediest] += 1
        missing[neediest] -= 1
    rows = [
        [type(cell)(_broken(cell, limit)) for cell, limit in zip(row, widths, strict=True)]
        for row in block.rows
    ]
    return replace(block, rows=rows), left_out


def _natural(block: Block) -> list[int]:
    """Return the width of each column if no cell is broken."""
    cells = zip(
        block.columns,
        *([_TERMINAL_MARKS.put(cell) for cell in row] for row in block.rows),
        strict=True,
    )
    return [max(len(line) for cell in column for line in cell.split("\n")) for column in cells]


def on_one_line(name: str) -> str:
    """Return the name of a column without its line breaks."""
    return re.sub(r"(?<=[-_])\n", "", name).replace("\n", " ")


def _narrowest(block: Block, comfortable: int = 0) -> list[int]:
    """Return the least width of each column: of a text, that of its longest piece, or `comfortable` if it is longer."""
    least = _natural(block)
    for place, letter in enumerate(block.align):
        if letter == "l":
            pieces = [
                len(piece.rstrip()) for row in block.rows for piece in _PIECE.findall(row[place])
            ]
            heading = max(map(len, block.columns[place].split("\n")))
            narrow = max(heading, min(_WIDEST_PIECE, max(pieces, default=0)))
            least[place] = max(narrow, min(comfortable, least[place]))
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
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines)


def _draw_text(block: Block) -> str:
    """Draw columns and rows with blanks between them; cells may have several lines."""
    lines = [[cell.split("\n") for cell in block.columns]]
    lines += [[_TERMINAL_MARKS.put(cell).split("\n") for cell in row] for row in block.rows]
    widths = [
        max(len(line) for cell in column for line in cell) for column in zip(*lines, strict=True)
    ]
    text_lines = []
    for cells in lines:
        for number in range(max(map(len, cells))):
            texts = [cell[number] if number < len(cell) else "" for cell in cells]
            padded = zip(texts, widths, block.align, strict=True)
            text_lines.append(
                "  ".join(
                    text.rjust(n) if side == "r" else text.ljust(n) for text, n, side in padded
                ).rstrip()
            )
    height = max(map(len, lines[0]))
    return "\n".join(
        [*text_lines[:height], "  ".join("-" * width for width in widths), *text_lines[height:]]
    )


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks as Markdown, ending with a line break."""
    parts = [f"# {escape_markdown(title)}"]
    for block in map(_escaped_for_markdown, blocks):
        table = _draw_markdown(block) if block.rows else ""
        heading = block.heading and f"## {block.heading}"
        texts = (heading, *block.notes, table, block.legend("**Bold**"), *block.footnotes)
        parts += [part for part in texts if part]
    return "\n\n".join(parts) + "\n"


def _escaped_for_markdown(block: Block) -> Block:
    notes, footnotes, columns = (
        tuple(map(escape_markdown, texts))
        for texts in (block.notes, block.footnotes, block.columns)
    )
    rows = [[type(cell)(escape_markdown(cell)) for cell in row] for row in block.rows]
    heading = escape_markdown(block.heading)
    return replace(
        block, heading=heading, notes=notes, columns=columns, rows=rows, footnotes=footnotes
    )


def escape_markdown(text: str) -> str:
    """Escape the special characters of Markdown: by a name where only some readers know a backslash."""
    return _MARKDOWN.sub(lambda match: _MARKDOWN_NAMES.get(match[0], f"\\{match[0]}"), text)


def _draw_markdown(block: Block) -> str:
    cells = [[_MARKDOWN_MARKS.put(cell) for cell in row] for row in block.rows]
    names = [on_one_line(name) for name in block.columns]
    alignment = [{"l": "left", "r": "right"}[letter] for letter in block.align]
    return tabulate(cells, names, "github", colalign=alignment, disable_numparse=True)


def latex(title: str, blocks: Sequence[Block]) -> str:
    """Render blocks as LaTeX tables, each with a caption and a label to fill in.

    Numbers are aligned by siunitx at their decimal points, with their uncertainties.
    """
    packages = r"\usepackage{adjustbox,booktabs,longtable,siunitx}"
    label = re.sub(r"\W+", "-", title).strip("-").lower()
    tables = [
        _latex_table(block, title, f"tab:{label}-{number}")
        for number, block in enumerate(blocks, start=1)
    ]
    return "\n".join([f"% {title}; needs {packages}", *tables]) + "\n"


def _latex_table(block: Block, title: str, label: str) -> str:
    columns = list(zip(*block.rows, strict=True)) or [()] * len(block.columns)
    formats = [_number_format(cells) for cells in columns]
    aligned = "".join(map(_latex_alignment, block.align, formats, columns))
    rules = [
        r"\toprule",
        *_group_headings(block.groups),
        _latex_row(block.columns, formats),
        r"\midrule",
    ]
    body = [_latex_row(row, formats) for row in block.rows]
    topic, _, unlike = block.heading.partition("; ")  # a caption has one line
    heading = ", ".join(text for text in (title, topic) if text)
    caption = rf"\caption{{{_escape_latex(heading)}}}\label{{{label}}}"
    notes = " ".join(
        _escape_latex(note)
        for note in (unlike and f"{unlike}.", block.legend("Bold:"), *block.notes, *block.footnotes)
        if note
    )
    below = rf"\par\smallskip\parbox{{\textwidth}}{{\footnotesize {notes}}}" if notes else ""
    if len(block.rows) > _ROWS_ON_A_PAGE:
        begin = [
            r"{\footnotesize\setlength{\tabcolsep}{3pt}",
            _SIUNITX,
            rf"\begin{{longtable}}{{{aligned}}}",
        ]
        begin += [rf"{caption}\\", *rules, r"\endfirsthead", *rules, r"\endhead"]
        lines = [*begin, *body, r"\bottomrule", r"\end{longtable}", below, "}"]
    else:
        begin = [r"\begin{table}", r"\centering\small", caption, _SIUNITX]
        begin += [
            r"\begin{adjustbox}{max width=\textwidth}",
            rf"\begin{{tabular}}{{{aligned}}}",
            *rules,
        ]
        lines = [
            *begin,
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{adjustbox}",
            below,
            r"\end{table}",
        ]
    return "\n".join(line for line in lines if line)


def _latex_alignment(side: str, number_format: str, cells: Sequence[str]) -> str:
    """Return the specifier of a column: numbers by siunitx, long texts broken into lines."""
    if number_format:
        return f"S[table-format={number_format}]"
    return _LATEX_BROKEN if side == "l" and max(map(len, cells), default=0) > _LONG_CELL else side


def _number_format(cells: Sequence[str]) -> str:
    """Return the `table-format` of siunitx for a column of numbers; empty for other columns."""
    matches = [_NUMBER_CELL.fullmatch(cell.replace(",", "")) for cell in cells if cell]
    if not matches or None in matches:
        return ""
    sign, integers, fractions, error, error_after = (
        [number[part] or "" for number in matches if number] for part in range(1, 6)
    )
    decimals = max(map(len, fractions))
    uncertainty = max(
        len(integer) + len(fraction) if integer.strip("0") else len(fraction)
        for integer, fraction in zip(error, error_after, strict=True)
    )
    number = f"{'-' if any(sign) else ''}{max(map(len, integers))}" + (
        f".{decimals}" if decimals else ""
    )
    return number + (f"({uncertainty})" if uncertainty else "")


def _latex_row(cells: Sequence[str], formats: Sequence[str]) -> str:
    texts = []
    for cell, number in zip(cells, formats, strict=True):
        if number and _NUMBER_CELL.fullmatch(plain := cell.replace(",", "")):
            text = plain.replace("±", "+- ").replace("−", "-")
            text = rf"\bfseries {text}" if isinstance(cell, Stressed) else text
        else:
            text = _escape_latex(cell).replace("\n", r"\\")
            text = rf"\shortstack{{{text}}}" if "\n" in cell else text
            text = rf"\textbf{{{text}}}" if isinstance(cell, Stressed) else text
            text = f"{{{text}}}" if number and text else text
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
