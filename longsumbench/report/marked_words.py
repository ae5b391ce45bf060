"""Words of a text marked on a page by who shares them, in any of their forms."""

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape

from longsumbench.rouge.scorer import RougeScorer

_WORD = re.compile(r"[^\W_]+")  # as ROUGE takes texts apart; of a script without blanks, a stretch of them
SHORTEST_WORD = 4  # letters; shorter ones are in any text, and marking them would tell nothing


def mark_words(text: str, shared: Callable[[str], str | None]) -> str:
    """Escape a text, its longer words marked by what `shared` says of their stems: a class of `mark`, None for none."""
    parts, end = [], 0
    for word in _WORD.finditer(text):
        stems_of_word = _word_stems(word[0]) if len(word[0]) >= SHORTEST_WORD else ()
        kinds = [kind for stem in stems_of_word if (kind := shared(stem))]
        written = escape(word[0])
        parts += [escape(text[end : word.start()]), f'<mark class="{kinds[0]}">{written}</mark>' if kinds else written]
        end = word.end()
    return "".join([*parts, escape(text[end:])])


def stems(text: str) -> set[str]:
    """Return the stems of a text's words."""
    return {stem for word in _WORD.findall(text) for stem in _word_stems(word)}


@lru_cache(maxsize=1 << 16)
def _word_stems(word: str) -> tuple[str, ...]:
    """Return the stem of a word; several of a stretch in a script without blanks."""
    return tuple(_scorer().words(word))


@lru_cache(maxsize=1)
def _scorer() -> RougeScorer:
    return RougeScorer(tokenizer="unicode", kernels="python")
