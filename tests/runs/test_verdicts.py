"""Verdicts of a run: what is kept of each sentence, and how pages show it."""

from pathlib import Path

import pytest
from support.pages import Reading, inspection

from longsumbench.core import SentenceScore
from longsumbench.errors import DataError
from longsumbench.runs.verdicts import judged_lists, read_verdicts, write_verdicts


def test_verdicts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A metric without verdicts writes no file; a damaged line is named."""
    write_verdicts(tmp_path, {})
    assert read_verdicts(tmp_path) == {}
    point = SentenceScore(0.5, -1, "A point\u2028")
    verdicts = {"support": {"a\u2028": [point, SentenceScore(1.0, 0)]}}
    write_verdicts(tmp_path, verdicts)
    assert read_verdicts(tmp_path) == verdicts
    file = tmp_path / "verdicts-support.jsonl"
    file.write_text(file.read_text() + '{"id": "b"')
    with pytest.raises(DataError, match="delete the file") as caught:
        read_verdicts(tmp_path)
    assert (str(file) in str(caught.value), caught.value.exit_code) == (True, 3)


def test_sentences_with_their_scores() -> None:
    """Key points come first; each sentence has its percentage and its source sentence; markup in it is text."""
    point = SentenceScore(0.5, -1, "A <b>point</b>")
    judged = [point, SentenceScore(0.25, 3), SentenceScore(0.75, 0)]
    verdicts = {"support": {"a": judged}}
    summary = "One <script>alert(1)</script>\nTwo."
    reading = Reading(inspection(None, summary, "a", verdicts=verdicts).page())
    assert (reading.open, "script" in reading.elements) == ([], False)
    text = " ".join(reading.text.split())
    assert "support, 0 of 1 key point below 50% 50% A <b>point</b> support, 1 of 2 sent" in text
    assert "below 50% 25% One <script>alert(1)</script> (source sentence 4)" in text
    assert "75% Two. (source sentence 1)" in text
    assert judged_lists(verdicts, "a", "One.") == judged_lists(verdicts, "b", "One. Two.") == []


def test_key_points_alone() -> None:
    """A metric that judges no sentences has a list of its key points, for any summary."""
    points = [SentenceScore(1.0, 4, "right, date: A fact."), SentenceScore(0.0, 7, "missing")]
    [(heading, rows)] = judged_lists({"fact_survival": {"a": points}}, "a", "One. Two.")
    assert heading == "fact_survival, 1 of 2 key points below 50%"
    assert [(row.text, row.share, row.place) for row in rows] == [
        ("right, date: A fact.", "100%", 5),
        ("missing", "0%", 8),
    ]
