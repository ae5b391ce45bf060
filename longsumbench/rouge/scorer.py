"""ROUGE of a prediction against its references.

    sentences --tokenizer--> words --vocabulary--> numbers --overlap--> counts --> Score of each type

With one reference, mode `google` equals `rouge_score` 0.1.2 to the last bit, and mode `perl` equals ROUGE-1.5.5
(`-n 2 -m -a`) to its five digits. With several, ROUGE-1.5.5 adds up hits and words, which neither rule here does.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

from longsumbench.core import check_choice
from longsumbench.errors import UsageError
from longsumbench.rouge import stemmers
from longsumbench.rouge.overlap import Overlap, count_overlap
from longsumbench.rouge.tokenizer import MARK, TOKENIZERS, Vocabulary, named_tokenizer
from longsumbench.sentences import SPLITTER_NAME

SCORING_VERSION = 1  # increases when scores change
IMPLEMENTATION = f"longsumbench-{SCORING_VERSION}"
ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_MODES = ("google", "perl")
_RULES = {"google": "best", "perl": "jackknife"}  # the default rule for several references
_KERNELS = ("auto", "numba", "python")

_Text = Sequence[str]  # sentences
_fmeasure = attrgetter("fmeasure")


class Score(NamedTuple):
    """Precision, recall and their harmonic mean, each 0–1; as `rouge_score.scoring.Score`."""

    precision: float
    recall: float
    fmeasure: float


_ZERO = Score(0.0, 0.0, 0.0)


class SuiteScorer:
    """ROUGE-1, -2, -L (a text as one sequence) and -Lsum (union LCS over sentences) of texts given as sentences.

    A line break within a sentence does not end it.

    Args:
        mode: "google" or "perl".
        stem: stem words of more than three letters.
        tokenizer: "default" (a–z and 0–9) or "unicode" (letters and digits of every script).
        wordnet: for stemming in perl mode: the folder of WordNet's exception lists, "none", or None to search for it.
        references: rule for several references: "best" (for each type, the one with the best F) or "jackknife" (the
            best of all but one, averaged); None: "best" in google mode, "jackknife" in perl mode.
        kernels: "numba", "python", or "auto" (numba if it can be loaded). The scores are the same.

    Attributes:
        stemmer: its name, for signatures; in perl mode with the version of WordNet's lists.

    Raises:
        UsageError: an argument is invalid, or numba is requested and cannot be loaded.
        EnvironmentProblem: perl mode needs WordNet's lists for stemming, and they are not installed.
    """

    def __init__(
        self,
        mode: str = "google",
        stem: bool = True,
        tokenizer: str = "default",
        wordnet: str | None = None,
        references: str | None = None,
        kernels: str = "auto",
    ) -> None:
        check_choice("mode", mode, _MODES)
        check_choice("tokenizer", tokenizer, TOKENIZERS)
        self._arguments = mode, stem, tokenizer, wordnet, references, kernels
        self.mode, self.tokenizer = mode, tokenizer
        self.references = _RULES[mode] if references is None else references
        check_choice("references", self.references, tuple(_RULES.values()))
        self._tokenize = named_tokenizer(tokenizer, mode)
        self.stemmer, stem_word = _stemmer(mode, wordnet) if stem else ("none", None)
        self._vocabulary = Vocabulary(stem_word)
        self._overlap = overlap_function(kernels)

    def score(self, prediction: _Text, references: Sequence[_Text]) -> dict[str, Score]:
        """Score a prediction against its references.

        Args:
            prediction: its sentences; an empty prediction scores 0.
            references: the sentences of at least one reference.

        Returns:
            Type → score, in the order of `ROUGE_TYPES`; five digits in perl mode.

        Raises:
            TypeError: a text is a string instead of a list of sentences.
            ValueError: there is no reference.
        """
        if isinstance(prediction, str) or any(isinstance(reference, str) for reference in references):
            raise TypeError("a text is a list of its sentences, not a string")
        if not references:
            raise ValueError("a prediction needs at least one reference")
        self._vocabulary.shorten()
        numbers = self._vocabulary.__getitem__
        candidate = list(map(numbers, self._tokenize(prediction)))
        against = []
        for reference in references:
            counts = self._overlap(list(map(numbers, self._tokenize(reference))), candidate, self._vocabulary.size)
            against.append(_scores(counts, self.mode))
        if len(against) == 1:
            scores = against[0]
        elif self.references == "best":
            scores = [max(candidates, key=_fmeasure) for candidates in zip(*against, strict=True)]
        else:
            scores = [_jackknife(candidates, self.mode) for candidates in zip(*against, strict=True)]
        return dict(zip(ROUGE_TYPES, scores, strict=True))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments  # another process fills its own vocabulary

    def has_words(self, sentences: _Text) -> bool:
        """Return True if the tokenizer finds a word; otherwise, nothing can match."""
        return any(word != MARK for word in self._tokenize(sentences))

    def words(self, text: str) -> list[str]:
        """Return the tokenized and stemmed words of a text."""
        return [self._vocabulary.stem(word) for word in self._tokenize([text]) if word != MARK]


def _stemmer(mode: str, wordnet: str | None) -> tuple[str, stemmers.Stem]:
    if mode == "google":
        return "porter", stemmers.google_stem()
    exceptions = stemmers.read_exceptions(wordnet)
    return f"perl-porter+wordnet-{exceptions.version}", stemmers.perl_stem(exceptions)


def overlap_function(kernels: str) -> Callable[[list[int], list[int], int], Overlap]:
    """Return the function that counts the overlap.

    Numba may be missing, incompatible with the installed numpy, or have no folder for its cache (a RuntimeError).
    """
    check_choice("kernels", kernels, _KERNELS)
    if kernels != "python":
        try:
            from longsumbench.rouge.kernels import Kernels

            return Kernels().overlap
        except (ImportError, RuntimeError) as error:
            if kernels == "numba":
                raise UsageError(
                    f"kernels=numba: numba cannot be loaded ({error}): pip install -e '.[fast]' in the clone"
                ) from error
    return lambda reference, candidate, words: count_overlap(reference, candidate)


def _scores(counts: Overlap, mode: str) -> list[Score]:
    reference, candidate, unigrams, bigrams, sequence, union = counts
    score = google_score if mode == "google" else _perl_score
    return [
        score(unigrams, candidate, reference),
        score(bigrams, candidate - 1, reference - 1),
        score(sequence, candidate, reference),
        score(union, candidate, reference),
    ]


def google_score(hits: int, candidate: int, reference: int) -> Score:
    """Return the score of a number of hits among the n-grams of both texts, to the last bit as `rouge_score`."""
    if not hits:
        return _ZERO
    precision, recall = hits / candidate, hits / reference
    return Score(precision, recall, 2 * precision * recall / (precision + recall))


def _perl_score(hits: int, candidate: int, reference: int) -> Score:
    """Round precision and recall before F: ROUGE-1.5.5 computes F from what it prints."""
    if not hits:
        return _ZERO
    precision, recall = _five_digits(hits / candidate), _five_digits(hits / reference)
    total = precision + recall
    return Score(precision, recall, _five_digits(2 * precision * recall / total) if total else 0.0)


def _five_digits(value: float) -> float:
    return float(f"{value:.5f}")


def _jackknife(scores: Sequence[Score], mode: str) -> Score:
    """Average the best score of all references but one, over the reference left out.

    This is the best score, except for one case: without the best reference, it is the second best.
    """
    second_best, best = sorted(reversed(scores), key=_fmeasure)[-2:]  # of equal ones, the first is the best
    times = len(scores) - 1
    mean = [(times * high + low) / len(scores) for high, low in zip(best, second_best, strict=True)]
    return Score(*(map(_five_digits, mean) if mode == "perl" else mean))


def signature(scorer: SuiteScorer, n: int, splitting: str = SPLITTER_NAME, zero_for_empty: bool = False) -> str:
    """Describe in one string how a mean ROUGE score was computed: all that must agree before two are compared.

    If `zero_for_empty`, an example without words in its references scored 0; else it was skipped.
    """
    parts = {
        "rouge": IMPLEMENTATION,
        "mode": scorer.mode,
        "stemmer": scorer.stemmer,
        "tokenizer": scorer.tokenizer,
        "sentences": splitting,
        "L": "sentence",
        "Lsum": "union",
        "truncation": "none",
        "references": f"{scorer.references}-f",
        "n": str(n),
        "v": str(SCORING_VERSION),
    }
    if zero_for_empty:
        parts["empty_references"] = "zero"
    return "|".join(f"{name}:{value}" for name, value in parts.items())
