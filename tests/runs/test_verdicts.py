"""Verdicts of a run: what is kept of each sentence, and how pages show it."""

from pathlib import Path

import pytest
from support.pages import Reading

from longsumbench.core import Scoring, SentenceVerdict
from longsumbench.errors import DataError
from longsumbench.metrics.support import Support
from longsumbench.render.html import html_page
from longsumbench.runs.verdicts import html_verdicts, read_verdicts, write_verdicts


def test_verdicts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A metric without verdicts writes no file; a damaged line is named."""
    metric = Support(Scoring())
    write_verdicts(tmp_path, [metric])
    assert read_verdicts(tmp_path) == {}
    metric.verdicts = {"a\u2028": [SentenceVerdict(0.25, 3), SentenceVerdict(1.0, 0)]}
    write_verdicts(tmp_path, [metric])
    assert read_verdicts(tmp_path) == {"support": metric.verdicts}
    with (tmp_path / "verdicts-support.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "b"')
    with pytest.raises(DataError, match="delete the file") as caught:
        read_verdicts(tmp_path)
    assert str(tmp_path / "verdicts-support.jsonl") in str(caught.value)
    assert caught.value.exit_code == 3


def test_key_points_are_kept_and_escaped(tmp_path: Path) -> None:
    """They come before the sentences, in a list of their own, and what a model wrote is text."""
    metric = Support(Scoring())
    metric.verdicts = {"a": [SentenceVerdict(0.5, -1, "A <b>point</b>\u2028"), SentenceVerdict(0.0, -1)]}
    write_verdicts(tmp_path, [metric])
    verdicts = read_verdicts(tmp_path)
    assert verdicts == {"support": metric.verdicts}
    html = html_verdicts(verdicts, "a", "One.")
    text = " ".join(Reading(html_page("verdicts", [html])).text.split())
    assert "support, 0 of 1 key point below 50%50% A <b>point</b> support, 1 of 1 sentence below 50%0% One." in text
    assert "<b>point" not in html
    assert html_verdicts(verdicts, "a", "One. Two.") == ""


def test_sentences_with_their_scores() -> None:
    """Each sentence has its percentage and its source sentence; markup in it is text; other texts have no verdict."""
    verdicts = {"support": {"a": [SentenceVerdict(0.25, 3), SentenceVerdict(0.75, 0)]}}
    html = html_verdicts(verdicts, "a", "One <script>alert(1)</script>\nTwo.", "lead")
    reading = Reading(html_page("verdicts", [html]))
    assert reading.open == []
    text = " ".join(reading.text.split())
    assert "lead: support, 1 of 2 sentences below 50%" in text
    assert "25% One <script>alert(1)</script>" in text
    assert "75% Two. (source sentence 1)" in text
    assert "<script" not in html
    assert html_verdicts(verdicts, "a", "One.") == html_verdicts(verdicts, "b", "One. Two.") == ""
    assert html_verdicts({"support": {"a": []}}, "a", "") == ""
