"""Marked words: what a text shares with others, and what it says twice."""

from support.pages import HOSTILE, Reading

from longsumbench.views.marked_words import mark_repetitions, repeated_spans, shared_by


def test_repeated_stretches_by_hand() -> None:
    """The trigram "a b c" comes back after "d": its words, and those of the trigrams that continue it, are repeated."""
    text = "A b c d. a, B c D e f"
    assert [text[start:end] for start, end in repeated_spans(text)] == ["a, B c D"]
    assert repeated_spans("a b a b") == []  # no trigram comes twice
    assert [("x " * 4)[start:end] for start, end in repeated_spans("x " * 4)] == ["x x x"]
    assert repeated_spans("") == []


def test_repetitions_keep_the_marks_of_words() -> None:
    """A repeated stretch is one span around its words, which are marked as elsewhere; nothing of the text is lost."""
    text = "bridge goes north, bridge goes north."
    marked = mark_repetitions(text, shared_by(text, "the bridges", ""))
    one = '<mark class="one">bridge</mark> goes north'
    assert marked == f'{one}, <span class="repeated">{one}</span>.'


def test_hostile_texts_are_escaped() -> None:
    """Markup in a text is text, also in repeated stretches."""
    text = f"{HOSTILE} {HOSTILE}"
    read = Reading(mark_repetitions(text, shared_by(text, HOSTILE, "")))
    assert (read.text, set(read.elements)) == (text, {"mark", "span"})
