"""Marked words: what a text shares with others; and what it says twice."""

from support.pages import HOSTILE, Reading

from longsumbench.views.html import mark_words, repeated_spans, shared_by


def test_repeated_stretches_by_hand() -> None:
    """The trigram "a b c" comes back after "d": its words, and those of the trigrams that continue it, are repeated."""
    text = "A b c d. a, B c D e f"
    assert [text[start:end] for start, end in repeated_spans(text)] == ["a, B c D"]
    assert repeated_spans("a b a b") == []  # no trigram comes twice
    assert [("x " * 4)[start:end] for start, end in repeated_spans("x " * 4)] == ["x x x"]
    assert repeated_spans("") == []


def test_hostile_texts_are_escaped() -> None:
    """Markup in a text is text, also between marked words."""
    read = Reading(mark_words(HOSTILE, shared_by(HOSTILE, HOSTILE, "")))
    assert (read.text, set(read.elements)) == (HOSTILE, {"mark"})
