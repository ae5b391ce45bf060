"""Numbers for words: words with the same stem get the same number, and each distinct word is stemmed once."""

from collections import defaultdict
from functools import lru_cache
from itertools import count

from longsumbench.rouge.stemmers import Stem
from longsumbench.rouge.tokenizer import MARK

_MAX_WORDS = 1 << 18  # more than the distinct words of a corpus of long documents
END = 0  # the number of the mark that ends a sentence


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
