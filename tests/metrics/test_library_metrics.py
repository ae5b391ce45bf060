"""Metrics of the library `evaluate`, from a folder: their code runs only because the user names it."""

import re
from pathlib import Path

import pytest

from longsumbench.core import Example, Metric, Scoring
from longsumbench.core.registry import metrics
from longsumbench.errors import DataError, EnvironmentProblem

SCRIPT = """
import datasets
import evaluate


class Letters(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        features = datasets.Features({"predictions": text, "references": REFERENCES})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references, letter="a"):
        return {"total": len(predictions[0]), "letters": predictions[0].count(letter) / len(references[0])}
"""


def letters(folder: Path, references: str = "text", **settings: str) -> Metric:
    """Write a metric, the share of a letter, and return it with settings."""
    (folder / "letters").mkdir()
    (folder / "letters" / "letters.py").write_text(SCRIPT.replace("REFERENCES", references))
    kind = metrics.load(f"evaluate/{folder / 'letters'}@v1")
    metric: Metric = kind(Scoring(evaluate_settings={"letters": settings} if settings else {}))
    return metric


def example(*references: str) -> Example:
    """Return an example with these references."""
    return Example("e", None, None, (), tuple((text,) for text in references))


def test_a_metric_in_a_folder(tmp_path: Path) -> None:
    """Of two references the mean counts, 1 and 1/2, in the metric's unit; settings and code are in its signature."""
    metric = letters(tmp_path, letter="b")
    metric.check()
    assert metric.columns == ("evaluate_letters",)
    assert metric.score("abb", example("xy", "wxyz")) == {"evaluate_letters": 0.75}
    assert str(metric.score(" ", example("xy"))) == "{'evaluate_letters': nan}"
    assert str(metric.score("abb", example())) == "{'evaluate_letters': nan}"
    parts = r'evaluate/letters:1\|code:\w{8}\|revision:v1\|evaluate:0\..+\|settings:{"letter": "b"}'
    assert re.fullmatch(parts, metric.signature(3))


def test_several_references_at_once(tmp_path: Path) -> None:
    """A metric that takes lists of references gets all of them."""
    metric = letters(tmp_path, "datasets.Sequence(text)")
    assert metric.score("aab", example("x", "y")) == {"evaluate_letters": 1.0}


def test_problems_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric that cannot be loaded and a setting that it does not have are named."""
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    with pytest.raises(EnvironmentProblem, match=r"cannot load evaluate/nowhere"):
        metrics.load(f"evaluate/nowhere{tmp_path.name}")(Scoring()).check()
    with pytest.raises(DataError, match=r"letters.*cannot score a summary with .*vowel"):
        letters(tmp_path, vowel="a").check()
