"""Metrics that compare words: those of ROUGE's tokenizer, in lower case, not stemmed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from longsumbench.core import Example, Metric, Sentences
from longsumbench.rouge.tokenizer import MARK, named_tokenizer

LONGEST_NGRAM = 4  # words of an n-gram

_WordTuple = tuple[str, ...]


class WordMetric(Metric):
    """A metric of words; a text is one sequence of words, across its sentences."""

    def words(self, *sentences: str) -> _WordTuple:
        """Return the words of a text."""
        return _tokenize_sentences(sentences, self.scoring.tokenizer)

    def source_words(self, example: Example) -> _WordTuple:
        """Return the words of the source, without titles, queries and section names."""
        return _source_words(example, self.scoring.tokenizer)

    def known_words(self, example: Example) -> str:
        """Return the words of the source, then those of the title and the query, each between blanks."""
        return _known_words(example, self.scoring.tokenizer)

    def signature(self, n: int) -> str:
        """Name the metric, its version and the tokenizer."""
        return f"{self.name}:{self.version}|tokenizer:{self.scoring.tokenizer}"


def ngrams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of some words."""
    return zip(*(words[start:] for start in range(n)), strict=False)


@lru_cache(1)  # all metrics of one example follow each other
def _source_words(example: Example, name: str) -> _WordTuple:
    return _tokenize_sentences(tuple(example.sentences()), name)


@lru_cache(1)
def _known_words(example: Example, name: str) -> str:
    topic = _tokenize_sentences((example.topic or "",), name)
    # no sequence of words crosses the mark
    return f" {' '.join([*_source_words(example, name), MARK, *topic])} "


def _tokenize_sentences(sentences: Sentences, name: str) -> _WordTuple:
    return tuple([word for word in named_tokenizer(name, "google")(sentences) if word != MARK])


class NovelNgrams(WordMetric):
    """The share of the summary's n-grams that the source does not have, n = 1 … 4.

    Every occurrence of an n-gram counts. A column does not apply to a summary of fewer than n words.
    """

    name = "novel_ngrams"
    columns = tuple(f"novel_ngrams_{n}" for n in range(1, LONGEST_NGRAM + 1))

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `novel_ngrams_1` … `novel_ngrams_4` → 0–1 or NaN."""
        source, summary = self.source_words(example), self.words(prediction)
        shares = {}
        for n, column in enumerate(self.columns, start=1):
            grams = list(ngrams(summary, n))
            known = set(grams).intersection(ngrams(source, n))
            novel = [gram not in known for gram in grams]
            shares[column] = sum(novel) / len(novel) if novel else np.nan
        return shares


class Repetition(WordMetric):
    """The share of the summary's n-grams that occurred earlier in it, n = 1 … 4.

    A column does not apply to a summary of fewer than n words.
    """

    needs_source = False
    name = "repetition"
    columns = tuple(f"repetition_{n}" for n in range(1, LONGEST_NGRAM + 1))

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `repetition_1` … `repetition_4` → 0–1 or NaN."""
        summary, shares = self.words(prediction), {}
        for n, column in enumerate(self.columns, start=1):
            grams = list(ngrams(summary, n))
            shares[column] = 1 - len(set(grams)) / len(grams) if grams else np.nan
        return shares


class LengthRatio(WordMetric):
    """The summary's words per reference word, and both lengths in words.

    The references' length is the mean over those with words; if there are none, only the summary's length applies.
    """

    needs_source = False
    name = "length_ratio"
    columns = ("length_ratio", "length_summary", "length_references")
    units = MappingProxyType(dict(zip(columns, ("ratio", "words", "words"), strict=True)))

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `length_ratio` → a ratio or NaN, the others → words or NaN."""
        length = float(len(self.words(prediction)))
        lengths = [len(self.words(*reference)) for reference in example.references]
        lengths = [expected for expected in lengths if expected]
        expected = float(np.mean(lengths)) if lengths else np.nan
        return dict(zip(self.columns, (length / expected, length, expected), strict=True))


class Copied(WordMetric):
    """How much of a summary is copied from the source.

    * `copied_bigrams`: the share of the summary's pairs of words that the source has: 1 − `novel_ngrams_2`;
    * `copied_longest`: the length of the longest sequence of words that both have, in words.

    The metric does not apply to a summary of fewer than two words.
    """

    name = "copied"
    columns = ("copied_bigrams", "copied_longest")
    units = MappingProxyType({columns[1]: "words"})
    agrees = "τ 0.83 and 0.44 with factuality of papers (people 0.75 and 0.83), 0.42 with errors in meetings"

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `copied_bigrams` → 0–1, `copied_longest` → words; both may be NaN."""
        source, summary = self.source_words(example), self.words(prediction)
        if len(summary) < 2:
            return dict.fromkeys(self.columns, np.nan)
        positions = _find_pairs(source, summary)
        num_shared, longest = 0, int(not set(summary).isdisjoint(source))
        # position of a pair in the source → length of the common sequence that ends with it
        lengths: dict[int, int] = {}
        for pair in pairwise(summary):
            num_shared += pair in positions
            lengths = {place: lengths.get(place - 1, 1) + 1 for place in positions.get(pair, ())}
            longest = max(longest, *lengths.values(), 0)
        return {
            "copied_bigrams": num_shared / (len(summary) - 1),
            "copied_longest": float(longest),
        }


class Extractive(WordMetric):
    """Coverage, density and compression of a summary (Grusky et al. 2018, §4).

    With the words A of the source, the words S of the summary and their shared fragments F(A, S):

    * `extractive_coverage`: Σ|f| / |S|, the share of the summary's words that are in a fragment;
    * `extractive_density`: Σ|f|² / |S|, in words: the mean length of the fragment of a summary word;
    * `extractive_compression`: |A| / |S|, source words per summary word.

    The metric does not apply to a summary without words.
    """

    name = "extractive"
    columns = (
        "extractive_coverage",
        "extractive_density",
        "extractive_compression",
    )
    units = MappingProxyType({columns[1]: "words", columns[2]: "source words a word"})

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; coverage → 0–1, density → words, compression → a ratio; all may be NaN."""
        source, summary = self.source_words(example), self.words(prediction)
        if not summary:
            return dict.fromkeys(self.columns, np.nan)
        lengths = fragment_lengths(source, summary)
        squares = [length * length for length in lengths]
        sums = np.array([sum(lengths), sum(squares), len(source)])
        return dict(zip(self.columns, (sums / len(summary)).tolist(), strict=True))


def fragment_lengths(source: Sequence[str], summary: Sequence[str]) -> list[int]:
    """Return the lengths of the fragments that source and summary share, in the summary's order.

    The procedure is that of Figure 3 in the paper. For a word of the summary, it searches the source from the beginning
    for the longest match with the following words. After a match, the search continues after its end. The
    next word is the one after the longest match. A word that is not in the source is in no fragment.

    """
    common, positions = set(summary).intersection(source), _find_pairs(source, summary)
    lengths, start = [], 0
    while start < len(summary):
        length = int(summary[start] in common)
        match_end = 0
        # only places of word pairs are visited: a match of one word never hides a longer one
        for position in positions.get(tuple(summary[start : start + 2]), ()):
            if position >= match_end:
                match_length = _num_shared(source, position, summary, start)
                match_end = position + match_length
                length = max(length, match_length)
        if length:
            lengths.append(length)
        start += max(length, 1)
    return lengths


def _find_pairs(
    source: Sequence[str], summary: Sequence[str]
) -> Mapping[_WordTuple, Sequence[int]]:
    """Return pair of neighbouring summary words → its positions in the source."""
    pairs: set[_WordTuple] = set(pairwise(summary))
    positions: defaultdict[_WordTuple, list[int]] = defaultdict(list)
    for position, pair in enumerate(pairwise(source)):
        if pair in pairs:
            positions[pair].append(position)
    return positions


def _num_shared(source: Sequence[str], position: int, summary: Sequence[str], start: int) -> int:
    limit = min(len(source) - position, len(summary) - start)
    for count in range(limit):
        if source[position + count] != summary[start + count]:
            return count
    return limit
