"""Mark words of a text in HTML: by which other texts share them, compared by stem, and repeated trigrams."""

import re
from collections.abc import Callable
from functools import cache
from itertools import groupby

from markupsafe import Markup, escape

from longsumbench.core import Scoring
from longsumbench.rouge.scorer import SuiteScorer

_WORD_RUN = re.compile(r"[^\W_]+")  # as in ROUGE; a run of characters in scripts without blanks
SHORTEST_WORD = 4  # letters; shorter words are in any text


def mark_words(text: str, shared: Callable[[str], str | None]) -> Markup:
    """Escape a text and mark its longer words; `shared` returns the class of `mark` for a stem, or None."""
    parts, end = [], 0
    for word in _WORD_RUN.finditer(text):
        parts.append(escape(text[end : word.start()]))
        end = word.end()
        # In some scripts, a run of characters has several words: the first one that is shared counts
        stems_of_word = word_stems(word[0]) if len(word[0]) >= SHORTEST_WORD else []
        kind = next(filter(None, map(shared, stems_of_word)), None)
        if kind:
            parts.append(Markup('<mark class="{}">{}</mark>').format(kind, word[0]))
        else:
            parts.append(escape(word[0]))
    return Markup("").join([*parts, text[end:]])


def mark_repetitions(text: str, shared: Callable[[str], str | None]) -> Markup:
    """Mark words as `mark_words` does, and repeated stretches of the text as `span` of class `repeated`."""
    parts, end = [], 0
    for start, stop in repeated_spans(text):
        inside = mark_words(text[start:stop], shared)
        parts.append(mark_words(text[end:start], shared))
        parts.append(Markup('<span class="repeated">{}</span>').format(inside))
        end = stop
    return Markup("").join([*parts, mark_words(text[end:], shared)])


def repeated_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end, in characters, of each stretch of trigrams that occurred earlier in a text.

    A trigram is three consecutive words, in lower case, across punctuation.
    """
    words = list(_WORD_RUN.finditer(text))
    lowered = [word[0].lower() for word in words]
    seen, repeated = set(), [False] * len(words)
    for place, trigram in enumerate(zip(lowered, lowered[1:], lowered[2:], strict=False)):
        if trigram in seen:
            repeated[place : place + 3] = [True] * 3
        seen.add(trigram)
    stretches = [
        list(places)
        for is_repeated, places in groupby(range(len(words)), repeated.__getitem__)
        if is_repeated
    ]
    return [(words[places[0]].start(), words[places[-1]].end()) for places in stretches]


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
    return {stem for word in _WORD_RUN.findall(text) for stem in word_stems(word)}


def word_stems(text: str) -> list[str]:
    """Return the stems of the words of a text, in any script: a page is to read, whatever was scored."""
    return _scorer().words(text)


@cache
def _scorer() -> SuiteScorer:
    return SuiteScorer(Scoring(tokenizer="unicode"), kernels="python")
