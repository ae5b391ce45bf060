"""Extracting the best-scored parts of a source."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, strategies as st
from support.hand_texts import text_of

from longsumbench.core import Truncation
from longsumbench.modeling.extraction import ScoredSpans, chosen_sentences, score_spans
from longsumbench.modeling.ranking import similarities

TEXTS = st.lists(
    st.lists(st.sampled_from(["red", "Red", "fox", "den", "snow", "hen"]), max_size=4).map(
        " ".join
    ),
    max_size=7,
)
LENGTHS, SHARES = st.integers(0, 20), st.sampled_from([0.0, 0.25, 0.5, 1.0])


def scored(sentences: Sequence[str], chance: np.random.Generator) -> ScoredSpans:
    """Cut sentences into spans of one to three, and draw their scores, some of them equal."""
    inner = [index for index in range(1, len(sentences)) if chance.random() < 0.6]
    spans = list(pairwise([0, *inner, len(sentences)])) if sentences else []
    return ScoredSpans(spans, chance.integers(0, 4, len(spans)).astype(np.float64) - 1.5)


def by_hand(
    sentences: Sequence[str], given: ScoredSpans, length: int, redundancy: float
) -> list[str]:
    """Write the definition down: a search over all spans for each choice, with plain lists."""
    low, high = min(given.scores, default=0.0), max(given.scores, default=0.0)
    scale = high - low or 1.0
    texts = [" ".join(sentences[first:end]) for first, end in given.spans]
    cosines = similarities(texts)
    chosen: list[int] = []
    words: list[tuple[int, str]] = []
    copies: list[list[str]] = []
    while len(chosen) < len(texts):
        values = {
            index: (1 - redundancy) * (given.scores[index] - low) / scale
            - redundancy * max((cosines[index, other] for other in chosen), default=0.0)
            for index in range(len(texts))
            if index not in chosen
        }
        best = max(values.values())
        chosen.append(next(index for index, value in values.items() if value == best))
        for place in range(*given.spans[chosen[-1]]):
            if sentences[place].lower().split() not in copies:
                copies.append(sentences[place].lower().split())
                words += [(place, word) for word in sentences[place].split()]
    words = words[:length]
    return [
        " ".join(word for at, word in words if at == place)
        for place in sorted({place for place, _ in words})
    ]


@given(TEXTS, LENGTHS, SHARES, st.integers(0, 1_000))
def test_extract_is_its_definition(
    texts: list[str], length: int, redundancy: float, seed: int
) -> None:
    """What is extracted equals a search that tries all spans for every choice."""
    spans = scored(texts, np.random.default_rng(seed))
    assert list(
        chosen_sentences(text_of(tuple(texts)), spans, length, redundancy).values()
    ) == by_hand(texts, spans, length, redundancy)


def test_scores_of_steps() -> None:
    """Scores are means over steps in the order of the source; spans without sentences have none."""
    weights = np.array([[0.5, 0.5], [0.25, 0.75], [1, 0], [0, 0.5]], np.float32)
    found = score_spans([(0, 0), (4, 6), (0, 1), (2, 4)], weights, Truncation(9, 9))
    assert (found.spans, found.scores.tolist()) == ([(0, 1), (2, 4), (4, 6)], [0.5, 0.25, 0.5])
    assert score_spans([(0, 1)], np.zeros((1, 0)), Truncation(9, 9)).scores.tolist() == [0.0]
    assert score_spans([], np.zeros((0, 3)), Truncation(0, 0)).scores.tolist() == []
