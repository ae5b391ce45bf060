"""ROUGE of a prediction against its references.

    sentences --tokenizer--> words --vocabulary--> numbers --overlap--> counts --> Score of each type

With one reference, mode `google` equals `rouge_score` 0.1.2 to the last bit, and mode `perl` equals ROUGE-1.5.5
(`-n 2 -m -a`) to its five digits. With several, ROUGE-1.5.5 adds up hits and words, which neither rule here does.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple

from longsumbench.core import Scoring
from longsumbench.core.versions import SCORING_VERSION
from longsumbench.rouge import stemmers
from longsumbench.rouge.overlap import Overlap, common, count_overlap
from longsumbench.rouge.tokenizer import END, MARK, Vocabulary, default_words, named_tokenizer
from longsumbench.sentences import split_for_rouge

IMPLEMENTATION = f"longsumbench-{SCORING_VERSION}"
ROUGE_TYPES = ("rouge1", "rouge2", "rougeL", "rougeLsum")
# the default rule for several references
_RULES = {"google": "best", "perl": "jackknife"}

_LSUM = "rougeLsum"
_TEXT_TYPES = (*(f"rouge{n}" for n in range(1, 10)), "rougeL", _LSUM)  # of `rouge_score`

_Text = Sequence[str]  # sentences
_CountOverlap = Callable[[list[int], list[int], int], Overlap]
_Ids = defaultdict[Hashable, int]
# a text's tokens: as one sequence, and by sentences; 0 ends each
_Numbered = tuple[list[int], list[int]]
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
        scoring: its mode, stemming, tokenizer and rule for several references. The rule is "best" (for each type, the
            reference with the best F) or "jackknife" (the best of all but one, averaged); None: "best" in google mode,
            "jackknife" in perl mode.
        kernels: "python", or "auto" (numba if it can be loaded). The scores are the same.

    Attributes:
        stemmer: its name, for signatures; in perl mode with the version of WordNet's lists.

    Raises:
        EnvironmentProblem: perl mode needs WordNet's lists for stemming, and they are not installed.
    """

    def __init__(self, scoring: Scoring, kernels: str = "auto") -> None:
        self.mode, self.tokenizer = scoring.mode, scoring.tokenizer
        self._arguments = scoring, kernels
        self.references = scoring.references or _RULES[self.mode]
        self._tokenize = named_tokenizer(self.tokenizer, self.mode)
        self.stemmer, stem_word = _stemmer(scoring)
        self._vocabulary = Vocabulary(stem_word)

    @cached_property
    def _overlap(self) -> _CountOverlap:
        # Numba is loaded by the first text: many commands only check settings.
        return _overlap_function(self._arguments[1])

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
        if any(isinstance(text, str) for text in (prediction, *references)):
            raise TypeError("a text is a list of its sentences, not a string")
        if not references:
            raise ValueError("a prediction needs at least one reference")
        self._vocabulary.shorten()
        numbers = self._vocabulary.__getitem__
        candidate = list(map(numbers, self._tokenize(prediction)))
        against = []
        for reference in references:
            words = list(map(numbers, self._tokenize(reference)))
            counts = self._overlap(words, candidate, self._vocabulary.size)
            against.append(_scores(counts, self.mode))
        scores = {}
        for kind, candidates in zip(ROUGE_TYPES, zip(*against, strict=True), strict=True):
            if len(candidates) == 1 or self.references == "best":
                scores[kind] = max(candidates, key=_fmeasure)
            else:
                scores[kind] = _jackknife(candidates, self.mode)
        return scores

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # another process fills its own vocabulary
        return type(self), self._arguments

    def has_words(self, sentences: _Text) -> bool:
        """Return True if the tokenizer finds a word; otherwise, nothing can match."""
        return any(word != MARK for word in self._tokenize(sentences))

    def words(self, text: str) -> list[str]:
        """Return the tokenized and stemmed words of a text."""
        return [self._vocabulary.stem(word) for word in self._tokenize([text]) if word != MARK]


class RougeScorer:
    """ROUGE of plain texts: a drop-in for `rouge_score.rouge_scorer.RougeScorer` 0.1.2. Threads may share a scorer.

    Args:
        rouge_types: "rouge1" to "rouge9", "rougeL", "rougeLsum".
        use_stemmer: stem words of more than three letters; for the default tokenizer.
        split_summaries: for rougeLsum, split texts with nltk's Punkt; False: at line breaks.
        tokenizer: any object with `tokenize(text)`; None: words of a–z and 0–9, in lower case.
    """

    def __init__(
        self,
        rouge_types: Sequence[str],
        use_stemmer: bool = False,
        split_summaries: bool = False,
        tokenizer: Any = None,
    ) -> None:
        self.rouge_types = rouge_types
        self._arguments = rouge_types, use_stemmer, split_summaries, tokenizer
        self._rule = "nltk" if split_summaries and _LSUM in rouge_types else "newline"
        self._tokenizer: Any = tokenizer or None
        self._vocabulary = Vocabulary(stemmers.google_stem() if use_stemmer else None)
        self._overlap = _overlap_function("auto")
        # of the vocabulary, and of the memory that the kernels reuse
        self._lock = Lock()

    def score(self, target: str, prediction: str) -> dict[str, Score]:
        """Score a prediction against a target: type → score, 0–1; errors as `score_multi`."""
        return self._score_targets([target], prediction)[0]

    def score_multi(self, targets: Sequence[str], prediction: str) -> dict[str, Score]:
        """Score a prediction against several targets: for each type, the first of those with the best F counts.

        Raises:
            ValueError: a type of ROUGE is invalid, or there is no target.
            EnvironmentProblem: `split_summaries` needs nltk's data, and they are missing.
        """
        scores = self._score_targets(targets, prediction)
        best = {}
        for kind in self.rouge_types:
            best[kind] = max((score[kind] for score in scores), key=_fmeasure)
        return best

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments

    def _score_targets(self, targets: Iterable[str], prediction: str) -> list[dict[str, Score]]:
        for kind in self.rouge_types:
            if kind not in _TEXT_TYPES:
                problem = "rougen requires positive n" if kind == "rouge0" else "Invalid rouge type"
                raise ValueError(f"{problem}: {kind}")
        with self._lock:
            self._vocabulary.shorten()
            ids: _Ids = defaultdict(count(1).__next__)  # of a custom tokenizer's tokens
            candidate = self._numbered(prediction, ids)
            scores = []
            for target in targets:
                numbered = self._numbered(target, ids)
                scores.append(self._scores(numbered, candidate, len(ids) + 1))
            return scores

    def _numbered(self, text: str, ids: _Ids) -> _Numbered:
        if self._tokenizer is None:
            tokens = default_words(split_for_rouge(text, self._rule))
            words = list(map(self._vocabulary.__getitem__, tokens))
            return words, words
        # rouge_score tokenizes the whole text and its sentences, each only if a type needs it
        texts = [] if list(self.rouge_types) == [_LSUM] else [text]
        sentences = split_for_rouge(text, self._rule) if _LSUM in self.rouge_types else []
        return self._numbered_tokens(texts, ids), self._numbered_tokens(sentences, ids)

    def _numbered_tokens(self, texts: Iterable[str], ids: _Ids) -> list[int]:
        numbers = []
        for text in texts:
            numbers += [ids[token] for token in self._tokenizer.tokenize(text)]
            numbers.append(END)
        return numbers

    def _scores(self, target: _Numbered, candidate: _Numbered, num_ids: int) -> dict[str, Score]:
        size = max(self._vocabulary.size, num_ids)
        overlap = union = self._overlap(target[0], candidate[0], size)
        if self._tokenizer is not None:
            union = self._overlap(target[1], candidate[1], size)
        hits = dict(zip(ROUGE_TYPES, [*overlap[2:5], union.union], strict=True))
        scores = {}
        for kind in self.rouge_types:
            words = union if kind == _LSUM else overlap
            n = int(kind[-1]) if kind[-1].isdigit() else 1
            if kind not in hits:
                hits[kind] = common(_ngrams(target[0], n), _ngrams(candidate[0], n))
            sizes = words.candidate - n + 1, words.reference - n + 1
            scores[kind] = _google_score(hits[kind], *sizes)
        return scores


def _ngrams(sequence: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
    words = [word for word in sequence if word != END]
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def _stemmer(scoring: Scoring) -> tuple[str, stemmers.Stem | None]:
    """Return the name of the stemmer, for signatures, and the stemmer."""
    if not scoring.stem:
        return "none", None
    if scoring.mode == "google":
        return "porter", stemmers.google_stem()
    exceptions = stemmers.read_exceptions(scoring.wordnet)
    return f"perl-porter+wordnet-{exceptions.version}", stemmers.perl_stem(exceptions)


def _overlap_function(kernels: str) -> _CountOverlap:
    """Return the function that counts the overlap.

    Numba may be missing, incompatible with the installed numpy, or have no folder for its cache (a RuntimeError).
    """
    if kernels == "auto":
        with suppress(ImportError, RuntimeError):
            from longsumbench.rouge.kernels import Kernels

            return Kernels().overlap
    return lambda reference, candidate, words: count_overlap(reference, candidate)


def _scores(counts: Overlap, mode: str) -> list[Score]:
    reference, candidate, *hits = counts
    score = _google_score if mode == "google" else _perl_score
    scores = [score(common_words, candidate, reference) for common_words in hits]
    scores[1] = score(counts.bigrams, candidate - 1, reference - 1)
    return scores


def _google_score(hits: int, candidate: int, reference: int) -> Score:
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
    # of equal ones, the first is the best
    second_best, best = sorted(reversed(scores), key=_fmeasure)[-2:]
    times = len(scores) - 1
    mean = [(times * high + low) / len(scores) for high, low in zip(best, second_best, strict=True)]
    return Score(*(map(_five_digits, mean) if mode == "perl" else mean))
