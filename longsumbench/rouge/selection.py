"""Greedy selection by ROUGE, exact.

`greedy_selection` scores the joined text of the selected sentences, for the oracle. `sequential_selection` adds up the
n-grams of the selected texts without joining them, for SEAL's labels. Letters: T texts, K n-grams.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from longsumbench.api import check_choice, check_minimum
from longsumbench.rouge.all_pairs import PAIR_MEASURES, Ids, Ints, num_ngrams, score_counts, shared_ngrams

_Words = Sequence[str]
_Gram = tuple[str | None, ...]  # a word or a bigram
_Joints = Sequence[tuple[_Gram, int]]  # bigrams, each with 1 if it is made, −1 if it is undone
LEAST_RISE = 1e-12  # smaller differences of scores are rounding errors


def _count_grams(words: _Words) -> Counter[_Gram]:
    return Counter[_Gram](chain(zip(words, strict=True), pairwise(words)))


class _Overlap:
    """The words and bigrams that the selected sentences share with one reference."""

    def __init__(self, reference: _Words, sentences: Sequence[_Words]) -> None:
        self._length, self._wanted = len(reference), _count_grams(reference)
        counts = map(_count_grams, sentences)
        self._own = [{gram: count for gram, count in own.items() if gram in self._wanted} for own in counts]
        self._selected: Counter[_Gram] = Counter()
        self._shared = [0, 0]

    def with_sentence(self, index: int, joints: _Joints) -> tuple[dict[_Gram, int], list[int]]:
        """Return the counts that a sentence and the joints to its neighbours add, and the shared words and bigrams."""
        added, shared = self._own[index].copy(), self._shared.copy()
        for gram, count in joints:
            if gram in self._wanted:
                added[gram] = added.get(gram, 0) + count
        for gram, count in added.items():
            before, wanted = self._selected[gram], self._wanted[gram]
            shared[len(gram) - 1] += min(before + count, wanted) - min(before, wanted)
        return added, shared

    def f1(self, index: int, joints: _Joints, length: int) -> list[float]:
        """Return ROUGE-1 and ROUGE-2 F1 of the selection with a sentence added, `length` words in total."""
        _, shared = self.with_sentence(index, joints)
        return [2 * shared[n] / max(length + self._length - 2 * n, 1) for n in (0, 1)]

    def select(self, index: int, joints: _Joints) -> None:
        """Add a sentence to the selection."""
        added, self._shared = self.with_sentence(index, joints)
        self._selected.update(added)


def greedy_selection(sentences: Sequence[_Words], references: Sequence[_Words]) -> list[int]:
    """Select sentences whose text scores high against the references (Nallapati et al., 2017).

    The selection starts empty. Each step adds the sentence that raises the score most, of equal ones the earliest, as
    long as the score rises. The score is the mean of ROUGE-1 and ROUGE-2 F1 of the selected sentences in their order,
    each the best over the references. Bigrams that cross sentences count, as in the reported score.

    Returns:
        Indices of the selected sentences, ascending.
    """
    candidates = [index for index, words in enumerate(sentences) if words]
    texts = [sentences[index] for index in candidates]
    overlaps = [_Overlap(reference, texts) for reference in references]
    selected: list[int] = []
    best, length = 0.0, 0
    while rest := [index for index in range(len(texts)) if index not in selected]:
        joints = {index: _joints(texts, selected, index) for index in rest}
        scores = {}
        for index in rest:
            total = length + len(texts[index])
            of_references = [overlap.f1(index, joints[index], total) for overlap in overlaps]
            scores[index] = sum(map(max, zip(*of_references, strict=True))) / 2
        top = max(scores.values())
        chosen = next(index for index in rest if scores[index] >= top - LEAST_RISE)
        if scores[chosen] <= best + LEAST_RISE:
            break
        for overlap in overlaps:
            overlap.select(chosen, joints[chosen])
        best, length = scores[chosen], length + len(texts[chosen])
        insort(selected, chosen)
    return [candidates[index] for index in selected]


def _joints(texts: Sequence[_Words], selected: Sequence[int], index: int) -> _Joints:
    """Return the bigrams that selecting a text makes on its left and right, and the one it undoes."""
    place = bisect_left(selected, index)
    before = texts[selected[place - 1]][-1] if place > 0 else None
    after = texts[selected[place]][0] if place < len(selected) else None
    return ((before, texts[index][0]), 1), ((texts[index][-1], after), 1), ((before, after), -1)


def sequential_selection(
    texts: Sequence[Ids], references: Sequence[Ids], ngram: int = 2, measure: str = "f1"
) -> list[list[int]]:
    """Select, for each reference, texts whose summed n-grams score high against it (Nallapati et al., 2017).

    The selection starts empty. Each step adds the text that raises the score most, of equal ones the earliest, as long
    as the score rises. N-grams do not cross texts. `measure` is "f1", "precision" or "recall".

    Returns:
        For each reference, the indices of the selected texts in the order of selection.

    Raises:
        UsageError: the measure is unknown, or n is below 1.
    """
    check_choice("measure", measure, PAIR_MEASURES)
    check_minimum("ngram", ngram, 1)
    in_texts, in_references = shared_ngrams(texts, references, ngram)
    sizes = num_ngrams(texts, ngram)
    return [_select_for_reference(in_texts, counts, sizes, measure) for counts in in_references]


def _select_for_reference(in_texts: Ints, counts: Ints, sizes: Ints, measure: str) -> list[int]:
    """Return the selected texts for one reference.

    Args:
        in_texts: [K, T], counts of the n-grams of all references in the texts.
        counts: [K], counts of these n-grams in this reference.
        sizes: [T], n-grams of the texts.
        measure: as in `sequential_selection`.
    """
    own, size = counts > 0, int(counts.sum())
    in_texts, counts = in_texts[own], counts[own]
    left = np.flatnonzero(in_texts.any(axis=0))  # the others can only lower a score
    in_texts, sizes = in_texts[:, left], sizes[left]
    chosen: list[int] = []
    common = taken = 0
    best = 0.0
    while len(left):
        gains = np.minimum(in_texts, counts[:, None]).sum(axis=0)
        scores = score_counts(common + gains, taken + sizes, size, measure)
        place = int(scores.argmax())
        if scores[place] <= best:
            break
        best, common, taken = scores[place], common + int(gains[place]), taken + int(sizes[place])
        counts = np.maximum(counts - in_texts[:, place], 0)
        chosen.append(int(left[place]))
        left, sizes, in_texts = np.delete(left, place), np.delete(sizes, place), np.delete(in_texts, place, axis=1)
    return chosen
