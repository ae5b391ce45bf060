"""The tokenizers: ROUGE's rule, which keeps a–z and 0–9, and one for every script; runs of words, to find copies.

Both turn the sentences of a text into a flat list of words, in which `MARK` ends each sentence.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import count

from longsumbench.core.documents import BLANKLESS
from longsumbench.rouge.stemmers import Stem

TOKENIZERS = ("default", "unicode")
# ends a sentence; no word contains it
MARK = "."

# this byte does not occur in UTF-8
_SENTENCE_END = 0xFF
# Byte of UTF-8 → its replacement by the default rule: lower-case letter, digit, or a blank for everything else.
_BYTE_TABLE = bytearray(
    ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256)
)
_BYTE_TABLE[_SENTENCE_END] = ord(MARK)
_BETWEEN = bytes([32, _SENTENCE_END, 32])
# code points from here on have no combining marks except variation selectors
_LAST_MARK = 0x1F000

Tokenizer = Callable[[Iterable[str]], list[str]]
# more than the distinct words of a corpus of long documents
_MAX_WORDS = 1 << 18
# the number of the mark that ends a sentence
END = 0


def default_words(sentences: Iterable[str]) -> list[str]:
    """Return the words as `rouge_score` does: in lower case, with everything but a–z and 0–9 as blanks.

    Lower-casing turns only two characters beyond ASCII into letters: the Kelvin sign, and İ, which becomes an i and a
    dot that ends the word.
    """
    return ascii_words(map(_with_ascii_letters, sentences))


def ascii_words(sentences: Iterable[str]) -> list[str]:
    """Return the words as ROUGE-1.5.5 does: as `default_words`, but only A–Z are lower-cased."""
    lines = [text.encode("utf-8", "surrogatepass") for text in sentences]
    return _BETWEEN.join([*lines, b""]).translate(_BYTE_TABLE).decode("ascii").split()


def _with_ascii_letters(text: str) -> str:
    return text if text.isascii() else text.replace("\u212a", "k").replace("\u0130", "i ")


def unicode_words(sentences: Iterable[str]) -> list[str]:
    """Return runs of letters, digits and their marks of any script, case-folded and normalized (NFKC).

    In scripts without blanks between words (Han, kana, Thai, Lao, Burmese, Khmer), each letter is a word.
    """
    pattern, words = _any_script(), []
    for text in sentences:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        words += pattern.findall(folded)
        words.append(MARK)
    return words


def named_tokenizer(name: str, mode: str) -> Tokenizer:
    """Return a tokenizer by name; `mode` ("google", "perl") selects the lower-casing of the default one."""
    if name == "unicode":
        return unicode_words
    return ascii_words if mode == "perl" else default_words


def dropped_share(text: str) -> float:
    """Return the share of a text's letters and digits that the default tokenizer drops, 0–1; 0 for a text without."""
    total = sum(map(str.isalnum, text))
    num_kept = sum(len(word) for word in default_words([text]) if word != MARK)
    return max(0.0, 1 - num_kept / total) if total else 0.0


@cache
def _any_script() -> re.Pattern[str]:
    candidates = map(chr, range(0x300, _LAST_MARK))
    marks = [mark for mark in candidates if unicodedata.category(mark).startswith("M")]
    marked = f"[{''.join(marks)}]*"
    return re.compile(rf"[{BLANKLESS}]{marked}|(?:[^\W_{BLANKLESS}]{marked})+")


class Vocabulary(dict[str, int]):
    """Words of a text → numbers from 1 on; a lookup adds a new word.

    Args:
        stem: the stemmer; None: no stemming.

    Attributes:
        stem: returns the stem of a word.
    """

    def __init__(self, stem: Stem | None) -> None:
        super().__init__()
        self._stem: Stem = stem or str
        self._numbers: defaultdict[str, int] = defaultdict(count(1).__next__)
        self.stem = lru_cache(_MAX_WORDS)(self._stem)
        self.shorten()

    def __missing__(self, word: str) -> int:
        number = self[word] = self._numbers[self._stem(word)]
        return number

    def shorten(self) -> None:
        """Remove all words if there are too many; earlier numbers are invalid then."""
        if not self or len(self) > _MAX_WORDS:
            self.clear()
            self._numbers = defaultdict(count(1).__next__)
            self[MARK] = END

    @property
    def size(self) -> int:
        """The largest number so far plus one."""
        return len(self._numbers) + 1


def distinct_grams(text: Iterable[str], words: int) -> set[tuple[str, ...]]:
    """Return the different runs of some number of words, across the ends of sentences."""
    tokens = plain_words(text)
    return set(zip(*(tokens[start:] for start in range(words)), strict=False))


def plain_words(text: Iterable[str]) -> list[str]:
    """Return ROUGE's lower-cased words of a text without stemming, across the ends of sentences."""
    return [word for word in default_words(text) if word != MARK]
