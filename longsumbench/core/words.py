"""The words that a length counts: between blanks; in a script without blanks between words, each letter is one."""

import re
from collections.abc import Iterable

# Scripts without blanks between words, as the inside of a set of characters.
BLANKLESS = (
    # Thai, Lao, Burmese, Khmer.
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_BLANKLESS_LETTER = re.compile(f"[{BLANKLESS}]")
# A name in another script, as "Sima Guang (司馬光)", changes nothing: such a text still counts words between blanks.
# Of such letters in a text whose letters are counted.
_LEAST_SHARE = 0.25

_BETWEEN_BLANKS = re.compile(r"\S+")
# With their marks; other words whole.
LETTERS = re.compile(rf"[{BLANKLESS}](?:(?!\w)[{BLANKLESS}])*|[^\W{BLANKLESS}]+")


def counts_letters(text: str) -> bool:
    """Return True for a text in a script without blanks between words."""
    return not text.isascii() and len(_BLANKLESS_LETTER.findall(text)) > _LEAST_SHARE * len(text)


def word_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of the words that a length counts in a text, and in any part of it."""
    return LETTERS if counts_letters(text) else _BETWEEN_BLANKS


def count_words(sentences: Iterable[str]) -> int:
    """Count the words of sentences, which are one text."""
    text = " ".join(sentences)
    return len(word_pattern(text).findall(text))
