"""Greedy selection: the oracle's, of the text it makes, and the sequential one, of summed n-grams."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer as Library

from longsumbench.core import Scoring
from longsumbench.rouge.all_pairs import PAIR_MEASURES
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import LEAST_RISE, greedy_selection, sequential_selection

WORDS = ["alpha", "running", "runs", "cat", "the", "a", "dogs", "!!"]
SENTENCES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), max_size=7
)
TEXTS = st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=6)
LIBRARY = Library(["rouge1", "rouge2"], use_stemmer=True)


def score(sentences: list[str], references: list[list[str]], selected: list[int]) -> float:
    """The mean of ROUGE-1 and ROUGE-2 F1 that rouge_score gives the selected sentences."""
    text = "\n".join(sentences[index] for index in sorted(selected))
    found = LIBRARY.score_multi(["\n".join(reference) for reference in references], text)
    return float(found["rouge1"].fmeasure + found["rouge2"].fmeasure) / 2


def slow_selection(sentences: list[str], references: list[list[str]]) -> list[int]:
    """The definition: score every candidate text with the library, take the best, while it rises."""
    selected: list[int] = []
    best = 0.0
    while len(selected) < len(sentences):
        rest = [index for index in range(len(sentences)) if index not in selected]
        scores = {index: score(sentences, references, [*selected, index]) for index in rest}
        top = max(scores.values())
        if top <= best + LEAST_RISE:
            break
        best = top
        selected.append(min(index for index in rest if scores[index] >= top - LEAST_RISE))
    return sorted(selected)


def select(sentences: list[str], references: list[list[str]]) -> list[int]:
    words = SuiteScorer(Scoring()).words
    return greedy_selection(
        [words(s) for s in sentences], [words("\n".join(r)) for r in references]
    )


@given(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=2))
def test_equals_scoring_every_candidate_with_the_library(
    sentences: list[str], references: list[list[str]]
) -> None:
    """The fast search selects what a search that calls rouge_score for every candidate selects."""
    assert select(sentences, references) == slow_selection(sentences, references)


def ngrams(ids: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(ids[i : i + n]) for i in range(len(ids) - n + 1))


def summed(
    texts: list[list[int]], selected: list[int], reference: list[int], n: int, measure: str
) -> float:
    """The measure of the selected texts' n-grams, text by text, by its definition."""
    expected, selection = ngrams(reference, n), Counter[tuple[int, ...]]()
    for index in selected:
        selection += ngrams(texts[index], n)
    shared, size, total = (selection & expected).total(), selection.total(), expected.total()
    scores = {
        "f1": (2 * shared, size + total),
        "precision": (shared, size),
        "recall": (shared, total),
    }
    numerator, denominator = scores[measure]
    return numerator / max(1, denominator)


def slow_sequence(texts: list[list[int]], reference: list[int], n: int, measure: str) -> list[int]:
    """The definition: add the first of the texts that raise the score most, while one raises it."""
    selected: list[int] = []
    best = 0.0
    while rest := [index for index in range(len(texts)) if index not in selected]:
        scores = [summed(texts, [*selected, index], reference, n, measure) for index in rest]
        if max(scores) <= best:
            break
        best = max(scores)
        selected.append(rest[scores.index(best)])
    return selected


@given(TEXTS, TEXTS, st.integers(1, 3), st.sampled_from(PAIR_MEASURES))
def test_sequential_equals_its_definition(
    texts: list[list[int]], references: list[list[int]], n: int, measure: str
) -> None:
    """The texts and the order of their choice are those of counting every candidate anew, ties included."""
    expected = [slow_sequence(texts, reference, n, measure) for reference in references]
    assert sequential_selection(texts, references, n, measure) == expected
