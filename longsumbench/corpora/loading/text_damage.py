r"""What another program did to texts: marks that it left (escapes, HTML, soft hyphens, pieces of words), and cuts.

Models read marks as text; scores against references that were cut at a length limit are not comparable with others. A
mark counts where it is hardly meant: LaTeX has `\nu`, paths have `C:\new`, and code has `"\n"`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_SHARE = 0.05  # of the texts; a few of them are about HTML or code
_TAGS = (
    r"[abiup]|br|hr|div|span|em|strong|su[bp]|h[1-6]|[ou]l|li|table|t[rdh]|img|html|body|head|font"
)
_ENTITIES = r"[lg]t|amp|quot|apos|nbsp|shy|hellip|[mn]dash|[lr][sd]quo|[a-z](?:acute|grave|uml|circ|cedil|tilde)"
# after a mark of an end also before a small letter, except in the names of LaTeX
_ESCAPES = (
    r"\\n\\n|\\r\\n|\\u[\da-fA-F]{4}|\\n(?:(?<=\w\\n)|(?<=\w.\\n))(?:[\s\dA-Z*•-]|\Z)"
    r"|\\n(?<=\w[.!?。！？]\\n)(?!onumber|oindent|ew|abla|eq)\w"
)
_MARKS = {
    r"line breaks or letters as \n or \u00e9": re.compile(_ESCAPES),
    "tags or entities of HTML": re.compile(
        rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|&(?:{_ENTITIES}|#\d+|#x[\da-f]+);", re.IGNORECASE
    ),
    "soft hyphens": re.compile("\u00ad"),
    "pieces of words as ##ing or sum@@": re.compile(
        r" ##(?<=\w ##)\w|@@ (?<=\w@@ )\w|▁[^\W\d]|Ġ\w+ Ġ"
    ),
}


def marks_in(text: str) -> list[str]:
    """Return the kinds of marks in a text."""
    return [kind for kind, pattern in _MARKS.items() if pattern.search(text)]


def describe_marks(
    marked: Iterable[tuple[str, Sequence[str]]], total: int, side: str
) -> Iterator[str]:
    """Yield a line if one in twenty of `total` texts has a kind of marks; `marked` has ids and kinds."""
    names = defaultdict(list)
    for name, kinds in marked:
        for kind in kinds:
            names[kind].append(name)
    clauses = []
    for kind, ids in names.items():
        if len(ids) >= _SHARE * total:
            clauses.append(f"{kind} in {len(ids):,} of {total:,} {side} (e.g. {ids[0]!r})")
    if clauses:
        yield f"{', '.join(clauses)}: they are read and scored as text; remove what is not meant"


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
