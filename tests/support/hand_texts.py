"""Texts and their tokens for cases that are worked by hand."""

from collections.abc import Sequence
from itertools import count

from hypothesis import strategies as st

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


def sentence(tokens: int, words: int, first: int = 0) -> EncodedSentence:
    """Return a sentence whose tokens are numbered from the first."""
    return EncodedSentence(list(range(first, first + tokens)), words)


@st.composite
def numbered_texts(draw: st.DrawFn) -> list[list[EncodedSentence]]:
    """Draw documents whose tokens are numbered through, so that every token tells where it stood."""
    sizes = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=8)
    position = count()
    return [
        [EncodedSentence([next(position) for _ in range(tokens)], words) for tokens, words in one]
        for one in draw(st.lists(sizes, max_size=5))
    ]


def text_of(*documents: tuple[str, ...], title: str | None = None) -> Example:
    """Return an example of documents of one paragraph, given by their sentences."""
    read = tuple(Document(None, (Section(None, (sentences,)),)) for sentences in documents)
    return Example("x", title, None, read, (("a b",),))
