"""Base class of the metrics that compare words: those of ROUGE's tokenizer, in lower case, not stemmed."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

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

    def signature(self, n: int) -> str:
        """Name the metric, its version and the tokenizer."""
        return f"{self.name}:{self.version}|tokenizer:{self.scoring.tokenizer}"


def ngrams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of some words."""
    return zip(*(words[start:] for start in range(n)), strict=False)


@lru_cache(1)  # all metrics of one example follow each other
def _source_words(example: Example, name: str) -> _WordTuple:
    return _tokenize_sentences(tuple(example.sentences()), name)


def _tokenize_sentences(sentences: Sentences, name: str) -> _WordTuple:
    return tuple(word for word in named_tokenizer(name, "google")(sentences) if word != MARK)
