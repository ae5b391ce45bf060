"""Semantic coherence with a tiny BERT, and what is said of models that are missing or of another kind."""

import math
from pathlib import Path

import pytest
import torch
from support.drawn import example
from support.tiny_bert import write_bert
from transformers import (
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertModel,
    BertTokenizerFast,
)

from longsumbench.core import Scoring
from longsumbench.errors import DataError
from longsumbench.metrics import support
from longsumbench_reproduction.metrics.coherence import Coherence

EXAMPLE = example("e", ["x"])
SUMMARY = "The cat sat. It slept. The dog ran. A dog slept."


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a next-sentence model."""
    return write_bert(tmp_path_factory.mktemp("models") / "bert")


def score(folder: Path, summary: str) -> float:
    """Return the coherence of a summary."""
    return Coherence(Scoring(coherence_model=str(folder), device="cpu")).score(summary, EXAMPLE)[
        "coherence"
    ]


def next_sentence(folder: Path, first: str, second: str) -> float:
    """Return the probability that one sentence follows another, of a pair alone."""
    model, tokenizer = (
        BertForNextSentencePrediction.from_pretrained(folder),
        BertTokenizerFast.from_pretrained(folder),
    )
    with torch.inference_mode():
        return float(
            model.eval()(**tokenizer(first, second, return_tensors="pt")).logits.softmax(-1)[0, 0]
        )


def test_equation_12(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the mean over neighbouring sentences, whatever the batches; the order of the sentences matters."""
    pairs = [
        ("The cat sat.", "It slept."),
        ("It slept.", "The dog ran."),
        ("The dog ran.", "A dog slept."),
    ]
    expected = sum(next_sentence(bert, *pair) for pair in pairs) / 3
    assert score(bert, SUMMARY) == pytest.approx(expected, abs=1e-6)
    monkeypatch.setattr(support, "_BATCH_SIZE", 2)
    assert score(bert, SUMMARY) == pytest.approx(expected, abs=1e-6)
    assert score(bert, "It slept. The cat sat. The dog ran. A dog slept.") != pytest.approx(
        expected, abs=1e-3
    )


@pytest.mark.parametrize("summary", ["", "The cat sat."])
def test_one_sentence_has_no_coherence(bert: Path, summary: str) -> None:
    """Without neighbours it does not apply."""
    assert math.isnan(score(bert, summary))


def test_the_head_counts_and_other_weights_do_not(tmp_path: Path) -> None:
    """A BERT with its other head, too, is one; one without a next-sentence head is refused."""
    both = write_bert(tmp_path / "both", network=BertForPreTraining)
    assert score(both, "The cat sat. It slept.") == pytest.approx(
        next_sentence(both, "The cat sat.", "It slept.")
    )
    bare = Coherence(Scoring(coherence_model=str(write_bert(tmp_path / "bare", network=BertModel))))
    with pytest.raises(DataError, match=r"weights are missing .*: cls\.seq_relationship"):
        bare.check()
