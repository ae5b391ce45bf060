"""The frame of all HTML pages: self-contained, light or dark by the reader's preference."""

import base64
import io
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from longsumbench.core import Sentences
from longsumbench.render.figures import GREY
from longsumbench.render.marked_words import SHORTEST_WORD
from longsumbench.render.tables import TIED, Stressed, Tied

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def static_text(name: str) -> str:
    """Return a style sheet or script of the folder `static`, after a line break."""
    return "\n" + (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


_STYLE = static_text("page.css")


def html_page(title: str, parts: Sequence[str], style: str = "", head: str = "") -> str:
    """Return a whole page.

    Args:
        title: text.
        parts: HTML of the body.
        style: CSS in addition to the common one.
        head: HTML of additional elements of the head.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def html_table(
    names: Sequence[str],
    align: str,
    rows: Iterable[Sequence[str]],
    groups: Sequence[str] = (),
    classes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a table, which scrolls if it is wider than the page.

    Args:
        names: names of the columns.
        align: "l" or "r" for each column.
        rows: cells, as text; `Stressed` cells are bold, `Tied` cells are marked.
        groups: a heading over each column; neighbours with the same one share it. Empty: none.
        classes: text of a cell → its CSS class.
    """
    sides = [' class="l"' if letter == "l" else "" for letter in align]
    over = "".join(f'<th colspan="{len(list(of))}">{escape(name)}</th>' for name, of in groupby(groups))
    head = "".join(f"<th{side}>{escape(name)}</th>" for side, name in zip(sides, names, strict=True))
    heads = (f"<tr>{over}</tr>" if over else "") + f"<tr>{head}</tr>"
    body = "\n".join(
        "<tr>" + "".join(_data_cell(letter, cell, classes) for letter, cell in zip(align, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table>\n<thead>{heads}</thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _data_cell(letter: str, cell: str, classes: Mapping[str, str]) -> str:
    names = " ".join(filter(None, ["l" if letter == "l" else "", classes.get(cell, "")]))
    return f'<td class="{names}">{_table_cell(cell)}</td>' if names else f"<td>{_table_cell(cell)}</td>"


def _table_cell(cell: str) -> str:
    if isinstance(cell, Stressed):
        return f"<strong>{escape(cell)}</strong>"
    return f"{escape(cell)} {TIED}" if isinstance(cell, Tied) else escape(cell)


MARK_STYLE = """
mark { color: inherit; border-radius: .2rem; padding: 0 .1em; margin: 0 -.1em; background: #e6e8ec; }
mark.one { background: #cfe6f5; } mark.other { background: #fbdcc8; }
@media (prefers-color-scheme: dark) { mark { background: #323943; } mark.one { background: #173f5b; }
  mark.other { background: #5a3018; } }
"""
PAGE_STYLE = (
    """
figure { overflow-x: auto; }
figure img { width: 100%; min-width: 44rem; max-width: 76rem; height: auto; display: block; }
@media (prefers-color-scheme: dark) { figure img { filter: invert(1) hue-rotate(180deg); } }
"""
    + MARK_STYLE
)


def transparent_svg(size: tuple[float, float], draw: "Callable[[Figure], None]") -> bytes:
    """Draw a picture of a `size` in inches without background; equal drawings give equal bytes."""
    import matplotlib as mpl
    import matplotlib.style
    from matplotlib.figure import Figure

    with matplotlib.style.context("default"), mpl.rc_context({"svg.hashsalt": "longsumbench"}):
        figure, image = Figure(size, layout="constrained"), io.BytesIO()
        draw(figure)
        figure.savefig(image, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return image.getvalue()


def add_title_and_caption(figure: "Figure", x: float, title: str, caption: str, width: int) -> None:
    """Write a title on top of a figure, and a caption of lines of `width` characters below the plots."""
    tall = figure.get_figheight()
    figure.text(x, 1 - 0.3 / tall, title, fontsize=11.5, fontweight="bold", parse_math=False)
    lines = "\n".join(textwrap.wrap(caption, width))
    figure.text(x, 0.1 / tall, lines, fontsize=8, color=GREY, parse_math=False)


def html_picture(svg: bytes, caption: str) -> str:
    """Return a picture with its caption."""
    text, content = escape(caption), base64.b64encode(svg).decode("ascii")
    image = f'<img alt="{text}" src="data:image/svg+xml;base64,{content}">'
    return f"<figure>{image}\n<figcaption>{text}</figcaption></figure>"


def html_text(heading: str, content: str, kind: str = "") -> str:
    """Return a text under its heading, for an element of class `texts`; `content` is HTML."""
    return f'<section class="{kind}"><h4>{escape(heading)}</h4><p>{or_nothing(content)}</p></section>'


def or_nothing(content: str) -> str:
    """Return HTML; the word "nothing" if it is blank."""
    return content if content.strip() else '<em class="soft">nothing</em>'


def headed_references(references: Sequence[Sentences]) -> dict[str, str]:
    """Return heading → text of an example's references."""
    texts = ["\n".join(reference) for reference in references]
    return {f"reference {place}" if texts[1:] else "reference": text for place, text in enumerate(texts, 1)}


def marks_legend(sentence: str, kinds: Mapping[str, str]) -> str:
    """Explain marked words; `kinds` is the class of a mark → the texts that share its word with `sentence`."""
    marks = ", ".join(f'<mark class="{kind}">{escape(label)}</mark>' for kind, label in kinds.items())
    intro = f"Marked: words of {SHORTEST_WORD} letters or more, in any of their forms, that {sentence} shares with"
    return f'<p class="soft">{intro} {marks}.</p>'
