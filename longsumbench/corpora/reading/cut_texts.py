"""References that look as if they were cut at a length limit: scores against them are not comparable with others."""

import re
from collections.abc import Iterable, Sequence
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
    return TextEnd(
        len(text.split()), len(text), not _END_MARK.search(text), text.rstrip().endswith(_ELLIPSES)
    )


class CutTexts:
    """Counts texts that look cut, one after the other."""

    def __init__(self) -> None:
        self._total = 0
        self._elided: list[str] = []  # ids
        self._longest: dict[str, list[tuple[str, TextEnd]]] = {
            "words": [],
            "characters": [],
        }  # by unit of length

    def add(self, name: str, ends: Iterable[TextEnd]) -> None:
        """Add the texts of an example; `name` is its id."""
        for end in ends:
            self._total += 1
            if end.is_elided:
                self._elided.append(name)
            for unit, longest in self._longest.items():
                length = getattr(end, unit)
                if longest and length > getattr(longest[0][1], unit):
                    longest.clear()
                if not longest or length == getattr(longest[0][1], unit):
                    longest.append((name, end))

    def describe(self, side: str = "references") -> list[str]:
        """Return a sentence about each sign that texts were cut; `side` names the texts."""
        sentences = []
        if len(self._elided) > _CUT_SHARE * self._total:
            sentences.append(
                f"{self._count(self._elided, side)} end in an ellipsis, as if cut: {_EFFECT}"
            )
        for unit, longest in self._longest.items():
            num_open = sum(end.is_open for _, end in longest)
            many = len(longest) >= max(_LEAST_CUT, _CUT_SHARE * self._total)
            if (
                many
                and longest[0][1].words >= _LEAST_WORDS
                and num_open >= _OPEN_SHARE * len(longest)
            ):
                length = f"{getattr(longest[0][1], unit):,} {unit} long, and none is longer"
                names = [name for name, _ in longest]
                sentences.append(
                    f"{self._count(names, side)} are {length}, as if cut there: {_EFFECT}"
                )
                break
        return sentences

    def _count(self, names: Sequence[str], side: str) -> str:
        return f"{len(names):,} of {self._total:,} {side} (e.g. {names[0]!r})"
