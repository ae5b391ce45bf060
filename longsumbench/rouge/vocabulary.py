"""Numbers for words: words with one stem get one number, and each distinct word is stemmed once."""

from functools import lru_cache

from longsumbench.rouge.stemmers import Stem
from longsumbench.rouge.tokenizer import MARK

_WORDS_REMEMBERED = 1 << 18  # a corpus of long documents has fewer distinct words
END = 0  # the number of the mark that ends a sentence


class Vocabulary(dict[bytes, int]):
    """Words as they stand in a text → numbers from 1 on; filled as words are looked up.

    Args:
        stem: what makes two words one; None: nothing does.

    Attributes:
        stem: what a word counts as.
    """

    def __init__(self, stem: Stem | None) -> None:
        super().__init__()
        self._stem: Stem = stem or str
        self._numbers: dict[str, int] = {}
        self.stem = lru_cache(_WORDS_REMEMBERED)(self._stem_of)
        self.shorten()

    def __missing__(self, word: bytes) -> int:
        numbers = self._numbers
        number = self[word] = numbers.setdefault(self._stem(word.decode()), len(numbers) + 1)
        return number

    def _stem_of(self, word: bytes) -> str:
        """Return what a word counts as."""
        return self._stem(word.decode())

    def shorten(self) -> None:
        """Forget all words once there are too many; numbers from before mean nothing then."""
        if not self or len(self) > _WORDS_REMEMBERED:
            self.clear()
            self._numbers.clear()
            self[MARK] = END

    @property
    def size(self) -> int:
        """The greatest number so far, and one."""
        return len(self._numbers) + 1
