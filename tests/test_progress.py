"""Progress of long steps."""

import io
import re

import pytest
from support.waiting import wait_until

from longsumbench import progress
from longsumbench.progress import Progress, log_level, note_progress, phase


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_elsewhere_than_on_a_terminal_lines_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a log file every line is whole and ends with a newline: no bar, no carriage return."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    stream = io.StringIO()
    with Progress("training", 3, "steps", stream) as shown:
        shown.advance(note="loss 4.21")
        shown.advance(2)
    lines = stream.getvalue().splitlines()
    assert re.fullmatch(r"training: 1/3 steps, \d+ s left, loss 4\.21", lines[0])
    assert lines[1] == "training: 3/3 steps, 0 s left, loss 4.21"
    assert "\r" not in stream.getvalue()


def test_progress_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password in an untidy address, in a label or a note, is shown neither in a line nor on a bar."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    address = "http://ada:pa/ss#w@rd@host:8000/v1?api_key=rd4711"
    for stream in (io.StringIO(), Terminal()):
        with Progress(f"asking {address}", 3, "requests", stream) as shown:
            shown.advance(note=f"model.base_url={address}")
        assert "<secret>host:8000/v1?<secret>" in stream.getvalue()
        assert "rd" not in stream.getvalue()


def test_resumed_items_do_not_count_into_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 90 of 100 were done before, 5 items in 10 seconds leave 5 items, so 10 seconds; start-up is left out."""
    now = iter([0.0, 60.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now, 70.0))
    shown = Progress("decoding", 100, stream=io.StringIO())
    shown.start_at(90)
    shown.advance(5)
    assert shown.line() == "decoding: 95/100 texts, 10 s left"


def test_a_slow_first_item_does_not_count_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a first item of 300 seconds, the others take one each: from the fifth line on, 40 of them leave 40."""
    seconds = [0.0]
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 15.0)
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    stream = io.StringIO()
    shown = Progress("summarizing", 201, stream=stream)
    for took in [300.0, *[1.0] * 160]:
        seconds[0] += took
        shown.advance()
    assert stream.getvalue().splitlines()[0] == "summarizing: 1/201 texts, 16 h 40 min left"
    assert shown.line() == "summarizing: 161/201 texts, 40 s left"


@pytest.mark.parametrize("terminal", [False, True])
def test_time_left_goes_by_work_if_the_work_is_known(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 8,000 tokens, 2,000 took 30 seconds, and no text is done: 90 seconds are left. More than was expected: none."""
    seconds = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    stream = Terminal() if terminal else io.StringIO()
    with Progress("summarizing", 4, stream=stream) as shown:
        shown.start_at(2)
        shown.expect(8_000)
        seconds[0] = 30.0
        note_progress("round 1, request 1 of 4", 2_000)
        assert shown.line() == "summarizing: 2/4 texts, 1 min 30 s left, round 1, request 1 of 4"
        if terminal:
            assert re.fullmatch(r".* 2/4 \[\S+, 1 min 30 s left, round 1.*", str(shown._bar))
        note_progress("round 2, request 1 of 2", 6_500)
        assert shown.line() == "summarizing: 2/4 texts, round 2, request 1 of 2"


def test_a_log_says_within_seconds_what_goes_on(
    monkeypatch: pytest.MonkeyPatch, log_lines: list[str]
) -> None:
    """A step whose first item takes long, and one without items, are named before they are done; short ones are not."""
    monkeypatch.setattr(progress, "SECONDS_UNTIL_SHOWN", 0.0)
    stream = io.StringIO()
    with Progress("training", 3, "steps", stream):
        wait_until(stream.getvalue)
    assert stream.getvalue() == "training: 0/3 steps\n"
    monkeypatch.setattr(progress, "SECONDS_UNTIL_SHOWN", 1e6)
    with phase("loading the libraries"), Progress("training", 3, "steps", stream):
        pass
    assert (stream.getvalue(), log_lines) == ("training: 0/3 steps\n", [])
    monkeypatch.setattr(progress, "SECONDS_UNTIL_SHOWN", 0.0)
    with phase("loading the libraries"):
        wait_until(lambda: log_lines)
    assert log_lines == ["loading the libraries …"]


def test_how_far_an_item_is_belongs_to_the_innermost_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note about an item counts nothing, shows in the line of the innermost step, and is lost without any step."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    outer, inner = io.StringIO(), io.StringIO()
    note_progress("token 1 of 9")
    with Progress("training", 3, "steps", outer), Progress("summarizing", 2, stream=inner) as shown:
        note_progress("token 3 of 9")
        assert shown.done == 0
    assert outer.getvalue() == ""
    assert inner.getvalue() == "summarizing: 0/2 texts, token 3 of 9\n"


def test_nothing_is_promised_without_a_total() -> None:
    """A step of unknown length shows what is done, and one past its total never shows a negative time."""
    shown = Progress("reading", None, stream=io.StringIO())
    shown.advance(3)
    assert shown.line() == "reading: 3 texts"
    over = Progress("reading", 2, stream=io.StringIO())
    over.advance(3)
    assert over.line() == "reading: 3/2 texts"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_nothing_is_shown_above_the_level_of_information(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sets the logger's level to WARNING sees neither bars nor lines."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with log_level("WARNING"), Progress("training", 2, "steps", stream) as shown:
        shown.advance()
    assert stream.getvalue() == ""
