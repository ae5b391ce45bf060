"""Control codes of terminals in outputs: by hand, what a screen shows."""

from typing import Any

import pytest
from support.waiting import assert_linear

import longsumbench
from longsumbench.core.terminal_text import remove_control_codes

PLAN = "A good plan."
SHOWN = {
    "colours": "\x1b[?25lA \x1b[1;32mgood\x1b[0m plan.\x1b[?25h\x1b(B\x0f",
    "of 8 bits": "A \x9b1mgood\x9bm plan.",
    "a link": "A \x1b]8;;https://a.b/\x1b\\good\x1b]8;;\x07 plan.",
    "a title": "\x1b]0;summary\x07A good plan.",
    "a line that is overwritten": "reading 10%\rreading 99%\rA good plan.\x1b[K",
    "a spinner": "|\b/\b-\b\x1b[2K\x1b[1GA good plan.",
    "half a word at the end of a line": "A goo\x1b[3D\x1b[K\ngood plan.",
    "a cleared screen": "reading\nwriting\x1b[2J\x1b[HA good plan.",
    "a cleared screen, the cursor first": "reading\nwriting\x1b[H\x1b[JA good plan.",
    "a line that is erased": "reading \x1b[2K\x1b[1GA good plan.",
    "a stored place": "\x1b7reading\x1b8\x1b[KA good plan.",
    "a line up": "reading\n\x1b[1A\x1b[2KA good plan.",
    "some characters back": "A bad\b\b\bgood wish\x1b[4D\x1b[Kplan.",
    "forward": "A\x1b[1Cgood\x1b[Cplan.",
}


@pytest.mark.parametrize("kind", SHOWN)
def test_a_screen_shows_the_same(kind: str, log_lines: list[str]) -> None:
    """Each output shows the same sentence; one line counts the outputs and names the first."""
    outputs = {"a": PLAN, "b": SHOWN[kind], "c": SHOWN[kind]}
    assert [*remove_control_codes(outputs.items())] == [PLAN] * 3
    (line,) = log_lines
    assert line.startswith("2 outputs had control codes of a terminal, first 'b'")


@pytest.mark.parametrize("text", ["a\r\nb\r\n", "â\x80\x9cA plan\x9d \x9bword", "a\tb\x0cc", " x "])
def test_other_texts_stay(text: str, log_lines: list[str]) -> None:
    """Line ends of Windows, a wrong encoding, tabs and blanks are no control codes of terminals."""
    outputs: list[tuple[str, Any]] = [("a", text), ("b", (text,))]
    assert [*remove_control_codes(outputs)] == [text, (text,)]
    assert log_lines == []


@pytest.mark.parametrize(
    "text", ["One.\rTwo.\rThree.", "A long title\rText", "A (b).\r\rC", "One.\r"]
)
def test_lines_of_old_macs_stay(text: str, log_lines: list[str]) -> None:
    """Carriage returns end lines that no screen would show one over the other."""
    shown = text.replace("\r", "\n") if text.strip().count("\r") else text
    assert [*remove_control_codes([("a", text), ("b", (text,))])] == [shown, (shown,)]
    assert log_lines == []


@pytest.mark.parametrize("run", ["\x1b[A", "a\b", "\x1b[2J", "\x1b[2K", "\x1b7a", "a\n", "\r"])
def test_long_runs_take_linear_time(run: str) -> None:
    """Outputs of programs can be hostile."""
    assert_linear(lambda length: [*remove_control_codes([("a", run * length)])], 10_000)


def test_scores_are_those_of_the_screen() -> None:
    """Of a text and of a list of sentences."""
    outputs = {"a": SHOWN["a spinner"], "b": [SHOWN["colours"]]}
    assert longsumbench.score(outputs, {"a": PLAN, "b": PLAN}).f1["rougeLsum"] == 100
