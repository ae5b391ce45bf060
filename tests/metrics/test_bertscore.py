"""BERTScore through its library, and what is said where that is missing."""

import sys
from pathlib import Path

import pytest
from support.tiny_bert import write_bert

from longsumbench.core import Document, Example, Scoring, Section, Sentences
from longsumbench.errors import EnvironmentProblem
from longsumbench.metrics.bertscore import BertScore


def example(*references: Sentences) -> Example:
    """Return an example with the references."""
    return Example("e", None, None, (Document(None, (Section(None, (("x",),)),)),), references)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric names the extra that is missing before anything is scored."""
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install -e '\.\[bertscore\]'"):
        BertScore(Scoring(bertscore_model="anything")).check()


def test_with_the_library(tmp_path: Path) -> None:
    """A summary like its reference scores 1, another less, an empty one 0; of two references the better counts."""
    pytest.importorskip("bert_score", reason="the extra bertscore")
    metric = BertScore(Scoring(bertscore_model=str(write_bert(tmp_path / "bert")), device="cpu"))
    metric.check()
    reference = ("The cat sat.", "It slept.")
    assert metric.score("The cat sat. It slept.", example(reference)) == pytest.approx(
        dict.fromkeys(metric.columns, 1), rel=1e-5
    )
    other = metric.score("A dog ran on" + " and on" * 30, example(reference))
    assert all(value < 0.999 for value in other.values())
    assert metric.score("the dog", example(("a dog",), ("the dog",)))[
        "bertscore_f"
    ] == pytest.approx(1)
    assert metric.score(" ", example(reference)) == dict.fromkeys(metric.columns, 0.0)
    assert "|layer:2" in metric.signature(1)
