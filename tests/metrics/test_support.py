"""Support: both schemes by hand, chunks that lose nothing, labels in any order, and what is kept of each sentence."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from support import drawn
from support.tiny_bert import write_bert
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
    RobertaTokenizerFast,
)

from longsumbench.core import Example, Scoring, SentenceScore
from longsumbench.errors import UsageError
from longsumbench.metrics import support
from longsumbench.metrics.support import Classifier, Support, entailment_label, premises

NLI = {0: "contradiction", 1: "Entailment", 2: "neutral"}


def example(*sentences: str) -> Example:
    """An example with a source of these sentences."""
    return drawn.example("e", sentences)


class WordTokenizer:
    """A tokenizer whose tokens are words; a pair has three special tokens."""

    def __call__(self, texts: Sequence[str], **options: Any) -> dict[str, list[list[str]]]:
        """Return words in place of ids."""
        return {"input_ids": [text.split() for text in texts]}

    def num_special_tokens_to_add(self, pair: bool) -> int:
        """Return the number for a pair."""
        return 3


def by_hand(
    monkeypatch: pytest.MonkeyPatch,
    known: Mapping[tuple[str, str], float],
    limit: int = 99,
    **settings: Any,
) -> Support:
    """Return the metric with a classifier that knows the probabilities of some pairs, and no others."""
    metric = Support(Scoring(**{f"support_{name}": value for name, value in settings.items()}))
    monkeypatch.setattr(
        metric, "_classifier", lambda: Classifier(WordTokenizer(), None, 0, limit, None)
    )
    monkeypatch.setattr(metric, "probabilities", lambda pairs: [known[pair] for pair in pairs])
    return metric


def write_classifier(folder: Path, labels: Mapping[int, str] = NLI, seed: int = 1) -> Path:
    """Write a tiny classifier with these labels."""
    write_bert(folder, seed)
    config = BertConfig.from_pretrained(folder, id2label=dict(labels), label2id={})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a classifier of three labels."""
    return write_classifier(tmp_path_factory.mktemp("models") / "nli")


def of_folder(folder: Path, **settings: Any) -> Support:
    """Return the metric with a classifier on the CPU."""
    return Support(Scoring(support_model=str(folder), device="cpu", **settings))


def test_sentences_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest probability over source sentences, then the mean: (max(.1, .8, .3) + max(.6, .2, .5)) / 2 = .7."""
    source, summary = ("A one.", " ", "B two.", "C three."), ("X one.", "Y two.")
    known = {("A one.", "X one."): 0.1, ("B two.", "X one."): 0.8, ("C three.", "X one."): 0.3}
    known |= {("A one.", "Y two."): 0.6, ("B two.", "Y two."): 0.2, ("C three.", "Y two."): 0.5}
    metric = by_hand(monkeypatch, known)
    scores, verdicts = metric.score_sentences(" ".join(summary), example(*source))
    assert scores == {"support": pytest.approx(0.7)}
    assert verdicts == [SentenceScore(0.8, 2), SentenceScore(0.6, 0)]


def test_chunks_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of at most four tokens are "A a B b", "C c D" and "E e e e": (max(.2, .4, .3) + max(.9, .1, .5)) / 2."""
    known = {("A a. B b.", "X one."): 0.2, ("C c. D.", "X one."): 0.4, ("E e e e.", "X one."): 0.3}
    known |= {("A a. B b.", "Y two."): 0.9, ("C c. D.", "Y two."): 0.1, ("E e e e.", "Y two."): 0.5}
    metric = by_hand(monkeypatch, known, scheme="chunks", length=4)
    source = example("A a.", "B b.", "C c.", "D.", "E e e e.")
    scores, verdicts = metric.score_sentences("X one. Y two.", source)
    assert scores == {"support": pytest.approx(0.65)}
    assert verdicts == [SentenceScore(0.4, 2), SentenceScore(0.9, 0)]


def test_only_similar_sentences_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four sentences, the two that share the rarest words are compared; no other pair is known."""
    source = ("the red cat", "the dog ran", "the red dog", "the end")
    known = {("the red cat", "a red cat"): 0.25, ("the red dog", "a red cat"): 0.75}
    assert by_hand(monkeypatch, known, top=2).score("a red cat", example(*source)) == {
        "support": 0.75
    }


def count_letters(texts: Sequence[str]) -> list[int]:
    """A token is up to three letters of a word."""
    return [sum(-(-len(word) // 3) for word in text.split()) for text in texts]


@given(
    st.lists(st.lists(st.text("ab é", max_size=12), max_size=8).map(" ".join), max_size=12),
    st.integers(1, 9),
    st.booleans(),
)
def test_nothing_is_lost(source: list[str], longest: int, chunks: bool) -> None:
    """Premises have all letters of a source in order, fit, and have whole every sentence that fits."""
    parts = premises(source, count_letters, longest, chunks)
    assert "".join("".join(part.text.split()) for part in parts) == "".join("".join(source).split())
    assert all(count_letters([part.text])[0] <= part.tokens <= longest for part in parts)
    for place, sentence in enumerate(source):
        if sentence.strip() and count_letters([sentence])[0] <= longest:
            assert any(sentence.strip() in part.text and part.source <= place for part in parts)
    if chunks:
        assert all(one.tokens + two.tokens > longest for one, two in pairwise(parts))


def test_a_real_classifier(classifier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The probability is the label's, of each pair alone, whatever the batches; a long pair is no problem."""
    source = ("the cat sat", "it slept", "the dog ran on and on")
    claims = ("a dog ran", "the cat slept")
    tokenizer = AutoTokenizer.from_pretrained(classifier)
    network = AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    best = []
    for claim in claims:
        pairs = [tokenizer(text, claim, return_tensors="pt") for text in source]
        with torch.inference_mode():
            best.append(max(float(network(**pair).logits.softmax(-1)[0, 1]) for pair in pairs))
    metric = of_folder(classifier)
    metric.check()
    for size in (1, 4, 32):
        monkeypatch.setattr(support, "_BATCH_SIZE", size)
        scores = metric.score("\n".join(claims), example(*source))
        assert scores["support"] == pytest.approx(np.mean(best), abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "label", "expected"),
    [
        ({0: "SUPPORTS", 1: "REFUTES", 2: "NOT ENOUGH INFO"}, None, 0),
        ({0: "not_entailment", 1: "entailment"}, None, 1),
        ({0: "LABEL_0", 1: "LABEL_1"}, "LABEL_1", 1),
    ],
)
def test_labels(labels: dict[int, str], label: str | None, expected: int) -> None:
    """The label is found by its name or by the setting."""
    assert entailment_label(labels, label, "m") == expected


@pytest.mark.parametrize(
    ("labels", "label", "problem"),
    [
        ("LABEL_0 LABEL_1", None, "no single label.*are LABEL_0, LABEL_1: set score.support_label"),
        ("entailment neutral", "yes", "no label yes; its labels are entailment, neutral"),
        ("entailment", None, "one label"),
    ],
)
def test_a_label_that_is_not_found(labels: str, label: str | None, problem: str) -> None:
    """One line says which labels there are, and what to set."""
    with pytest.raises(UsageError, match=f"^m.*{problem}.*$"):
        entailment_label(dict(enumerate(labels.split())), label, "m")


def test_a_roberta_of_two_labels(tmp_path: Path) -> None:
    """As in MiniCheck, its end token joins the two texts; its first positions belong to no token."""
    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(
        ["the cat sat on the mat and a dog ran"], 300, 1, special_tokens=special
    )
    bpe.save_model(str(tmp_path))
    tokenizer = RobertaTokenizerFast(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    tokenizer.save_pretrained(tmp_path)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=34,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.5,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = RobertaForSequenceClassification(config).eval()
    network.save_pretrained(tmp_path)
    metric = of_folder(tmp_path, support_label="LABEL_1")
    metric.check()  # with a long pair
    with torch.inference_mode():
        encoded = tokenizer(
            "<s>a cat sat</s>the dog ran</s>", add_special_tokens=False, return_tensors="pt"
        )
        expected = float(network(**encoded).logits.softmax(-1)[0, 1])
    assert metric.probabilities([("a cat sat", "the dog ran")]) == pytest.approx(
        [expected], abs=1e-6
    )


@pytest.mark.parametrize(
    ("summary", "source"), [("", ("a cat",)), (" \n", ("a cat",)), ("a cat", ()), ("a cat", ("",))]
)
def test_without_a_text_it_does_not_apply(summary: str, source: tuple[str, ...]) -> None:
    """An empty summary and an empty source have no support, which is not 0, and no verdict."""
    scores, sentences = Support(Scoring()).score_sentences(summary, example(*source))
    assert (math.isnan(scores["support"]), sentences) == (True, ())


def test_weights_in_pytorchs_format_are_read(tmp_path: Path) -> None:
    """Many published classifiers have no others."""
    pickled = write_classifier(tmp_path / "pickled")
    network = BertForSequenceClassification.from_pretrained(pickled)
    (pickled / "model.safetensors").unlink()
    torch.save(network.state_dict(), pickled / "pytorch_model.bin")
    of_folder(pickled).check()


def test_the_signature_tells_what_decides(classifier: Path) -> None:
    """It names the classifier, its label, and the settings."""
    signature = of_folder(classifier, support_top=4).signature(3)
    assert signature.startswith("support:1|model:nli@")
    assert "|label:Entailment|scheme:sentences|top:4|length:400|" in signature
