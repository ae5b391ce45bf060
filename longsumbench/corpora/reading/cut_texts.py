"""References that look as if they were cut at a length limit: scores against them are not comparable with others."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_LEAST_CUT = 3  # references of the same length; fewer may be chance
_CUT_SHARE = 0.05  # share of references cut at one length or ending in an ellipsis
_OPEN_SHARE = 0.5  # share of the longest references without a mark at their end
_LEAST_WORDS = 20  # shorter references have the same length by chance
_END_MARK = re.compile(r"[.!?…।。！？][\"'’”»)\]\s]*\Z")
_ELLIPSES = ("...", "…", ". . .")
_EFFECT = "scores against cut references are not comparable with others; use complete references"


class TextEnd(NamedTuple):
    """What shows whether a text was cut.

    Attributes:
        words, characters: its length.
        is_open: True if it ends without a mark.
        is_elided: True if it ends in an ellipsis.
    """

    words: int
    characters: int
    is_open: bool
    is_elided: bool


def end_of_text(text: str) -> TextEnd:
    """Return the length and the end of a text."""
    return TextEnd(len(text.split()), len(text), not _END_MARK.search(text), text.rstrip().endswith(_ELLIPSES))


@dataclass
class _Alike:
    """Texts that end in the same way: the first one, and how many there are."""

    count: int = 0
    first: str = ""
    num_open: int = 0
    length: int = 0
    words: int = 0

    def add(self, name: str, end: TextEnd) -> None:
        self.first = self.first if self.count else name
        self.words = self.words if self.count else end.words
        self.count += 1
        self.num_open += end.is_open


@dataclass
class CutTexts:
    """Counts texts that look cut, one after the other."""

    total: int = 0
    elided: _Alike = field(default_factory=_Alike)
    longest: dict[str, _Alike] = field(default_factory=lambda: {"words": _Alike(), "characters": _Alike()})

    def add(self, name: str, ends: Sequence[TextEnd]) -> None:
        """Add the texts of an example; `name` is its id."""
        for end in ends:
            self.total += 1
            if end.is_elided:
                self.elided.add(name, end)
            for unit, length in (("words", end.words), ("characters", end.characters)):
                if length > self.longest[unit].length:
                    self.longest[unit] = _Alike(length=length)
                if length == self.longest[unit].length:
                    self.longest[unit].add(name, end)

    def describe(self, side: str = "references") -> list[str]:
        """Return a sentence about each sign that texts were cut; `side` names the texts."""
        sentences = []
        if self.elided.count > _CUT_SHARE * self.total:
            sentences.append(f"{self._describe_count(self.elided, side)} end in an ellipsis, as if cut: {_EFFECT}")
        for unit, longest in self.longest.items():
            many = longest.count >= max(_LEAST_CUT, _CUT_SHARE * self.total)
            if many and longest.words >= _LEAST_WORDS and longest.num_open >= _OPEN_SHARE * longest.count:
                length = f"{longest.length:,} {unit} long, and none is longer"
                sentences.append(f"{self._describe_count(longest, side)} are {length}, as if cut there: {_EFFECT}")
                break
        return sentences

    def _describe_count(self, alike: _Alike, side: str) -> str:
        return f"{alike.count:,} of {self.total:,} {side} (e.g. {alike.first!r})"
