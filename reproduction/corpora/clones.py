"""Near-duplicates: copies of a summary in its source.

Two rules define a copy. `find_clones` is the rule of the Hierarchical Transformer, for paragraphs. `PageRule` covers
those of WikiSum and Search2Wiki, for whole pages.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from longsumbench.core import Sentences
from longsumbench.rouge.tokenizer import distinct_grams, plain_words

# a paragraph with more of a summary's bigrams is a clone (Hierarchical Transformer, §4)
_CLONE_RECALL = 0.8


def find_clones(summary: Sentences, paragraphs: Sequence[Sentences]) -> list[bool]:
    """Return for each paragraph True if it is a clone of the summary: its bigram recall is above `_CLONE_RECALL`.

    Bigram recall is the share of the summary's bigrams that the paragraph has. It is ROUGE-2 recall over ROUGE's
    lower-cased words without stemming, across the ends of sentences. A summary of one word has no
    bigrams and no clones.
    """
    summary_bigrams = _count_bigrams(summary)
    most = _CLONE_RECALL * summary_bigrams.total()
    return [(summary_bigrams & _count_bigrams(text)).total() > most for text in paragraphs]


def _count_bigrams(text: Sentences) -> Counter[tuple[str, str]]:
    return Counter(pairwise(plain_words(text)))


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
        section_grams = [distinct_grams(section, self.words) for section in sections]
        recalls = []
        for page in pages:
            page_grams = distinct_grams(page, self.words)
            shares = (len(page_grams & grams) / len(grams) for grams in section_grams if grams)
            recalls.append(max(shares, default=0.0))
        return recalls


PAGE_RULES = {
    # SEAL, Appendix B: "a near-clone is detected in Search2Wiki"
    "search2wiki": PageRule(6, 0.2),
    # Liu et al. 2018, as SEAL's Appendix B gives it
    "wikisum": PageRule(1, 0.5),
}
