"""Markdown as sections, paragraphs and sentences."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from longsumbench.core import Section, Sentences
from longsumbench.sentences import split_sentences

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[\w-]+[ \t]*:)(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_DEEPEST = 1_000  # depth of nested lists; the library's default, 20, would lose text silently
_NO_PROSE = ("fence", "code_block", "html_block")
_ONE_PARAGRAPH = ("bullet_list", "ordered_list", "table")


class MarkdownReader:
    """Reads a document in Markdown (CommonMark, with tables) token by token.

    Attributes:
        sections: the sections with text.
        titles: the first-level headings.
        words_left_out: number of words of code, HTML and front matter.
    """

    def __init__(self, text: str) -> None:
        self.sections: list[Section] = []
        self.titles: list[str] = []
        front = _FRONT_MATTER.match(text)
        self.words_left_out = len(front[0].split()) - 2 if front else 0  # without the rules around it
        self._name: str | None = None
        self._paragraphs: list[Sentences] = []
        self._sentences: list[str] = []
        self._cells: list[str] | None = None  # of the current row of a table
        self._heading = ""  # the tag of the current heading
        self._depth = 0  # of lists and tables
        parser = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])
        for token in parser.parse(text[front.end() if front else 0 :]):
            self._take(token)
        self._end_section()

    def _take(self, token: Token) -> None:
        kind, _, side = token.type.rpartition("_")
        if token.type == "inline":
            self._text(" ".join(_inline_text(token.children or []).split()))
        elif token.type in _NO_PROSE:
            self.words_left_out += len(token.content.split())
        elif kind == "heading":
            if side == "open":
                self._end_section()
            self._heading = token.tag if side == "open" else ""
        elif kind == "tr":
            self._sentences += [", ".join(filter(None, self._cells))] if self._cells and any(self._cells) else []
            self._cells = [] if side == "open" else None
        elif kind in _ONE_PARAGRAPH:
            self._depth += 1 if side == "open" else -1
        if side == "close" and not self._depth:
            self._end_paragraph()

    def _text(self, text: str) -> None:
        if self._heading:
            self._name = text or None
            self.titles += [text] if self._heading == "h1" and text else []
        elif self._cells is not None:
            self._cells.append(text)
        else:
            self._sentences += split_sentences(text)

    def _end_paragraph(self) -> None:
        if self._sentences:
            self._paragraphs.append(tuple(self._sentences))
        self._sentences = []

    def _end_section(self) -> None:
        self._end_paragraph()
        if self._paragraphs:
            self.sections.append(Section(self._name, tuple(self._paragraphs)))
        self._name, self._paragraphs = None, []


def _inline_text(tokens: Sequence[Token]) -> str:
    """Return the words of inline Markdown, for an image its alternative text."""
    return "".join(_inline_text(token.children or []) if token.type == "image" else _word(token) for token in tokens)


def _word(token: Token) -> str:
    breaks = token.type in ("softbreak", "hardbreak") or token.content.lower().startswith("<br")
    return " " if breaks else "" if token.type == "html_inline" else token.content
