"""ROUGE equals rouge_score bit for bit, and keeps to its definitions."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from longsumbench.documents import Sentences
from longsumbench.rouge.google import TYPES, GoogleRouge, Score
from longsumbench.rouge.signature import signature

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference"
SENTENCES = st.lists(
    st.lists(st.sampled_from(["a", "b", "dogs", "dog", "run", "running"]), min_size=1).map(" ".join)
).map(tuple)


@pytest.fixture(scope="module")
def pairs() -> dict[str, tuple[Sentences, Sentences]]:
    path = REFERENCE / "rouge_pairs.jsonl"
    if not path.is_file():
        pytest.skip(f"{path.name} is not beside this checkout")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["id"]: (tuple(row["candidate"]), tuple(row["reference"])) for row in rows}


@pytest.mark.parametrize("name", ["stemmed", "unstemmed"])
def test_recorded_scores(pairs: dict[str, tuple[Sentences, Sentences]], name: str) -> None:
    """Every recorded pair gets the recorded precision, recall and F, to the last bit."""
    rouge = GoogleRouge(stem=name == "stemmed")
    for line in (REFERENCE / "rouge_pairs_google.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        candidate, reference = pairs[row["id"]]
        expected = {kind: Score(**score) for kind, score in row["scores"][name].items()}
        assert rouge.score(candidate, [reference]) == expected, row["id"]


@given(prediction=SENTENCES, references=st.lists(SENTENCES, min_size=1, max_size=3), stem=st.booleans())
def test_equals_rouge_score(prediction: Sentences, references: list[Sentences], stem: bool) -> None:
    """One and several references score as rouge_score's score_multi scores them, one sentence a line."""
    peer = rouge_scorer.RougeScorer(list(TYPES), use_stemmer=stem)
    expected = peer.score_multi(["\n".join(reference) for reference in references], "\n".join(prediction))
    actual = GoogleRouge(stem).score(prediction, references)
    assert {kind: tuple(score) for kind, score in expected.items()} == actual


@given(text=SENTENCES.filter(bool))
def test_identity(text: Sentences) -> None:
    """A text scores 1 against itself, in every type that finds something to match."""
    scores = GoogleRouge().score(text, [text])
    bigrams = len(" ".join(text).split()) > 1
    assert all(scores[kind] == (1, 1, 1) for kind in TYPES if bigrams or kind != "rouge2")


@given(one=SENTENCES, other=SENTENCES)
def test_swapping_sides_swaps_precision_and_recall(one: Sentences, other: Sentences) -> None:
    """Precision against is recall for, where matching is symmetric: n-grams and ROUGE-L."""
    forth, back = GoogleRouge().score(one, [other]), GoogleRouge().score(other, [one])
    for kind in ("rouge1", "rouge2", "rougeL"):
        assert forth[kind] == (back[kind].r, back[kind].p, back[kind].f)


def test_by_hand() -> None:
    """Two sentences in the other order: all words, 2 of 3 bigrams, half as one sequence, all of it as sentences."""
    scores = GoogleRouge().score(("a b", "c d"), [("c d", "a b")])
    assert scores["rouge1"] == (1, 1, 1)
    assert scores["rouge2"] == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert scores["rougeL"] == (0.5, 0.5, 0.5)
    assert scores["rougeLsum"] == (1, 1, 1)


def test_line_break_within_a_sentence() -> None:
    """A line break inside a sentence does not split it."""
    reference = ("one two three four",)
    assert GoogleRouge().score(("three\nfour one two",), [reference]) == GoogleRouge().score(
        ("three four one two",), [reference]
    )


def test_best_reference_is_chosen_for_each_type() -> None:
    """With two references, each type takes the one that gives it the higher F."""
    words, order = ("b a d c",), ("a b x y z",)
    rouge = GoogleRouge()
    both = rouge.score(("a b c d",), [words, order])
    assert both["rouge1"] == rouge.score(("a b c d",), [words])["rouge1"]
    assert both["rouge2"] == rouge.score(("a b c d",), [order])["rouge2"]


def test_empty_prediction() -> None:
    """Nothing predicted scores 0 throughout."""
    assert set(GoogleRouge().score((), [("a reference",)]).values()) == {Score(0, 0, 0)}


def test_words() -> None:
    """A sentence has words when the tokenizer keeps something of it."""
    rouge = GoogleRouge()
    assert rouge.has_words(("—", "a"))
    assert not rouge.has_words(("—", " \n", ""))


def test_signature() -> None:
    """The signature tells apart scores that were stemmed or not, and means over other numbers of examples."""
    assert len({signature(True, 5), signature(False, 5), signature(True, 6)}) == 3
    assert "rouge_score-0.1.2|mode:google|stemmer:porter|" in signature(True, 5)
