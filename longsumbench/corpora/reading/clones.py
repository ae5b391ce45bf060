"""Near-duplicates: texts that share word sequences, and copies of a summary in its source.

Three rules define a copy. `clones_of` is the rule of the Hierarchical Transformer, for paragraphs. `PageRule` covers
those of WikiSum and Search2Wiki, for whole pages.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from longsumbench.core import Sentences
from longsumbench.rouge.tokenizer import MARK, default_words

_Grams = set[tuple[str, ...]]

# a paragraph with more of a summary's bigrams is a clone (Hierarchical Transformer, §4)
_CLONE_RECALL = 0.8


def clones_of(summary: Sentences, paragraphs: Sequence[Sentences]) -> list[bool]:
    """Return for each paragraph True if it is a clone of the summary: its bigram recall is above `_CLONE_RECALL`.

    Bigram recall is the share of the summary's bigrams that the paragraph has. It is ROUGE-2 recall over ROUGE's
    lower-cased words without stemming, across the ends of sentences. A summary of one word has no
    bigrams and no clones.
    """
    summary_bigrams = _bigrams_of(summary)
    most = _CLONE_RECALL * summary_bigrams.total()
    return [(summary_bigrams & _bigrams_of(text)).total() > most for text in paragraphs]


def _bigrams_of(text: Sentences) -> Counter[tuple[str, str]]:
    return Counter(pairwise(_plain_tokens(text)))


class PageRule(NamedTuple):
    """A page is a clone of an article if r(d, a, n) is above `share` (0–1); n is `words`."""

    words: int
    share: float

    def clones(self, sections: Sequence[Sentences], pages: Iterable[Sentences]) -> list[bool]:
        """Return for each page True if it is a clone of the article with these sections."""
        return [recall > self.share for recall in self.recalls(sections, pages)]

    def recalls(self, sections: Sequence[Sentences], pages: Iterable[Sentences]) -> list[float]:
        """Return r(d, a, n) of each page d: the largest share of a section's n-grams that it has (SEAL, Appendix B).

        n-grams are distinct. They consist of ROUGE's lower-cased words without stemming, across the ends of sentences.
        Sections with fewer words than n do not count.
        """
        section_grams = [_distinct(section, self.words) for section in sections]
        recalls = []
        for page in pages:
            page_grams = _distinct(page, self.words)
            shares = (len(page_grams & grams) / len(grams) for grams in section_grams if grams)
            recalls.append(max(shares, default=0.0))
        return recalls


PAGE_RULES = {
    # SEAL, Appendix B: "a near-clone is detected in Search2Wiki"
    "search2wiki": PageRule(6, 0.2),
    # Liu et al. 2018, as SEAL's Appendix B gives it
    "wikisum": PageRule(1, 0.5),
}


def _distinct(text: Sentences, words: int) -> _Grams:
    tokens = _plain_tokens(text)
    return set(zip(*(tokens[start:] for start in range(words)), strict=False))


def _plain_tokens(text: Sentences) -> list[str]:
    return [word for word in default_words(text) if word != MARK]


class Clones:
    """The texts added so far. Two texts are clones if they share most of their word sequences.

    Args:
        words: the length of a sequence.
        share: of the longer text's sequences; from this share on, two texts are clones.
        one_in: compare only one in this many sequences, for long texts; the choice depends on the sequence alone.
    """

    def __init__(self, words: int = 5, share: float = 0.6, one_in: int = 1) -> None:
        self.words, self.share, self.one_in = words, share, one_in
        self._holders: defaultdict[int, list[int]] = defaultdict(list)
        self._sizes: list[int] = []

    def contain(self, text: str) -> bool:
        """Return True if the text is a clone of an added one."""
        sequences = self._sequences(text)
        shared: Counter[int] = Counter()
        for sequence in sequences:
            shared.update(self._holders.get(sequence, ()))
        return any(
            count >= self.share * max(len(sequences), self._sizes[holder])
            for holder, count in shared.most_common(20)
        )

    def add(self, text: str) -> None:
        """Add a text."""
        sequences = self._sequences(text)
        for sequence in sequences:
            self._holders[sequence].append(len(self._sizes))
        self._sizes.append(len(sequences))

    def _sequences(self, text: str) -> set[int]:
        words = text.lower().split()
        sequences = set()
        for start in range(max(1, len(words) - self.words + 1)):
            sequence = " ".join(words[start : start + self.words])
            number = zlib.crc32(sequence.encode("utf-8", "replace"))
            if number % self.one_in == 0:
                sequences.add(number)
        return sequences
