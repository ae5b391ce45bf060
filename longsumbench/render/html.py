"""The frame and the parts of all HTML pages: self-contained, light or dark by the reader's preference."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from types import MappingProxyType

from longsumbench.core import Sentences
from longsumbench.render.tables import TIED, Block, Stressed, Tied, on_one_line


def static_text(name: str) -> str:
    """Return a style sheet or script of the folder `static`, after a line break."""
    return "\n" + (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


_STYLE = static_text("page.css")


def html_page(title: str, parts: Sequence[str], style: str = "", head: str = "") -> str:
    """Return a whole page.

    `parts` and `head` are HTML; `style` is CSS in addition to the common one.
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

    `Stressed` cells are bold, `Tied` cells are marked. `groups` has a heading over each column; neighbours with the
    same one share it. `classes` has the CSS class of a cell by its text.
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
    content = f"{escape(cell)} {TIED}" if isinstance(cell, Tied) else escape(cell)
    content = f"<strong>{content}</strong>" if isinstance(cell, Stressed) else content
    return f'<td class="{names}">{content}</td>' if names else f"<td>{content}</td>"


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


def html_image(alt: str, content: bytes) -> str:
    """Return a picture, PNG or SVG, that is part of the page; `alt` is text."""
    kind = "svg+xml" if content.startswith(b"<") else "png"
    return f'<img alt="{escape(alt)}" src="data:image/{kind};base64,{base64.b64encode(content).decode("ascii")}">'


def html_picture(alt: str, content: bytes, caption: str = "") -> str:
    """Return a picture with its caption, if it has one."""
    below = f"\n<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{html_image(alt, content)}{below}</figure>"


def html_block(block: Block, classes: Mapping[str, str] = MappingProxyType({}), picture: str = "") -> list[str]:
    """Return the HTML of a table with its heading, notes and footnotes, and a picture above it."""
    above = [f"<h2>{escape(block.heading)}</h2>"] if block.heading else []
    names = [on_one_line(name) for name in block.columns]
    table = [html_table(names, block.align, block.rows, block.groups, classes)] if block.rows else []
    below = [f'<p class="soft">{escape(line)}</p>' for line in (block.legend("Bold:"), *block.footnotes) if line]
    notes = [f"<p>{escape(note)}</p>" for note in block.notes if note]
    return [*above, *notes, *filter(None, [picture]), *table, *below]


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
