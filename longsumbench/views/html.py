"""HTML pages, rendered from the templates of `templates`: self-contained, light or dark.

"PACKAGE:NAME" is a template of another package, in its folder `templates`.

Every value is escaped, except `Markup`. Style sheets and scripts are files of `static`, which become part of the page.
Words of a text are marked by the other texts that share them, compared by stem.
"""

import base64
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from longsumbench.core import Scoring, Sentences, count_words
from longsumbench.formatting import (
    format_count,
    format_duration,
    format_interval,
    format_plain_value,
)
from longsumbench.leaderboards.comparability import find_heading
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.views.tables import TIED, Stressed, Tied, on_one_line

WORD_RUN = re.compile(r"[^\W_]+")  # as in ROUGE; a run of characters in scripts without blanks
SHORTEST_WORD = 4  # letters; shorter words are in any text


def mark_words(text: str, shared: Callable[[str], str | None]) -> Markup:
    """Escape a text and mark its longer words; `shared` returns the class of `mark` for a stem, or None."""
    parts, end = list[str](), 0
    for word in WORD_RUN.finditer(text):
        kinds: list[str | None] = []
        if len(word[0]) >= SHORTEST_WORD:
            kinds = list(filter(None, map(shared, word_stems(word[0]))))
        parts.append(text[end : word.start()])
        mark = Markup('<mark class="{}">{}</mark>')
        parts.append(mark.format(kinds[0], word[0]) if kinds else word[0])
        end = word.end()
    return Markup("").join([*parts, text[end:]])


def shared_by(text: str, first: str, second: str) -> Callable[[str], str | None]:
    """Return the function for `mark_words` that says which of two texts share a word with `text`: one, other, both."""
    text_stems = stems(text)
    in_one, in_other = text_stems & stems(first), text_stems & stems(second)

    def kind(stem: str) -> str | None:
        if stem in in_one:
            return "both" if stem in in_other else "one"
        return "other" if stem in in_other else None

    return kind


def stems(text: str) -> set[str]:
    """Return the stems of a text's words."""
    text_stems: set[str] = set()
    for word in WORD_RUN.findall(text):
        text_stems.update(word_stems(word))
    return text_stems


def word_stems(text: str) -> list[str]:
    """Return the stems of the words of a text, in any script: a page is to read, whatever was scored."""
    return _scorer().words(text)


@cache
def _scorer() -> SuiteScorer:
    return SuiteScorer(Scoring(tokenizer="unicode"), kernels="python")


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
