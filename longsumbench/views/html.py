"""HTML pages, rendered from the templates of `templates`: self-contained, light or dark.

"PACKAGE:NAME" is a template of another package, in its folder `templates`.

Every value is escaped, except `Markup`. Style sheets and scripts are files of `static`, which become part of the page.
"""

import base64
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from longsumbench.core import Sentences, count_words
from longsumbench.formatting import (
    format_count,
    format_duration,
    format_interval,
    format_plain_value,
)
from longsumbench.leaderboards.comparability import find_heading
from longsumbench.views.marked_words import SHORTEST_WORD
from longsumbench.views.tables import TIED, Stressed, Tied, on_one_line

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent


def render_page(template: str, **values: Any) -> str:
    """Return a whole page by a template of `templates`.

    Raises:
        jinja2.UndefinedError: a value of the template is missing.
    """
    return _environment().get_template(template).render(values)


def static_text(name: str) -> Markup:
    """Return a style sheet or script of the folder `static`, after a line break."""
    return Markup("\n") + Markup((_FOLDER / "static" / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_read_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"static": static_text, "tied": TIED, "shortest_marked": SHORTEST_WORD}
    environment.filters |= {
        "count": format_count,
        "count_words": lambda text: count_words([text]),
        "data_url": _data_url,
        "duration": format_duration,
        "heading": find_heading,
        "interval": lambda number: format_interval(number.low, number.high, ".1f"),
        "one_line": on_one_line,
        "plain": format_plain_value,
    }
    environment.tests["stressed"] = lambda cell: isinstance(cell, Stressed)
    environment.tests["tied"] = lambda cell: isinstance(cell, Tied)
    return environment


def _read_template(name: str) -> str:
    """Return a template, "site/run.html", or that of another package, "my_package:mine.html"."""
    package, _, path = name.rpartition(":")
    folder = files(package or "longsumbench.views") / "templates"
    return (folder / path).read_text(encoding="utf-8")


def _data_url(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def headed_references(references: Sequence[Sentences]) -> dict[str, str]:
    """Return heading → text of an example's references."""
    texts = ["\n".join(reference) for reference in references]
    return {
        f"reference {place}" if texts[1:] else "reference": text
        for place, text in enumerate(texts, 1)
    }
