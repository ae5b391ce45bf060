"""Secrets are removed from texts, however they are written, and other texts stay."""

import base64

import pytest

from longsumbench.errors import UsageError
from longsumbench.redaction import hide_key, redact, remove_key

KEY = "sk-0a1b2c3d4e5f"
PROXY = "http://me:pa/ss#w0rd@proxy:3128"


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WRITTEN = {  # a secret → what remains of it
    KEY.upper(): "<key>",
    "sk-0a1b2c\n   3d4e5f": "<key>",
    r'"sk-0a1b2c3d\n4e5f"': '"<key>"',
    "sk-0a1b2c3d%0D%0A4e5f": "<key>",
    "sk-0a1b****4e5f": "<secret>",
    "sk-0…4e5f": "<secret>",
    "sk-0a1b2c3": "<key>",
    KEY.encode().hex().upper(): "<key>",
    in_base64(f"Bearer {KEY}"): "QmVhcmVyI<key>",
    "&#x73;&#107;%252D0a1b2c3d4e5f": "<key>",
    PROXY: "http://<secret>proxy:3128",
    "pa%2fss%23w0rd": "<key>",
    in_base64("me:pa/ss#w0rd"): "bWU6<key>",
    "https://a:b@c@host/x": "https://<secret>host/x",
    "https://token@host/x": "https://<secret>host/x",
    "https://host/x?a=1&api_key=abc": "https://host/x?a=1&<secret>",
}


@pytest.mark.parametrize("written", WRITTEN)
def test_secrets_are_removed(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, parts of them and passwords in any spelling; every error shows its message without them."""
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    hide_key(KEY)
    assert redact(f"It has {written} and ends.") == f"It has {WRITTEN[written]} and ends."
    assert str(UsageError(written)) == WRITTEN[written]


@pytest.mark.parametrize(
    "text",
    [
        "model.base_url=http://localhost:8000/v1 does not answer: see https://medium.com/@me/post …",
        "/texts/first…last/x: wait...what, pages 1...10",
        "loading … [1, 2, ...] of /tmp/a/b\n4096 tokens, sk-… and 50 % of them",
        "",
    ],
)
def test_other_messages_stay(text: str) -> None:
    """Addresses, ellipses and placeholders for keys are no secrets."""
    hide_key(KEY)
    hide_key("placeholder"[:11])
    assert redact(text) == text
    assert redact("placeholder") == "placeholder"


def test_an_answer_may_have_a_part_of_a_key() -> None:
    """By hand: only parts as long as asked for are removed."""
    key = "local-development-key"
    assert remove_key("Local development", key, 12) == "Local development"
    assert remove_key("local-development was", key, 12) == "<key> was"
