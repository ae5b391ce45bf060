"""Near-duplicates: among many texts, found by the word sequences they share, and copies of a summary in its source.

Three rules say what a copy is: that of the Hierarchical Transformer for paragraphs (`clones_of`), and for whole pages
those of WikiSum and Search2Wiki (`PageRule`).
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from longsumbench.api.documents import Sentences
from longsumbench.rouge.ngrams import common, counted_words
from longsumbench.rouge.tokenizer import MARK, default_words
from longsumbench.rouge.vocabulary import Vocabulary

_Grams = set[tuple[bytes, ...]]

_COPIED = 0.8  # of a summary's bigrams: a paragraph that holds more is a clone (Hierarchical Transformer, §4)


def clones_of(summary: Sentences, paragraphs: Sequence[Sentences]) -> list[bool]:
    """Tell which paragraphs are clones of the summary: those whose bigram recall against it is above `_COPIED`.

    Bigram recall is the share of the summary's bigrams that stand in the paragraph, each counted as often as it is in
    both: ROUGE-2 recall, over ROUGE's lower-cased words without stemming, across the ends of sentences. A summary of a
    single word has no bigrams, and no clones.
    """
    numbers = Vocabulary(stem=None)
    wanted, *held = (
        counted_words([numbers[word] for word in default_words(text)])[1] for text in (summary, *paragraphs)
    )
    return [common(wanted, bigrams) > _COPIED * wanted.total() for bigrams in held]


def section_recall(page: Sentences, sections: Iterable[Sentences], words: int) -> float:
    """Return r(d, a, n): the largest share of a section's n-grams that a page has (SEAL, Appendix B), 0–1.

    n-grams are distinct ones of ROUGE's lower-cased words without stemming, across the ends of sentences. A section
    without any, of fewer words than n, does not count.

    Args:
        page: d.
        sections: of the article a.
        words: n.
    """
    return _largest_share(_distinct(page, words), [_distinct(section, words) for section in sections])


class PageRule(NamedTuple):
    """When a page is a clone of an article: when r(d, a, n) is above a share.

    Attributes:
        words: n.
        share: 0–1.
    """

    words: int
    share: float

    def clones(self, sections: Sequence[Sentences], pages: Iterable[Sentences]) -> list[bool]:
        """Tell which pages are clones of the article that has these sections."""
        wanted = [_distinct(section, self.words) for section in sections]
        return [_largest_share(_distinct(page, self.words), wanted) > self.share for page in pages]


PAGE_RULES = {
    "search2wiki": PageRule(6, 0.2),  # SEAL, Appendix B: "a near-clone is detected in Search2Wiki"
    "wikisum": PageRule(1, 0.5),  # Liu et al. 2018, as SEAL's Appendix B gives it
}


def _largest_share(held: _Grams, wanted: Iterable[_Grams]) -> float:
    """Return the largest share of any of the sets of n-grams that is held; sets without any do not count."""
    return max((len(held & grams) / len(grams) for grams in wanted if grams), default=0.0)


def _distinct(text: Sentences, words: int) -> _Grams:
    """Return the n-grams of a text."""
    found = [word for word in default_words(text) if word != MARK]
    return set(zip(*(found[start:] for start in range(words)), strict=False))


class Clones:
    """Texts seen so far. Two texts are clones when they share most of their word sequences.

    Args:
        words: the length of a sequence.
        share: of the sequences of the longer text, from which on the other is its clone.
        one_in: only every so-manieth sequence is looked at, for long texts; the choice depends on the sequence alone.
    """

    def __init__(self, words: int = 5, share: float = 0.6, one_in: int = 1) -> None:
        self.words, self.share, self.one_in = words, share, one_in
        self._holders: defaultdict[int, list[int]] = defaultdict(list)
        self._sizes: list[int] = []

    def contain(self, text: str) -> bool:
        """Tell whether the text is a clone of one that was added."""
        sequences = self._sequences(text)
        shared = Counter(holder for sequence in sequences for holder in self._holders.get(sequence, ()))
        return any(
            count >= self.share * max(len(sequences), self._sizes[holder]) for holder, count in shared.most_common(20)
        )

    def add(self, text: str) -> None:
        """Remember a text."""
        sequences = self._sequences(text)
        for sequence in sequences:
            self._holders[sequence].append(len(self._sizes))
        self._sizes.append(len(sequences))

    def _sequences(self, text: str) -> set[int]:
        words = text.lower().split()
        starts = range(max(1, len(words) - self.words + 1))
        hashes = (zlib.crc32(" ".join(words[at : at + self.words]).encode("utf-8", "replace")) for at in starts)
        return {sequence for sequence in hashes if sequence % self.one_in == 0}
