"""ROUGE as Google's `rouge_score` computes it, bit for bit, over texts that are already split into sentences."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import NamedTuple

from rouge_score import rouge_scorer, tokenize, tokenizers

from longsumbench.documents import Sentences

TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
WORDS_REMEMBERED = 1 << 18  # stems kept; a corpus of long documents has fewer distinct words


class Score(NamedTuple):
    """Precision, recall and their harmonic mean, each 0–1."""

    p: float
    r: float
    f: float


class GoogleRouge:
    """The scorer: `rouge_score` with its own tokenizer and stemmer, each distinct word stemmed once.

    `rougeL` reads a text as one sequence; `rougeLsum` is the union LCS over its sentences.

    Args:
        stem: whether words of more than three letters are reduced to their Porter stems.
    """

    def __init__(self, stem: bool = True) -> None:
        self.stem = stem
        self._tokenizer = _Tokenizer(stem)
        self._scorer = rouge_scorer.RougeScorer(list(TYPES), tokenizer=self._tokenizer)

    def score(self, prediction: Sentences, references: Sequence[Sentences]) -> dict[str, Score]:
        """Score a prediction against the reference of the best F, chosen for each type by itself.

        Args:
            prediction: its sentences; none for an empty one, which scores 0.
            references: at least one, each a tuple of sentences.
        """
        scores = self._scorer.score_multi([_lines(reference) for reference in references], _lines(prediction))
        return {name: Score(*map(float, score)) for name, score in scores.items()}

    def has_words(self, sentences: Sentences) -> bool:
        """Tell whether the tokenizer finds a word: without one, nothing can match."""
        return any(self._tokenizer.tokenize(sentence) for sentence in sentences)


def implementation() -> str:
    """Name the library underneath and its version ("rouge_score-0.1.2")."""
    return f"rouge_score-{version('rouge-score')}"


class _Tokenizer(tokenizers.Tokenizer):
    """rouge_score's default tokenizer, with a memory of stems."""

    def __init__(self, stem: bool) -> None:
        self._stemmer = _RememberingStemmer() if stem else None

    def tokenize(self, text: str) -> list[str]:
        words: list[str] = tokenize.tokenize(text, self._stemmer)
        return words


class _RememberingStemmer:
    """The Porter stemmer that rouge_score uses: a fifth of its time on short texts without the memory."""

    def __init__(self) -> None:
        self.stem = lru_cache(WORDS_REMEMBERED)(tokenizers.porter.PorterStemmer().stem)


def _lines(sentences: Sentences) -> str:
    """One sentence a line, as rouge_score wants them; line breaks within a sentence do not end it."""
    return "\n".join(sentence.replace("\n", " ") for sentence in sentences)
