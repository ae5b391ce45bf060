"""Texts and their tokens for cases that are worked by hand."""

from collections.abc import Sequence

from longsumbench.core import Document, Example, Section
from longsumbench.modeling.units import EncodedSentence


def encode_words(sentences: Sequence[str]) -> list[EncodedSentence]:
    """Tokenize by words: the id is the word's length."""
    encoded = []
    for text in sentences:
        words = text.split()
        encoded.append(EncodedSentence(list(map(len, words)), len(words)))
    return encoded


def encode_letters(sentences: Sequence[str]) -> list[EncodedSentence]:
    """Tokenize by letters: the id is the letter's code point."""
    encoded = []
    for text in sentences:
        encoded.append(EncodedSentence(list(map(ord, text.replace(" ", ""))), len(text.split())))
    return encoded


def text_of(*documents: tuple[str, ...], title: str | None = None) -> Example:
    """Return an example of documents of one paragraph, given by their sentences."""
    read = tuple(Document(None, (Section(None, (sentences,)),)) for sentences in documents)
    return Example("x", title, None, read, (("a b",),))
