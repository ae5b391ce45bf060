"""Greedy selection by ROUGE, exact; one array operation scores all candidates.

`greedy_selection` scores the joined text of the selected sentences, for the oracle. `sequential_selection` adds up the
n-grams of the selected texts without joining them, for SEAL's labels. Letters: T texts, K n-grams.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from longsumbench.core import Example
from longsumbench.rouge.all_pairs import Ids, Ints, num_ngrams, score_counts, shared_ngrams
from longsumbench.rouge.scorer import SuiteScorer

_Tokens = Sequence[str]
# the last word of a sentence and the first of the next; None: no sentence
Joint = tuple[str | None, str | None]
# smaller differences of scores are rounding errors
LEAST_RISE = 1e-12


class SharedGrams:
    """N-grams that the selected sentences share with one reference, alone and with each further non-empty candidate."""

    def __init__(self, reference: _Tokens, sentences: Sequence[_Tokens]) -> None:
        unigrams, bigrams = Counter(reference), Counter(pairwise(reference))
        self._length, self._num_unigrams = len(reference), len(unigrams)
        grams = chain[str | Joint](unigrams, bigrams)
        self._columns = {gram: column for column, gram in enumerate(grams)}
        # last column: n-grams not in the reference
        self._limits = np.array([*unigrams.values(), *bigrams.values(), 0])
        self._own = self._count(sentences)
        self._selected = np.zeros_like(self._limits)
        self._with_each = self._own

    def _count(self, sentences: Sequence[_Tokens]) -> Ints:
        """Count the reference's n-grams in every sentence: [sentences, columns]."""
        width = len(self._limits)
        columns = self._columns
        cells: list[int] = []
        for row, words in enumerate(sentences):
            grams = chain[str | Joint](words, pairwise(words))
            cells += [row * width + columns[gram] for gram in grams if gram in columns]
        counts = np.bincount(np.array(cells, dtype=np.int64), minlength=len(sentences) * width)
        return counts.reshape(len(sentences), width)

    def f1(
        self, lengths: Ints, gained: Sequence[Sequence[Joint]], undone: Sequence[Joint]
    ) -> NDArray[np.float64]:
        """Return ROUGE-1 and ROUGE-2 F1 of the selection with each candidate added: [2, sentences].

        Args:
            lengths: words of each of these texts.
            gained: the bigrams between a candidate and its neighbours: two lists with an entry per candidate.
            undone: the bigram between these neighbours, an entry per candidate.
        """
        self._with_each = self._own + self._selected
        rows = np.arange(len(lengths))
        for sign, joints in ((1, gained[0]), (1, gained[1]), (-1, undone)):
            self._with_each[rows, [self._columns.get(joint, -1) for joint in joints]] += sign
        shared = np.minimum(self._with_each, self._limits)
        unigrams = shared[:, : self._num_unigrams].sum(axis=1)
        bigrams = shared[:, self._num_unigrams :].sum(axis=1)
        words = lengths + self._length
        return np.stack(
            [2 * unigrams / np.maximum(words, 1), 2 * bigrams / np.maximum(words - 2, 1)]
        )

    def select(self, row: int) -> None:
        """Add a candidate to the selection, after a call of `f1`."""
        self._selected = self._with_each[row]


def greedy_selection(sentences: Sequence[_Tokens], references: Sequence[_Tokens]) -> list[int]:
    """Select sentences whose text scores high against the references (Nallapati et al., 2017).

    The selection starts empty. Each step adds the sentence that raises the score most, of equal ones the earliest, as
    long as the score rises. The score is the mean of ROUGE-1 and ROUGE-2 F1 of the selected sentences in their order,
    each the best over the references. Bigrams that cross sentences count, as in the reported score.

    Returns:
        Indices of the selected sentences, ascending.
    """
    candidates = [index for index, words in enumerate(sentences) if words]
    texts = [sentences[index] for index in candidates]
    overlaps = [SharedGrams(reference, texts) for reference in references]
    lengths = np.array([len(words) for words in texts])
    selected: list[int] = []
    best = 0.0
    while len(selected) < len(texts):
        gained, undone = _joints(texts, selected)
        total = lengths + lengths[selected].sum()
        scores_by_reference = [overlap.f1(total, gained, undone) for overlap in overlaps]
        scores = np.max(scores_by_reference, axis=0).mean(axis=0)
        scores[selected] = 0.0
        candidate = int(np.argmax(scores >= scores.max() - LEAST_RISE))  # the first of equal ones
        if scores[candidate] <= best + LEAST_RISE:
            break
        best = float(scores[candidate])
        selected.insert(bisect_left(selected, candidate), candidate)
        for overlap in overlaps:
            overlap.select(candidate)
    return [candidates[index] for index in selected]


def oracle_sentences(example: Example, rouge: SuiteScorer) -> list[int]:
    """Return the indices of the source sentences that `greedy_selection` selects for an example's references."""
    references = [rouge.words("\n".join(reference)) for reference in example.references]
    return greedy_selection([rouge.words(sentence) for sentence in example.sentences()], references)


def _joints(
    texts: Sequence[_Tokens], selected: Sequence[int]
) -> tuple[tuple[list[Joint], list[Joint]], list[Joint]]:
    """Return the bigrams that selecting each text would make on its left and right, and the one it would undo."""
    left_joints: list[Joint] = []
    right_joints: list[Joint] = []
    undone: list[Joint] = []
    for index, words in enumerate(texts):
        place = bisect_left(selected, index)
        left_word = texts[selected[place - 1]][-1] if place > 0 else None
        right_word = texts[selected[place]][0] if place < len(selected) else None
        left_joints.append((left_word, words[0]))
        right_joints.append((words[-1], right_word))
        undone.append((left_word, right_word))
    return (left_joints, right_joints), undone


def sequential_selection(
    texts: Sequence[Ids], references: Sequence[Ids], ngram: int = 2, measure: str = "f1"
) -> list[list[int]]:
    """Select, for each reference, texts whose summed n-grams score high against it (Nallapati et al., 2017).

    The selection starts empty. Each step adds the text that raises the score most, of equal ones the earliest, as long
    as the score rises. N-grams do not cross texts. `measure` is "f1", "precision" or "recall".

    Returns:
        For each reference, the indices of the selected texts in the order of selection.
    """
    in_texts, in_references = shared_ngrams(texts, references, ngram)
    sizes = num_ngrams(texts, ngram)
    return [_select_for_reference(in_texts, counts, sizes, measure) for counts in in_references]


def _select_for_reference(in_texts: Ints, counts: Ints, sizes: Ints, measure: str) -> list[int]:
    """Return the selected texts for one reference.

    The counts [K, T] and [K] are of the n-grams of all references; sizes [T] are the texts' n-grams.
    """
    present, size = counts > 0, int(counts.sum())
    in_texts, counts = in_texts[present], counts[present]
    # the others can only lower a score
    candidates = np.flatnonzero(in_texts.any(axis=0))
    in_texts, sizes = in_texts[:, candidates], sizes[candidates]
    selected: list[int] = []
    common = selected_size = 0
    best = 0.0
    while len(candidates):
        gains = np.minimum(in_texts, counts[:, None]).sum(axis=0)
        scores = score_counts(common + gains, selected_size + sizes, size, measure)
        place = int(scores.argmax())
        if scores[place] <= best:
            break
        best = scores[place]
        common += int(gains[place])
        selected_size += int(sizes[place])
        counts = np.maximum(counts - in_texts[:, place], 0)
        selected.append(int(candidates[place]))
        candidates, sizes = np.delete(candidates, place), np.delete(sizes, place)
        in_texts = np.delete(in_texts, place, axis=1)
    return selected
