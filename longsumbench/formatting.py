r"""Text for people: without secrets and control characters; counts, times and sizes.

Ids, file names, settings and texts may contain control characters, which could move the cursor or hide words. They are
shown as Python writes them: `\x1b`, `\u202e`. Output to stdout is escaped only on a terminal: in a file it is data.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from math import isnan

# C0, DEL, C1; line and paragraph separators; overrides of the writing direction; lone surrogates
_CONTROL_CODES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_FORMULA = re.compile(r"'*[=+\-@]")

_FALLBACK_WIDTH = 100  # columns, where stdout is not a terminal and COLUMNS is not set
_NARROWEST_TERMINAL = 40  # columns

# Characters; a shorter key ("EMPTY", "ollama") is a placeholder, which an answer may contain.
_SHORTEST_KEY = 12
_keys = set[str]()
# A password in an address, a key in its query, a key that a server shortened.
_SECRET = re.compile(
    r"(?<=://)(?:[^\s/@]*:[^\s'\"]*|[^\s/?#@]+)@"
    r"|(?<=[?&#;])[\w.-]*(?:key|token|secret|password|passwd|pwd|sig|signature|auth)=[^\s&#;'\"]+"
    r"|(?<![\w-])(?:[\w-]*(?:\*{3,}|•{3,})[\w-]*|(?:sk|pk|hf|gsk|xai|aiza|key)[\w-]*(?:\.{3}|…)[\w-]+)",
    re.IGNORECASE,
)


def hide_key(key: str) -> None:
    """Let `remove_keys` and `redact` remove a server's key from now on, unless it is a placeholder."""
    if len(key) >= _SHORTEST_KEY:
        _keys.add(key)


def remove_keys(text: str) -> str:
    """Return what a server has answered without the keys that were sent."""
    for key in _keys:
        text = text.replace(key, "<key>")
    return text


def redact(text: str) -> str:
    """Return a message without keys, shortened keys, and passwords in addresses."""
    return _SECRET.sub("<secret>", remove_keys(text))


def escape_line(text: object) -> str:
    """Escape all control characters of a text, line breaks included."""
    return _CONTROL_CODES.sub(lambda match: _escape(match[0]), str(text))


def escape_lines(text: object) -> str:
    """Escape all control characters of a text except line breaks and tabs."""
    return _CONTROL_CODES.sub(
        lambda match: match[0] if match[0] in "\n\t" else _escape(match[0]), str(text)
    )


def guard_cell(value: object) -> object:
    """Return a text that a spreadsheet would take for a formula with an apostrophe before it; other values unchanged.

    `unguard_cell` returns the text again.
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def unguard_cell(text: str) -> str:
    """Return the text that `guard_cell` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def break_command(command: str, width: int) -> str:
    r"""Break a command into lines of at most `width` characters, each but the last with a \ that continues it."""
    if len(command) <= width:
        return command
    quoted = re.sub(
        r"""'[^']*'|"[^"]*\"""", lambda match: match[0].replace(" ", "\0"), command
    )  # stays in one piece
    wrapper = textwrap.TextWrapper(
        width - 2, "", " " * 6, break_long_words=False, break_on_hyphens=False
    )
    return " \\\n".join(wrapper.wrap(quoted)).replace("\0", " ")


def plain_table(
    rows: Sequence[Sequence[object]], headers: Sequence[str] = (), right: Sequence[str] = ()
) -> str:
    """Return columns as wide as the terminal, some aligned on the right: the widest but the first are broken.

    In a pipe none is broken.
    """
    from tabulate import tabulate

    widened = [f"{header}  " for header in headers]  # by tabulate
    cells = [list(map(str, row)) for row in (widened, *rows) if row]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = shutil.get_terminal_size((sys.maxsize, 24)).columns - 2 * (len(widths) - 1)
    while sum(widths) > room and max(widths[1:]) > 8:
        widths[widths.index(max(widths[1:]), 1)] -= 1
    aligned = ["right" if header in right else "left" for header in headers] or None
    broken = []
    for row in cells:
        columns = zip(row, widths, strict=True)
        broken.append([textwrap.fill(cell, max(1, width)) for cell, width in columns])
    heads = "firstrow" if headers else ()
    return tabulate(broken, heads, "plain", disable_numparse=True, colalign=aligned)


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 run", "2,000 runs"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_examples(number: int, groups: int | None, noun: str = "example") -> str:
    """Return "281 examples of 35 texts", or "281 examples" if each has its own text (also with `groups` None)."""
    examples = format_count(number, noun)
    return (
        f"{examples} of {format_count(groups, 'text')}" if groups and groups < number else examples
    )


def print_text(*texts: object) -> None:
    """Print texts to stdout, each on its own lines."""
    for text in texts:
        print(for_stdout(text))


def for_stdout(text: object) -> str:
    """Escape a text if stdout is a terminal."""
    return escape_lines(text) if sys.stdout.isatty() else str(text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def format_duration(seconds: float) -> str:
    """Format a time for people in its two largest units: "42 s", "2 min 10 s", "3 h 5 min"."""
    rest = max(0, round(seconds))
    parts = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def describe_work(texts: int, tokens: int = 0, seconds: float | None = None) -> str:
    """Return how much was done, and how long it took: "40 texts, 312,000 tokens, 2 min 10 s"."""
    parts = [format_count(texts, "text")]
    if tokens:
        parts.append(format_count(tokens, "token"))
    if seconds is not None:
        parts.append(format_duration(seconds))
    return ", ".join(parts)


def format_interval(low: float, high: float, spec: str = "+.1f") -> str:
    """Return an interval as text: "-0.4 to +1.2"; "–" if a bound is NaN."""
    return "–" if isnan(low) or isnan(high) else f"{low:{spec}} to {high:{spec}}"


def describe_interval(low: float, high: float, confidence: float, spec: str = "+.1f") -> str:
    """Return " (97.5 % interval -0.4 to +1.2)"; empty if a bound is NaN."""
    bounds = format_interval(low, high, spec)
    return "" if bounds == "–" else f" ({confidence:.4g} % interval {bounds})"


def format_p(p: float | None) -> str:
    """Return a p-value as text; the number of resamples does not resolve values below 0.001. None: empty."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def percent(part: float, total: float | None) -> float | None:
    """Return `part` in percent of `total`; None if `total` is 0 or None."""
    return 100.0 * part / total if total else None


def format_bytes(size: float) -> str:
    """Format a number of bytes for people, in decimal units: "0.2 MB", "1.4 GB"."""
    if 0 < size < 1e5:
        return "< 0.1 MB"
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def format_plain_value(value: object) -> str:
    """Return a value as it is typed on the command line."""
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


def terminal_width() -> int:
    """Return the number of columns of the terminal (COLUMNS, if it is set); 100 if stdout is not a terminal."""
    return max(_NARROWEST_TERMINAL, shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns)
