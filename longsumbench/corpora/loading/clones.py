"""Runs of words, by which copies of a text are found."""

from collections.abc import Iterable

from longsumbench.rouge.tokenizer import MARK, default_words


def distinct_grams(text: Iterable[str], words: int) -> set[tuple[str, ...]]:
    """Return the different runs of some number of words, across the ends of sentences."""
    tokens = plain_words(text)
    return set(zip(*(tokens[start:] for start in range(words)), strict=False))


def plain_words(text: Iterable[str]) -> list[str]:
    """Return ROUGE's lower-cased words of a text without stemming, across the ends of sentences."""
    return [word for word in default_words(text) if word != MARK]
