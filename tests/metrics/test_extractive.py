"""Extractive fragments: the paper's procedure, word by word, against the one that visits few places."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from longsumbench.core import Scoring
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.metrics.word_metrics import Extractive, fragment_lengths

WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=24)


def procedure(source: Sequence[str], summary: Sequence[str]) -> list[int]:
    """Figure 3 of Grusky et al. (2018), as it is printed: every place of the source at every word of the summary."""
    lengths, i = [], 0
    while i < len(summary):
        longest, j = 0, 0
        while j < len(source):
            length = 0
            while (
                i + length < len(summary)
                and j + length < len(source)
                and summary[i + length] == source[j + length]
            ):
                length += 1
            longest = max(longest, length)
            j += max(length, 1)
        i += max(longest, 1)
        lengths += [longest] * (longest > 0)
    return lengths


def score(source: str, summary: str) -> dict[str, float]:
    """Return the columns of a summary of one sentence."""
    row = {"id": "e", "title": "unread title", "document": source, "summary": "x"}
    return Extractive(Scoring()).score(summary, jsonl_example(row))


@given(WORDS, WORDS)
def test_equals_the_printed_procedure(source: list[str], summary: list[str]) -> None:
    """The same fragments are found, in the same order, where texts repeat and overlap themselves, too."""
    assert fragment_lengths(source, summary) == procedure(source, summary)


def test_coverage_and_density_by_hand() -> None:
    """Copied are "the cat sat", "on" and "a mat", but not "lazily": |A| = 9, |S| = 7, fragments of 3, 1 and 2 words."""
    source = "Yesterday the cat sat down on it, a mat."
    expected = {
        "extractive_coverage": 6 / 7,
        "extractive_density": 14 / 7,
        "extractive_compression": 9 / 7,
    }
    assert score(source, "The cat sat lazily on a mat.") == pytest.approx(expected)


@pytest.mark.parametrize("summary", ["", " \n", "—"])
def test_without_words_nothing_applies(summary: str) -> None:
    """A summary without words has no share of copied ones."""
    assert all(map(math.isnan, score("the cat sat", summary).values()))
