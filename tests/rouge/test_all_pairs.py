"""ROUGE-n of many texts against many references."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer
from support.words import AsTheyAre

from longsumbench.rouge.all_pairs import number_words, rouge_n

TEXTS = st.lists(st.lists(st.sampled_from("abcde"), max_size=9), max_size=6)


SCORER = RougeScorer(["rouge1", "rouge2", "rouge3"], tokenizer=AsTheyAre())


@given(TEXTS, TEXTS, st.integers(1, 3))
def test_equals_rouge_score(texts: list[list[str]], references: list[list[str]], n: int) -> None:
    """Every score is what the rouge_score library gives the pair, F but for the rounding of its mean."""
    of_texts, of_references = number_words(texts, references)
    scores = rouge_n(of_texts, of_references, n)
    assert {one.shape for one in scores.values()} == {(len(references), len(texts))}
    for row, column in np.ndindex(len(references), len(texts)):
        found = SCORER.score(" ".join(references[row]), " ".join(texts[column]))[f"rouge{n}"]
        assert scores["precision"][row, column] == found.precision
        assert scores["recall"][row, column] == found.recall
        assert scores["f1"][row, column] == pytest.approx(found.fmeasure, rel=1e-15)
