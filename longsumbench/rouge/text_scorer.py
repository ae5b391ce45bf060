"""A drop-in for `rouge_score.rouge_scorer.RougeScorer` 0.1.2: the same arguments, results and errors."""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, count
from operator import attrgetter
from threading import Lock
from typing import Any

from longsumbench.rouge.overlap import common
from longsumbench.rouge.scorer import Score, google_score, overlap_function
from longsumbench.rouge.stemmers import google_stem
from longsumbench.rouge.tokenizer import END, Vocabulary, default_words
from longsumbench.sentences import split_for_rouge

_LSUM = "rougeLsum"
_fmeasure = attrgetter("fmeasure")
_NGRAM_TYPE = re.compile(r"rouge([1-9])")


_Ids = defaultdict[Hashable, int]
_Numbers = tuple[list[int], list[int]]  # of a text's tokens: as one sequence, and by sentences; 0 ends each


class RougeScorer:
    """ROUGE of plain texts, as `rouge_score.rouge_scorer.RougeScorer` 0.1.2 computes it, many times as fast.

    Threads may share a scorer; they take turns.

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
        self._split_summaries = split_summaries
        self._tokenizer = tokenizer or None
        self._vocabulary = Vocabulary(google_stem() if use_stemmer else None)
        self._overlap = overlap_function("auto")
        self._lock = Lock()  # of the vocabulary, and of the memory that the kernels reuse

    def score(self, target: str, prediction: str) -> dict[str, Score]:
        """Score a prediction against a target.

        Returns:
            Type → score, 0–1.

        Raises:
            ValueError: a type of ROUGE is invalid.
            EnvironmentProblem: `split_summaries` needs nltk's data, and they are missing.
        """
        return self._score_targets([target], prediction)[0]

    def score_multi(self, targets: Sequence[str], prediction: str) -> dict[str, Score]:
        """Score a prediction against several targets: for each type, the first of those with the best F counts.

        Raises:
            ValueError: a type of ROUGE is invalid, or there is no target.
            EnvironmentProblem: as `score`.
        """
        scores = self._score_targets(targets, prediction)
        return {kind: max((each[kind] for each in scores), key=_fmeasure) for kind in self.rouge_types}

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments

    def _score_targets(self, targets: Iterable[str], prediction: str) -> list[dict[str, Score]]:
        for kind in self.rouge_types:
            if kind == "rouge0":
                raise ValueError(f"rougen requires positive n: {kind}")
            if kind not in ("rougeL", _LSUM) and not _NGRAM_TYPE.fullmatch(kind):
                raise ValueError(f"Invalid rouge type: {kind}")
        with self._lock:
            self._vocabulary.shorten()
            ids: _Ids = defaultdict(count(1).__next__)  # of a custom tokenizer's tokens
            candidate = self._numbered(prediction, ids)
            return [self._scores(self._numbered(target, ids), candidate, len(ids) + 1) for target in targets]

    def _numbered(self, text: str, ids: _Ids) -> _Numbers:
        if self._tokenizer is None:
            words = list(map(self._vocabulary.__getitem__, default_words(self._sentences(text))))
            return words, words
        number, tokenize = ids.__getitem__, self._tokenizer.tokenize
        texts = [] if list(self.rouge_types) == [_LSUM] else [text]
        sentences = self._sentences(text) if _LSUM in self.rouge_types else []
        sequence, in_sentences = ([[*map(number, tokenize(each)), END] for each in part] for part in (texts, sentences))
        return [*chain(*sequence)], [*chain(*in_sentences)]

    def _sentences(self, text: str) -> Sequence[str]:
        return split_for_rouge(text, "nltk" if self._split_summaries and _LSUM in self.rouge_types else "newline")

    def _scores(self, target: _Numbers, candidate: _Numbers, num_ids: int) -> dict[str, Score]:
        size = max(self._vocabulary.size, num_ids)
        whole = union = self._overlap(target[0], candidate[0], size)
        if self._tokenizer is not None:
            union = self._overlap(target[1], candidate[1], size)
        counted = {"rouge1": (whole.unigrams, whole, 0), "rouge2": (whole.bigrams, whole, 1)}
        counted |= {"rougeL": (whole.sequence, whole, 0), _LSUM: (union.union, union, 0)}
        for kind in set(self.rouge_types) - counted.keys():
            n = int(kind[-1])
            counted[kind] = common(_ngrams(target[0], n), _ngrams(candidate[0], n)), whole, n - 1
        return {
            kind: google_score(hits, words.candidate - less, words.reference - less)
            for kind, (hits, words, less) in ((kind, counted[kind]) for kind in self.rouge_types)
        }


def _ngrams(sequence: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
    words = [word for word in sequence if word != END]
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))
