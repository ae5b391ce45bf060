"""Marked words: what a text shares with others."""

from support.pages import HOSTILE, Reading

from longsumbench.views.html import mark_words, shared_by


def test_hostile_texts_are_escaped() -> None:
    """Markup in a text is text, also between marked words."""
    read = Reading(mark_words(HOSTILE, shared_by(HOSTILE, HOSTILE, "")))
    assert (read.text, set(read.elements)) == (HOSTILE, {"mark"})
