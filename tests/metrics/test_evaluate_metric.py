"""The suite's ROUGE as an `evaluate.Metric`."""

from dataclasses import astuple
from pathlib import Path

import evaluate
import pytest

from longsumbench.core import Document, Example, Scoring, Section
from longsumbench.metrics.aggregate import aggregate
from longsumbench.metrics.evaluate import score_all
from longsumbench.metrics.evaluate_metric import RougeMetric
from longsumbench.metrics.rouge import Rouge
from longsumbench.sentences import split_sentences

PREDICTIONS = ["The cat sat on the mat. It slept.", "Nobody came.", ""]
REFERENCES = ["It slept. A cat was sitting on the mat.", "Somebody came, nobody stayed.", "Something."]


@pytest.fixture
def metric(tmp_path: Path) -> RougeMetric:
    return RougeMetric(cache_dir=str(tmp_path))


def test_equals_the_suite(metric: RougeMetric) -> None:
    """`compute` gives the means, intervals and signature that a run's record has."""
    rouge = Rouge(Scoring())
    text = Document(None, (Section(None, (("Something.",),)),))
    references = zip("abc", [(split_sentences(one),) for one in REFERENCES], strict=True)
    examples = [Example(name, None, None, (text,), reference) for name, reference in references]
    expected = aggregate(score_all([rouge], zip(PREDICTIONS, examples, strict=True)).per_example)
    actual = metric.compute(predictions=PREDICTIONS, references=REFERENCES)
    for kind, score in expected.items():
        names = (f"{kind}_p", f"{kind}_r", kind, f"{kind}_lo", f"{kind}_hi")
        assert [actual[name] for name in names] == list(astuple(score))
    assert actual["signature"] == rouge.signature(3)


def test_several_references(metric: RougeMetric) -> None:
    """Lists of references are taken too; the best counts."""
    several = [[text, prediction or "x"] for text, prediction in zip(REFERENCES, PREDICTIONS, strict=True)]
    assert metric.compute(predictions=PREDICTIONS, references=several)["rouge1"] == pytest.approx(200 / 3)


def test_the_metric_works_in_evaluate_combine(tmp_path: Path) -> None:
    """It works in `evaluate.combine`, without the hub."""
    both = {"stemmed": RougeMetric(cache_dir=str(tmp_path / "a")), "again": RougeMetric(cache_dir=str(tmp_path / "b"))}
    scores = evaluate.combine(both).compute(predictions=PREDICTIONS, references=REFERENCES)
    assert scores["stemmed_rougeLsum"] == scores["again_rougeLsum"] > 0
