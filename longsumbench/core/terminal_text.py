r"""Control codes of terminals in outputs: what a screen shows is what counts.

    "loading\rA plan.\x1b[1m Agreed.\x1b[0m"  --remove-->  "A plan. Agreed."

Programs write them for spinners, colours and the wrap of words. `ControlCodes` is the door: it counts the outputs.
"""

import logging
import re
from unicodedata import east_asian_width

from longsumbench.formatting import format_count

_log = logging.getLogger(__name__)

_WIDTH = 200  # columns of the screen, unless a line is longer
# With a digit or a known end: texts in a wrong encoding have the same character.
_SHORT_CSI = re.compile(r"\x9b(?=[0-?]+[@-~]|[mK])")
# Half a word at the end of a line is erased, and written again on the next one.
_WRAP = re.compile(r"(\x1b\[\d*D\x1b\[0?K)\r?\n")
# A link or a title; a move; another escape; a move of one character; what has no effect; text.
_PIECE = re.compile(
    r"\x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[<-?]?(\d{0,4})[ -?]*([@-~])|\x1b[ -/]*[0-~]?|([\b\r])"
    r"|[\x00-\x07\x0e-\x1a\x7f]|([^\x00-\x08\r\x0e-\x1b\x7f]+)"
)
_CODE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]|\r(?!\r*(?:\n|\Z))")


class ControlCodes:
    """Removes control codes from outputs, one after the other, and counts the outputs that had some.

    Moves to other lines have no effect. A line break of a word wrap is none.
    """

    def __init__(self) -> None:
        self._ids = dict[str, None]()

    def remove(self, name: str, output: str) -> str:
        """Return what a screen shows of an output; `name` is the id of its example."""
        text = _SHORT_CSI.sub("\x1b[", output)
        if not _CODE.search(text):
            return output
        self._ids[name] = None
        lines = _WRAP.sub(r"\1", text).split("\n")
        return "\n".join(map(_show_line, lines)).strip()

    def report(self) -> None:
        """Warn of the outputs that had control codes."""
        if self._ids:
            count = format_count(len(self._ids), "output")
            _log.warning(
                f"{count} had control codes of a terminal, first '{next(iter(self._ids))}': scored is what a screen shows"
            )


def _show_line(line: str) -> str:
    """Return what a screen shows of a line."""
    cells: list[str] = []
    column = 0
    for match in _PIECE.finditer(line):
        digits, move, code, text = match.groups()
        number = int(digits or 0)
        if text:
            cells += " " * (column - len(cells))
            filled = _fill_cells(text)
            cells[column : column + len(filled)] = filled
            column += len(filled)
        elif move in ("J", "K"):
            erased = slice(0 if number else column, column + 1 if number == 1 else None)
            cells[erased] = " " * len(cells[erased])
        else:
            steps = max(1, number)
            columns = {"\r": 0, "G": steps - 1, "C": column + steps, "D": column - steps}
            columns["\b"] = column - 1
            column = columns.get(move or code, column)
            column = min(max(0, column), max(_WIDTH, len(cells)))
    return "".join(cells).rstrip()


def _fill_cells(text: str) -> list[str]:
    """Return the cells of a screen that a text fills: a wide character has two."""
    cells = []
    for character in text:
        cells.append(character)
        if east_asian_width(character) in ("W", "F"):
            cells.append("")
    return cells
