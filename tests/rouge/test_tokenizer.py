"""The default tokenizers against rouge_score's and by hand; words of every script."""

import sys

import pytest
from hypothesis import given, strategies as st
from rouge_score import tokenize

from longsumbench.rouge.tokenizer import (
    MARK,
    ascii_words,
    default_words,
    dropped_share,
    unicode_words,
)


def decoded(words: list[str]) -> list[str]:
    return [word for word in words if word != MARK]


def test_every_character() -> None:
    """Every character of Unicode between two letters is kept, lower-cased or read as a blank as rouge_score does."""
    for start in range(0, sys.maxunicode + 1, 0x1000):
        text = " ".join(f"a{chr(code)}b" for code in range(start, start + 0x1000))
        assert decoded(default_words([text])) == tokenize.tokenize(text, None)


@given(st.lists(st.text()))
def test_sentences_end_with_the_mark(sentences: list[str]) -> None:
    """A text's words are its sentences' words, each sentence's followed by the mark."""
    for words in (default_words, ascii_words, unicode_words):
        assert words(sentences) == [word for sentence in sentences for word in words([sentence])]
        assert words(sentences).count(MARK) == len(sentences)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Straße STRASSE", "strasse strasse"),
        ("naïve e\u0301te\u0301 été", "naïve été été"),
        ("東京タワー2020", "東 京 タ ワ ー 2020"),
        ("हिन्दी में", "हिन्दी में"),
        ("ภาษาไทย", "ภ า ษ า ไ ท ย"),
        ("한국어 텍스트", "한국어 텍스트"),
        ("snake_case, x-y!", "snake case x y"),
    ],
)
def test_unicode_words(text: str, words: str) -> None:
    """Letters of any script are kept with their marks; where a script puts no blanks, each letter is a word."""
    assert decoded(unicode_words([text])) == words.split()


@pytest.mark.parametrize(
    ("text", "share"), [("", 0), ("…", 0), ("abc 12", 0), ("ab東京", 0.5), ("東京", 1)]
)
def test_dropped_share(text: str, share: float) -> None:
    """The share of letters and digits that the default tokenizer drops."""
    assert dropped_share(text) == share
