"""Docstrings as text: headings, paragraphs and list items, without markup, code, prompts and tables.

Reads Python's three styles line by line: numpy's underlined headings, Google's "Args:", reStructuredText's ":param x:".
Text that is not prose is dropped, but its place remains as an event, because a summary ends there.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

HEADING, PARAGRAPH, ITEM, CODE = "heading", "paragraph", "item", "code"
_KNOWN_HEADINGS = re.compile(
    r"(?:args|arguments|attributes|called by|examples?|inputs?|keyword (?:args|arguments)|kwargs|methods|notes?"
    r"|outputs?|other parameters|param(?:eter)?s|raises|references|returns?|see also|shape|todo|tips?|usage|warnings?"
    r"|warns|yields?|variables|functions|classes|exceptions|constants|limitations|motivation|algorithm|details"
    r"|options)\s*:",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"\s*([-=~^\"*#+])\1{2,}\s*")
_TABLE_RULE = re.compile(r"\s*(?:={2,}(?:\s+={2,})+|\+[-=+]{3,}|-{2,}(?:\s+-{2,})+|[┌╞├└╒].*)\s*")
_PROMPT = re.compile(r"\s*(?:>>>|In \[\d+\]:|\$ )")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_DIRECTIVE = re.compile(r"(\s*)\.\. +(?:([\w:+-]+?)\s*::(?: +(.*))?$)?")
_FIELD = re.compile(
    r"\s*:(param|parameter|arg|key|keyword|raises?|except|returns?|ivar|cvar|var)\b([^:]*):\s*(.*)"
)
_OTHER_FIELD = re.compile(r"\s*[:@][a-z]\w*(?: [^:]*)?:(?:\s|$)")
_BULLET = re.compile(r"\s*(?:[-*+•] +|\(?\d{1,2}[.)] +|\(?[a-z]\) +)(?=\S)")
_NUMPY_ITEM = re.compile(r"\s*(\*{0,2}\w[\w., *`/-]*?)\s+:(?:\s+.*|$)")
_GOOGLE_ITEM = re.compile(
    r"\s*(?:- +)?([*`]{0,2}\w[\w., *`/-]*?)\s*(?:[(\[].*[)\]])?\s*:(?:\s+(.*)|$)"
)
_CODE_START = re.compile(
    r"\s*(?:import |from \w+ import|def |class |@|#|\$|%|>|<|\{|\[|\(|print\()"
)
_PROSE_DIRECTIVES = frozenset(
    ("note", "warning", "tip", "important", "hint", "attention", "caution", "admonition", "topic")
)
_TYPED = frozenset(("parameters", "other parameters", "attributes", "returns", "yields"))
_FIELD_HEADINGS = {
    "ra": "Raises",
    "ex": "Raises",
    "re": "Returns",
    "iv": "Attributes",
    "cv": "Attributes",
}
_INLINE = re.compile(
    r":math:`(?P<math>[^`]*)`"
    r"|(?<![\w`]):(?:[a-z]+:){1,2}`[~!]?(?P<role>[^`]*)`"  # :class:`~a.B`
    r"|``(?P<literal>[^`]+?)``"
    r"|`(?P<link>[^`<]+?)\s*<[^`>]+>`_{0,2}"  # `text <target>`_
    r"|`[~!]?(?P<plain>[^`]+)`_{0,2}"
    r"|\[(?P<markdown>[^\]]+)\]\([^)\s]+\)"
    r"|(?<![\w*])\*\*?(?P<strong>[^\s*](?:[^*]*[^\s*])?)\*\*?(?![\w*])"
    r"|\s?\[#?\w{1,4}\]_+(?P<footnote>)"
    r"|</?[A-Za-z][^<>]{0,60}>(?P<tag>)"
)
_QUALIFIED = re.compile(r"(?:\w+\.)+(\w+)")


class Event(NamedTuple):
    """A piece of a docstring: a heading, a paragraph, a list item, or code. Code has no text."""

    kind: str
    text: str = ""


def parse_docstring(docstring: str) -> Iterator[Event]:
    """Yield the pieces of a docstring in reading order.

    The docstring has no common indentation (`inspect.cleandoc`).
    """
    lines = _Lines(docstring.expandtabs().split("\n"))
    while lines.left():
        for event in lines.take():
            text = strip_markup(event.text)
            if event.kind == CODE or text:
                yield Event(event.kind, text)


class _Lines:
    """The lines of a docstring and the current position. Each `take` advances by at least one line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        # indentation of the current section's text
        self.base = 0
        # in this section, "x : something" gives a type
        self.typed = False

    def left(self) -> bool:
        return self.at < len(self.lines)

    def take(self) -> Iterator[Event]:
        """Read the next piece and yield its events."""
        line = self.lines[self.at]
        if not line.strip() or _UNDERLINE.fullmatch(line):
            self.at += 1
        elif self._skip_code(line):
            yield Event(CODE)
        elif heading := self._heading():
            yield heading
        elif directive := _DIRECTIVE.match(line):
            yield from self._directive(directive)
        elif field := _FIELD.match(line):
            yield from self._field(field)
        elif _OTHER_FIELD.match(line):
            self._skip_indented(_indent(line))
        else:
            yield from self._text(line)

    def _skip_code(self, line: str) -> bool:
        """Skip the code, prompt or table that begins at this line; return False if there is none."""
        if _FENCE.match(line):
            self.at += 1
            self._skip_until(lambda line: bool(_FENCE.match(line)))
            self.at += 1
        elif _PROMPT.match(line) or line.lstrip().startswith(("|", "│")):
            self._skip_until(lambda line: not line.strip())
        elif _TABLE_RULE.fullmatch(line):  # a table ends with a rule before a blank line or the end
            self.at += 1
            self._skip_until(
                lambda line: bool(_TABLE_RULE.fullmatch(line)) and not self._peek(1).strip()
            )
            self.at += 1
        else:
            return False
        return True

    def _skip_until(self, ends: Callable[[str], bool]) -> None:
        while self.left() and not ends(self.lines[self.at]):
            self.at += 1

    def _heading(self) -> Event | None:
        line = self.lines[self.at]
        next_line = self._peek(1)
        if (
            next_line.strip()
            and _UNDERLINE.fullmatch(next_line)
            and 2 * len(next_line.strip()) >= len(line.strip())
        ):
            self.at += 2
        elif _KNOWN_HEADINGS.fullmatch(line.strip()):
            self.at += 1
        else:
            return None
        self._skip_until(lambda line: bool(line.strip()))
        name = line.strip().rstrip(":")
        self.base, self.typed = _indent(self._peek(0)), name.lower() in _TYPED
        return Event(HEADING, name)

    def _directive(self, match: re.Match[str]) -> Iterator[Event]:
        """Skip the line of a directive, and its content unless that is prose."""
        name, argument = match[2], match[3]
        if name in _PROSE_DIRECTIVES:
            self.at += 1
            if argument and name not in ("admonition", "topic"):
                depth = max(len(match[1]), _indent(self._peek(0)))
                self.lines.insert(self.at, " " * depth + argument)
            return
        self._skip_indented(len(match[1]))
        if name is not None and not name.startswith(("version", "deprecated", "_")):
            yield Event(CODE)

    def _field(self, match: re.Match[str]) -> Iterator[Event]:
        heading = _FIELD_HEADINGS.get(match[1][:2], "Parameters")
        start = self.at
        self._skip_indented(_indent(match[0]))
        text = " ".join(
            [match[3], *(line.strip() for line in self.lines[start + 1 : self.at])]
        ).strip()
        name = (match[2].split() or [""])[-1]
        yield Event(HEADING, heading)
        yield Event(ITEM, f"{name}: {text}" if name and text else text)

    def _text(self, line: str) -> Iterator[Event]:
        start, indent = self.at, _indent(line)
        hanging = bool(self._peek(1).strip()) and _indent(self._peek(1)) > indent
        if listed := _BULLET.match(line):
            self._gather(indent, deeper=True)
            yield Event(ITEM, line[listed.end() :] + self._joined(start + 1))
        elif item := self._item(line, hanging):
            self._skip_indented(indent, blank_ends=True)
            described = (item[1] + self._joined(start + 1)).strip()
            yield Event(ITEM, f"{item[0]}: {described}" if described else "")
        else:
            self._gather(indent, deeper=False)
            yield from self._paragraph(start, indent)

    def _item(self, line: str, hanging: bool) -> tuple[str, str] | None:
        """Return the term of a definition (a parameter, an error) and the description on its line."""
        if (hanging or self.typed) and (numpy := _NUMPY_ITEM.fullmatch(line)):
            return numpy[1].strip("`* "), ""
        google = _GOOGLE_ITEM.fullmatch(line)
        if google and (hanging or (self.base and _indent(line) == self.base)):
            return google[1].strip("`* "), google[2] or ""
        term = line.strip()
        return (
            (term.strip("`* "), "")
            if hanging and len(term.split()) <= 2 and not term.endswith((".", ","))
            else None
        )

    def _paragraph(self, start: int, indent: int) -> Iterator[Event]:
        if indent > self.base and all(
            _looks_like_code(line) for line in self.lines[start : self.at]
        ):
            yield Event(CODE)
            return
        text = self._joined(start).strip()
        literal = text.endswith("::")
        if not literal:
            yield Event(PARAGRAPH, text)
        elif len(text.split()) > 2:  # more than "Example::"
            yield Event(PARAGRAPH, text[:-1])
        if literal:
            self.at -= 1
            self._skip_indented(indent)
            yield Event(CODE)

    def _gather(self, indent: int, deeper: bool) -> None:
        """Skip the lines that continue the current one."""
        self.at += 1
        while self.left() and (line := self.lines[self.at]).strip():
            if (
                (deeper and _indent(line) <= indent)
                or _BULLET.match(line)
                or _PROMPT.match(line)
                or _FENCE.match(line)
            ):
                break
            if (
                _DIRECTIVE.match(line)
                or _FIELD.match(line)
                or _UNDERLINE.fullmatch(self._peek(1) or "x")
            ):
                break
            self.at += 1

    def _joined(self, start: int) -> str:
        return "".join(" " + line.strip() for line in self.lines[start : self.at])

    def _skip_indented(self, indent: int, blank_ends: bool = False) -> None:
        """Skip the current line and the following lines that are indented by more than `indent`."""
        self.at += 1
        self._skip_until(lambda line: _indent(line) <= indent if line.strip() else blank_ends)

    def _peek(self, ahead: int) -> str:
        return self.lines[self.at + ahead] if self.at + ahead < len(self.lines) else ""


def strip_markup(text: str) -> str:
    """Remove inline markup: :class:`~a.B` → B, ``x`` → x, `text <target>`_ → text, **x** → x."""
    text = _INLINE.sub(_strip_inline, text.replace("\\ ", "").replace("\\*", "*"))
    return " ".join(text.split())


def _strip_inline(match: re.Match[str]) -> str:
    content = match[match.lastgroup or 0]
    if match.lastgroup == "role":
        content = content.split("<")[0].strip() or content
        shortened = match[0].partition("`")[2].startswith("~") and _QUALIFIED.fullmatch(content)
        return shortened[1] if shortened else content
    return content


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _looks_like_code(line: str) -> bool:
    """Guess whether an indented line is code: it has few letters, or begins like a statement."""
    letters = sum(character.isalpha() or character == " " for character in line)
    return bool(_CODE_START.match(line)) or letters < 0.8 * len(line)
