"""Mark words of a text in HTML by the other texts that share them, compared by stem; find repeated trigrams."""

import re
from collections.abc import Callable
from functools import cache
from itertools import groupby

from markupsafe import Markup

from longsumbench.core import Scoring
from longsumbench.rouge.scorer import SuiteScorer

_WORD_RUN = re.compile(r"[^\W_]+")  # as in ROUGE; a run of characters in scripts without blanks
SHORTEST_WORD = 4  # letters; shorter words are in any text


def mark_words(text: str, shared: Callable[[str], str | None]) -> Markup:
    """Escape a text and mark its longer words; `shared` returns the class of `mark` for a stem, or None."""
    parts, end = list[str](), 0
    for word in _WORD_RUN.finditer(text):
        kinds: list[str | None] = []
        if len(word[0]) >= SHORTEST_WORD:
            kinds = list(filter(None, map(shared, word_stems(word[0]))))
        parts.append(text[end : word.start()])
        mark = Markup('<mark class="{}">{}</mark>')
        parts.append(mark.format(kinds[0], word[0]) if kinds else word[0])
        end = word.end()
    return Markup("").join([*parts, text[end:]])


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
    spans = []
    for is_repeated, group in groupby(range(len(words)), repeated.__getitem__):
        places = list(group)
        if is_repeated:
            spans.append((words[places[0]].start(), words[places[-1]].end()))
    return spans


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
    for word in _WORD_RUN.findall(text):
        text_stems.update(word_stems(word))
    return text_stems


def word_stems(text: str) -> list[str]:
    """Return the stems of the words of a text, in any script: a page is to read, whatever was scored."""
    return _scorer().words(text)


@cache
def _scorer() -> SuiteScorer:
    return SuiteScorer(Scoring(tokenizer="unicode"), kernels="python")
