"""The words that the metrics beside ROUGE count: those of ROUGE's tokenizer, in lower case, not stemmed."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from longsumbench.api.documents import Example, Sentences
from longsumbench.api.metric import Metric
from longsumbench.rouge.tokenizer import MARK, named_tokenizer

LONGEST_NGRAM = 4  # words of an n-gram

_Words = tuple[bytes, ...]


class WordMetric(Metric):
    """A metric that looks at words alone; a text is one sequence of them, whatever its sentences."""

    def words(self, *sentences: str) -> _Words:
        """Return the words of a text."""
        return _words(sentences, self.scoring.tokenizer)

    def source_words(self, example: Example) -> _Words:
        """Return the words of what is to be summarized; titles, queries and section names left out."""
        return _source_words(example, self.scoring.tokenizer)

    def signature(self, n: int) -> str:
        """Name the metric, its version and the tokenizer; the mean is over the examples to which a column applies."""
        return f"{self.name}:{self.version}|tokenizer:{self.scoring.tokenizer}"


def ngrams(words: Sequence[bytes], n: int) -> Iterator[tuple[bytes, ...]]:
    """Yield the stretches of `n` neighbouring words."""
    return zip(*(words[start:] for start in range(n)), strict=False)


@lru_cache(1)  # an example's metrics ask one after the other
def _source_words(example: Example, name: str) -> _Words:
    return _words(tuple(example.sentences()), name)


def _words(sentences: Sentences, name: str) -> _Words:
    return tuple(word for word in named_tokenizer(name, "google")(sentences) if word != MARK)
