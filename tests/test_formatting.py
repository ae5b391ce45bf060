"""What reaches a terminal has no secrets and no control characters; what goes to a file or a pipe is data."""

import logging
import math
import sys
import unicodedata

import pytest

from longsumbench.cli.main import main
from longsumbench.errors import UsageError
from longsumbench.formatting import (
    describe_work,
    escape_line,
    escape_lines,
    format_interval,
    hide_key,
    print_text,
)
from longsumbench.views.tables import Block, terminal

HOSTILE = "\x1b[31mred\x07\r\n\x9b2J\u202eevil\u2066x\u2028y"
ESCAPED = r"\x1b[31mred\x07\r\n\x9b2J\u202eevil\u2066x\u2028y"


def test_every_control_character_is_escaped_and_nothing_else() -> None:
    """Of all characters, exactly controls, separators of lines, direction overrides and halves are changed."""
    codes = range(sys.maxunicode + 1)
    changed = {code for code in codes if escape_line(chr(code)) != chr(code)}
    by_category = {code for code in codes if unicodedata.category(chr(code)) in ("Cc", "Cs")}
    assert changed == by_category | {*range(0x2028, 0x202F), *range(0x2066, 0x206A)}
    in_lines = {code for code in changed if escape_lines(chr(code)) != chr(code)}
    assert changed - in_lines == {ord("\n"), ord("\t")}


def test_a_text_is_escaped_as_python_writes_it() -> None:
    """What is left can be encoded, and shows which characters were there."""
    assert escape_line(HOSTILE) == ESCAPED
    assert escape_line("caf\udce9").encode() == rb"caf\udce9"
    assert escape_lines("a\tb\nc\x1b") == "a\tb\nc\\x1b"


def test_an_unknown_interval_is_called_so() -> None:
    """No screen shows NaN."""
    assert format_interval(-1.25, 0.5, "+.2f") == "-1.25 to +0.50"
    assert format_interval(math.nan, 0.5) == format_interval(0.5, math.nan) == "–"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (42, "42 s"), (130, "2 min 10 s"), (11_100, "3 h 5 min"), (176_400, "2 d 1 h")],
)
def test_work_is_said_in_the_same_words(seconds: float, text: str) -> None:
    """Texts, tokens if there are any, and the two largest units of the time."""
    assert describe_work(40, 312_000, seconds) == f"40 texts, 312,000 tokens, {text}"
    assert describe_work(1, seconds=seconds) == f"1 text, {text}"


def test_messages_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """What is reported on stderr is one line, whatever it names; a table's cell is one line, too."""
    logging.getLogger("longsumbench").info(f"example {HOSTILE}")
    assert capsys.readouterr().err == f"example {ESCAPED}\n"
    assert main(["inspect", HOSTILE, "0", "--results-dir", "nowhere"]) == 2
    assert ESCAPED in capsys.readouterr().err
    drawn = terminal("title", [Block("", (), ("id",), "l", [[HOSTILE]])])
    assert drawn.splitlines()[-1].strip() == ESCAPED


@pytest.mark.parametrize("on_terminal", [True, False])
def test_stdout_is_escaped_on_a_terminal_only(
    on_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file or a pipe a text stays as it is."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: on_terminal)
    print_text(HOSTILE)
    assert capsys.readouterr().out == (escape_lines(HOSTILE) if on_terminal else HOSTILE) + "\n"


SECRETS = """
{"Authorization": "Bearer sk-0a1b2c3d4e5f"} → {"Authorization": "Bearer <key>"}
sk-0a1b****4e5f → <secret>
sk-0…4e5f → <secret>
http://me:pa/ss#w0rd@proxy:3128 → http://<secret>proxy:3128
https://a:b@c@host/x → https://<secret>host/x
https://token@host/x?a=1&api_key=abc → https://<secret>host/x?a=1&<secret>
placeholder, sk-… and http://localhost/v1: see https://medium.com/@me/post …
/texts/first…last/x: wait...what, pages 1...10, loading … [1, 2, ...]
"""


@pytest.mark.parametrize("line", SECRETS.strip().splitlines())
def test_a_message_has_no_secrets(line: str) -> None:
    """Keys and passwords in addresses are removed; addresses, ellipses and placeholders for keys stay."""
    hide_key("sk-0a1b2c3d4e5f")
    hide_key("placeholder")
    written, _, rest = line.partition(" → ")
    assert str(UsageError(f"It has {written} and ends.")) == f"It has {rest or written} and ends."
