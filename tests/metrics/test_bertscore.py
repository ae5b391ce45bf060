"""BERTScore through its library, and what is said where that is missing."""

import sys
from pathlib import Path

import pytest
import torch
from support.tiny_bert import write_bert
from transformers import BertModel, BertTokenizerFast

from longsumbench.core import Example, Scoring, Sentences
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.metrics.bertscore import BertScore
from longsumbench.modeling.checkpoints import model_digest


def example(*references: Sentences) -> Example:
    """Return an example with the references."""
    return Example("e", None, None, (), references)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric names the extra that is missing before anything is scored."""
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install -e '\.\[bertscore\]'"):
        BertScore(Scoring(bertscore_model="anything")).check()


def test_with_the_library(tmp_path: Path) -> None:
    """A summary like its reference scores 1, another less, an empty one 0; of two references the better counts."""
    pytest.importorskip("bert_score", reason="the extra bertscore")
    folder = write_bert(tmp_path / "bert")
    metric = BertScore(Scoring(bertscore_model=str(folder), bertscore_layer=2, device="cpu"))
    metric.check()
    references = example(("A dog ran.",), ("The cat sat.", "It slept."))
    same = metric.score("The cat sat. It slept.", references)
    assert same == pytest.approx(dict.fromkeys(metric.columns, 1), rel=1e-5)
    other = metric.score("A dog ran on" + " and on" * 30, references)
    assert max(other.values()) < 0.999
    assert metric.score(" ", references) == dict.fromkeys(metric.columns, 0.0)


def test_a_layer_of_a_folder(tmp_path: Path) -> None:
    """Recall is the mean cosine of the words' states at the layer, as transformers gives them; the signature names it."""
    pytest.importorskip("bert_score", reason="the extra bertscore")
    folder = write_bert(tmp_path / "bert", network=BertModel)
    metric = BertScore(Scoring(bertscore_model=str(folder), bertscore_layer=1, device="cpu"))
    score = metric.score("the dog ran", example(("the cat sat",)))
    tokenizer, network = (
        BertTokenizerFast.from_pretrained(folder),
        BertModel.from_pretrained(folder),
    )
    layers = []
    for text in ("the dog ran", "the cat sat"):
        encoded = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = network.eval()(**encoded, output_hidden_states=True).hidden_states[1][0]
        layers.append(torch.nn.functional.normalize(states, dim=-1))
    # The special tokens are compared, but weigh nothing.
    cosines = (layers[0] @ layers[1].T)[:, 1:-1]
    assert score["bertscore_r"] == pytest.approx(float(cosines.amax(0).mean()), abs=1e-6)
    assert metric.signature(1).endswith(f"|model:bert@{model_digest(folder)}|layer:1")


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (None, "bert is not in bert-score's table: set score.bertscore_layer=1 to 2"),
        (3, "bert has no layer 3: set score.bertscore_layer=1 to 2"),
    ],
)
def test_a_folder_needs_one_of_its_layers(tmp_path: Path, layer: int | None, message: str) -> None:
    """Without a layer, or with one that the model lacks, a line says how many it has before anything is scored."""
    pytest.importorskip("bert_score", reason="the extra bertscore")
    folder = str(write_bert(tmp_path / "bert"))
    with pytest.raises(UsageError, match=message):
        BertScore(Scoring(bertscore_model=folder, bertscore_layer=layer, device="cpu")).check()
