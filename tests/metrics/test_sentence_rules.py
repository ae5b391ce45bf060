"""`score.sentences`: who decides where sentences end for ROUGE-Lsum; the default changes nothing."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from rouge_score.rouge_scorer import RougeScorer as Library
from support.punkt import write_punkt

from longsumbench import score
from longsumbench.core import Example, Scoring
from longsumbench.metrics.rouge import Rouge

LINES = st.lists(
    st.sampled_from(["a b. c d", "b a.", "c", "", "Dr. a d. b", "d c b a"]), min_size=1, max_size=5
)
PARTS = ("p", "r", "f")


def example(*references: tuple[str, ...]) -> Example:
    return Example("x", None, None, (), references)


def lsum(rule: str, prediction: str, *references: tuple[str, ...]) -> tuple[float, ...]:
    scores = Rouge(Scoring(sentences=rule)).score(prediction, example(*references))
    return tuple(scores[f"rougeLsum_{part}"] for part in PARTS)


@given(LINES, LINES)
def test_newline_is_rouge_score_on_lines(output: list[str], reference: list[str]) -> None:
    """`newline` scores what rouge_score scores for texts with a sentence on each line."""
    expected = Library(["rougeLsum"], use_stemmer=True).score(
        "\n".join(reference), "\n".join(output)
    )["rougeLsum"]
    assert lsum("newline", "\n".join(output), tuple(reference)) == tuple(expected)


def test_nltk_is_rouge_score_with_split_summaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`nltk` scores what rouge_score scores with split_summaries, in runs and in `score`, on lists too."""
    write_punkt(tmp_path, monkeypatch)
    library = Library(["rougeLsum"], use_stemmer=True, split_summaries=True)
    texts = ["Dr. a saw b. b left\nc. d", "b left. d saw Dr. a. c", "c. b left d. Dr. a"]
    for output in texts:
        for reference in texts:
            expected = tuple(library.score(reference, output)["rougeLsum"])
            assert lsum("nltk", output, tuple(reference.split("\n"))) == expected
            for form in (reference, [reference.split("\n")]):
                report = score([output], [form], sentences="nltk")
                row = report.scored.per_example.iloc[0]
                assert tuple(row[f"rougeLsum_{part}"] for part in PARTS) == expected
    assert "|sentences:nltk-punkt|" in report.signature


def test_each_rule_by_hand() -> None:
    """Of eight words all match if both sides are split; a line of two sentences matches the second of them alone."""
    output, reference = (
        "We ran home. They saw it.\nIt rained.",
        ("It rained.", "They saw it.\nWe ran home."),
    )
    # the output is split; the reference's sentences are as kept
    assert lsum("suite", output, reference)[2] == 1
    # "they saw it", and "it rained"
    assert lsum("given", output, reference)[2] == 5 / 8
    # the line break within a sentence counts
    assert lsum("newline", output, reference)[2] == 1
