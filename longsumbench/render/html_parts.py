"""Parts of the pictures and HTML pages of analyses: titles, captions, marked words, and texts side by side."""

import base64
import io
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from longsumbench.core import Sentences
from longsumbench.render.marked_words import SHORTEST_WORD
from longsumbench.render.palette import GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
