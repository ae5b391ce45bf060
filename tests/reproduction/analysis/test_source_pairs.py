"""PageSum's pair search: the best of all pairs, exactly."""

import json
from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st
from rouge_score.rouge_scorer import RougeScorer
from support.words import AsTheyAre

from longsumbench_reproduction.analysis.source_pairs import SourcePair, best_pairs

Words = list[str]
FUSION_TYPES = ["rouge1", "rouge2", "rougeL"]
TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=7)
SOURCES = st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=2, max_size=7)


SCORER = RougeScorer(FUSION_TYPES, tokenizer=AsTheyAre())


def recall(words: Words, reference: Words, kind: str) -> float:
    return float(SCORER.score(" ".join(reference), " ".join(words))[kind].recall)


def slow_pair(sentences: list[Words], reference: Words, kind: str) -> tuple[int, int, float]:
    """The definition: score every pair with the library, take the first of the best."""
    scores = {
        (i, j): recall(sentences[i] + sentences[j], reference, kind)
        for i, j in combinations(range(len(sentences)), 2)
    }
    top = max(scores.values())
    return *min(pair for pair, score in scores.items() if score > top - 1e-12), top


@pytest.mark.parametrize("kind", FUSION_TYPES)
@settings(max_examples=60)
@given(sentences=SOURCES, summary=TEXTS)
def test_equals_scoring_every_pair_with_the_library(
    kind: str, sentences: list[Words], summary: list[Words]
) -> None:
    """Pair, score and scores alone are those of a search that calls rouge_score for every pair, ties included."""
    pairs = best_pairs(sentences, summary, kind)
    for pair, reference in zip(pairs, summary, strict=True):
        first, second, top = slow_pair(sentences, reference, kind)
        assert (pair.first, pair.second) == (first, second)
        assert pair.score == pytest.approx(top)
        alone = [recall(sentences[index], reference, kind) for index in (first, second)]
        assert pair.alone == pytest.approx(alone)


# Recall together, alone, and thresholds → whether it is a fusion; the second is exactly 10 more, the third exactly 20 alone
FUSED = """
[0.36, 0.25, {}, true]
[0.35, 0.25, {}, false]
[0.40, 0.20, {}, false]
[0.60, 0.55, {}, false]
[0.60, 0.55, {"rise": 4}, true]
[0.60, 0.10, {"overlap": 9}, true]
"""


@pytest.mark.parametrize("line", FUSED.strip().splitlines())
def test_fused_is_strict(line: str) -> None:
    """Eqs. 15 and 16: each sentence alone, and the gain of both, must be above their thresholds."""
    together, alone, thresholds, expected = json.loads(line)
    assert SourcePair(0, 1, together, (alone, alone), 0.5).fused(**thresholds) == expected
