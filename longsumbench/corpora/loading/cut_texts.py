"""References that look as if they were cut at a length limit: scores against them are not comparable with others."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# references of the same length; fewer may be chance
_LEAST_CUT = 3
# share of references cut at one length or ending in an ellipsis
_CUT_SHARE = 0.05
# share of the longest references without a mark at their end
_OPEN_SHARE = 0.5
# shorter references have the same length by chance
_LEAST_WORDS = 20
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


def describe_end(text: str) -> TextEnd:
    """Return the length and the end of a text."""
    is_open, is_elided = not _END_MARK.search(text), text.rstrip().endswith(_ELLIPSES)
    return TextEnd(len(text.split()), len(text), is_open, is_elided)


class CutTexts:
    """Counts texts that look cut, one after the other."""

    def __init__(self) -> None:
        self._total = 0
        self._elided: list[str] = []  # ids
        # unit of length → the greatest length, and the texts of that length with their ids
        self._longest: dict[str, tuple[int, list[tuple[str, TextEnd]]]] = {}

    def add(self, name: str, ends: Iterable[TextEnd]) -> None:
        """Add the texts of an example; `name` is its id."""
        for end in ends:
            self._total += 1
            if end.is_elided:
                self._elided.append(name)
            for unit, length in (("words", end.words), ("characters", end.characters)):
                if unit not in self._longest or length > self._longest[unit][0]:
                    self._longest[unit] = length, []
                if length == self._longest[unit][0]:
                    self._longest[unit][1].append((name, end))

    def describe(self, side: str = "references") -> list[str]:
        """Return a sentence about each sign that texts were cut; `side` names the texts."""
        sentences = []
        if len(self._elided) > _CUT_SHARE * self._total:
            elided = self._count(self._elided, side)
            sentences.append(f"{elided} end in an ellipsis, as if cut: {_EFFECT}")
        for unit, (length, longest) in self._longest.items():
            num_open = sum(end.is_open for _, end in longest)
            many = len(longest) >= max(_LEAST_CUT, _CUT_SHARE * self._total)
            long = longest[0][1].words >= _LEAST_WORDS
            if many and long and num_open >= _OPEN_SHARE * len(longest):
                texts = self._count([name for name, _ in longest], side)
                limit = f"{length:,} {unit} long, and none is longer"
                sentences.append(f"{texts} are {limit}, as if cut there: {_EFFECT}")
                break
        return sentences

    def _count(self, names: Sequence[str], side: str) -> str:
        return f"{len(names):,} of {self._total:,} {side} (e.g. {names[0]!r})"
