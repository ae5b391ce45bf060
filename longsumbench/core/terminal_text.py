r"""Control codes of terminals in outputs: what a screen shows is what counts.

    "loading\rA plan.\x1b[1m Agreed.\x1b[0m"  --remove_control_codes-->  "A plan. Agreed."

Programs write them for spinners, colours and the wrap of words. Moves by several lines have no effect.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

from longsumbench.formatting import format_count
from longsumbench.sentences import unify_line_breaks

_log = logging.getLogger(__name__)

# What is replaced, in this order, by what.
_REPLACED: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # The short form of an escape; texts in a wrong encoding have the same character.
    (r"\x9b(?=[0-?]+[@-~]|[mK])", "\x1b["),
    # A screen that is cleared, or a second screen that is left, before other text.
    (r"(?s)\A.*\x1b(?:c|\[(?:H\x1b\[0?|[23])J|\[\?(?:47|1049)l)(?=(?:\x1b\[H)?[^\x1b]*\w)", ""),
    # What is erased when the cursor is back where its place was stored, or on the line before.
    (r"\x1b(?:7|\[s)[^\x1b]*\x1b(?:8|\[u)", ""),
    (r"(?<![^\n])[^\n]*\n[^\n]*\x1b\[1?[AF](?=\r|\x1b\[(?:[02]?K|0?J|[01]?G))", ""),
    # Links and titles; colours and modes; fonts; codes that show nothing.
    (
        r"\x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[hlm]|\x1b[ -/]+[0-~]|[\x00-\x07\x0e-\x1a\x7f]",
        "",
    ),
    # Half a word at the end of a line, which is erased and written again on the next one.
    (r"(?<!\S)\S*\x1b\[\d*D\x1b\[0?K\r?\n", ""),
    # Back to the beginning of the line, and what is overwritten there; back by some characters.
    (r"\x1b\[[01]?G", "\r"),
    (r"(?<![^\n])[^\n]*\x1b\[2K", ""),
    (r"(?<![^\n])[^\n]*\r(?=[^\r\n])", ""),
    (r"\x1b\[(\d{0,3})D", lambda move: "\b" * int(move[1] or 1)),
    (r"(?<![^\n\b])([^\n\b]*)(\x08+)", lambda back: back[1][: -len(back[2])]),
    (r"\x1b\[\d*C", " "),
    (r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b.?|\x08", ""),
)
# A line feed, or a control code that only terminals know.
_ESCAPE = re.compile(r"[\n\x08\x1b\x9b]")
_SENTENCE_MARKS = (".", "!", "?", "。")


def remove_control_codes(outputs: Iterable[tuple[str, str | tuple[str, ...]]]) -> Iterator[Any]:
    """Yield what a screen shows of outputs, each with the id of its example; then warn if some had control codes.

    An output may be a list of sentences, and then it stays one.
    """
    ids = []
    for name, output in outputs:
        parts = [output] if isinstance(output, str) else output
        lines = list(map(_with_line_feeds, parts))
        shown = list(map(show_text, lines))
        if shown != lines:
            ids.append(name)
        yield shown[0] if isinstance(output, str) else tuple(shown)
    if ids:
        count = format_count(len(ids), "output")
        _log.warning(
            f"{count} had control codes of a terminal, first '{ids[0]}': scored is what a screen shows"
        )


def _with_line_feeds(text: str) -> str:
    r"""Return a text whose only line breaks are `\r`, as on old Macs, with line feeds.

    Other such texts are overwritten lines: none ends a sentence, and each is at least as long as the one before.
    """
    if _ESCAPE.search(text.strip()):
        return text
    lines = map(str.rstrip, text.strip().split("\r"))
    for line, next_line in pairwise(lines):
        is_sentence = line.endswith(_SENTENCE_MARKS) and not line.endswith("...")
        if is_sentence or len(line) > len(next_line):
            return unify_line_breaks(text)
    return text


def show_text(text: str) -> str:
    """Return what a screen shows of a text."""
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text)
    return text
