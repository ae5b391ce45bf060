"""Verdicts of a run: what is kept of each sentence, and how pages show it."""

from pathlib import Path

import pytest
from support.pages import Reading, inspection

from longsumbench.core import SentenceVerdict
from longsumbench.errors import DataError
from longsumbench.outputs.inspection import overlap_page
from longsumbench.runs.verdicts import JudgedSentence, judged_lists, read_verdicts, write_verdicts


def test_verdicts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A metric without verdicts writes no file; a damaged line is named."""
    write_verdicts(tmp_path, {})
    assert read_verdicts(tmp_path) == {}
    verdicts = {"support": {"a\u2028": [SentenceVerdict(0.25, 3), SentenceVerdict(1.0, 0)]}}
    write_verdicts(tmp_path, verdicts)
    assert read_verdicts(tmp_path) == verdicts
    with (tmp_path / "verdicts-support.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "b"')
    with pytest.raises(DataError, match="delete the file") as caught:
        read_verdicts(tmp_path)
    assert str(tmp_path / "verdicts-support.jsonl") in str(caught.value)
    assert caught.value.exit_code == 3


def test_key_points_are_kept_and_escaped(tmp_path: Path) -> None:
    """They come before the sentences, in a list of their own, and what a model wrote is text."""
    sentences = [SentenceVerdict(0.5, -1, "A <b>point</b>\u2028"), SentenceVerdict(0.0, -1)]
    write_verdicts(tmp_path, {"support": {"a": sentences}})
    verdicts = read_verdicts(tmp_path)
    assert verdicts == {"support": {"a": sentences}}
    text = " ".join(
        Reading(overlap_page(inspection(None, "One.", "a", verdicts=verdicts))).text.split()
    )
    assert (
        "support, 0 of 1 key point below 50% 50% A <b>point</b> support, 1 of 1 sentence below 50% 0% One."
        in text
    )
    assert judged_lists(verdicts, "a", "One. Two.") == []


def test_sentences_with_their_scores() -> None:
    """Each sentence has its percentage and its source sentence; markup in it is text; other texts have no verdict."""
    verdicts = {"support": {"a": [SentenceVerdict(0.25, 3), SentenceVerdict(0.75, 0)]}}
    summary = "One <script>alert(1)</script>\nTwo."
    ((heading, judged),) = judged_lists(verdicts, "a", summary)
    assert heading == "support, 1 of 2 sentences below 50%"
    first = JudgedSentence("One <script>alert(1)</script>", "25%", True, 4)
    assert judged == [first, JudgedSentence("Two.", "75%", False, 1)]
    reading = Reading(overlap_page(inspection(None, summary, "a", verdicts=verdicts)))
    assert reading.open == []
    text = " ".join(reading.text.split())
    assert (
        "support, 1 of 2 sentences below 50% 25% One <script>alert(1)</script> (source sentence 4)"
        in text
    )
    assert "75% Two. (source sentence 1)" in text
    assert "script" not in reading.elements
    assert judged_lists(verdicts, "a", "One.") == judged_lists(verdicts, "b", "One. Two.") == []
    assert judged_lists({"support": {"a": []}}, "a", "") == []
