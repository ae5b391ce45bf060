r"""Marks that another program left in texts: escapes, HTML, soft hyphens and pieces of words. Models read them as text.

A mark counts where it is hardly meant: LaTeX has `\nu`, paths have `C:\new`, and code has `"\n"`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

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
