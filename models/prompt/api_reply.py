"""What an OpenAI-compatible server says: the JSON of a reply (`Reply`), and any text without the key (`key_remover`)."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

# Values of `finish_reason`: of an answer that reached its limit.
_CUT = (
    "length",
    "max_tokens",
    "max_output_tokens",
    "model_length",
    "model_context_window_exceeded",
)
# Of one that a filter removed.
_FILTERS = (
    "content_filter",
    "safety",
    "recitation",
    "refusal",
    "sensitive",
    "prohibited_content",
    "blocklist",
)
# Of one that the server could not end.
_FAILED = (
    "error",
    "abort",
    "aborted",
    "cancelled",
    "timeout",
    "network_error",
    "insufficient_system_resource",
)
# The reply in place of an error about the prompt.
FILTERED_REPLY = '{"choices": [{"message": {}, "finish_reason": "content_filter"}]}'

# Characters; a shorter key ("EMPTY", "ollama") is a placeholder, which an answer may contain.
_SHORTEST_SECRET = 12
# Characters of a key that a pattern spells out: a pattern of a whole token takes seconds to compile.
_KEY_HEAD = 24
_ANY_CHARACTER = (
    r"\\{1,8}(?:u00|x)[0-9a-f]{2}|%(?:25){0,8}[0-9a-f]{2}|&(?:amp;)?#\w{2,9};|\\?/|[!#-\[\]-~]"
)


@dataclass(frozen=True)
class _ReplyMessage:
    content: str | list[dict[str, Any]] | None = None  # the text, or its parts
    refusal: str | None = None
    reasoning_content: Any = None  # thinking that the server has separated
    reasoning: Any = None  # another name for it


@dataclass(frozen=True)
class Choice:
    """One answer, and why it ended."""

    message: _ReplyMessage
    finish_reason: str | None = None
    index: int | None = None

    @property
    def reason(self) -> str:
        """Why it ended, in lower case."""
        return (self.finish_reason or "stop").lower()

    @property
    def is_cut(self) -> bool:
        """True if it reached its limit."""
        return self.reason in _CUT

    @property
    def has_failed(self) -> bool:
        """True if the server could not end it."""
        return self.reason in _FAILED

    @property
    def is_refused(self) -> bool:
        """True if a filter or the model refused it."""
        return self.reason in _FILTERS or bool(self.message.refusal)

    @property
    def text(self) -> str:
        """The text, without separated thinking."""
        content = self.message.content
        if not isinstance(content, list):
            return content or ""
        texts = []
        for part in content:
            if part.get("type") not in ("thinking", "reasoning"):
                texts.append(str(part.get("text") or ""))
        return "".join(texts)

    @property
    def thinking(self) -> str:
        """The thinking that the server has separated."""
        return str(self.message.reasoning_content or self.message.reasoning or "")


@dataclass(frozen=True)
class Usage:
    """The server's counts of tokens; some servers give none."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class Reply:
    """The answers to one request."""

    choices: Annotated[list[Choice], Meta(min_length=1)]
    usage: Usage | None = None

    @property
    def choice(self) -> Choice:
        """The first answer, which need not be the first in the list."""
        return min(self.choices, key=lambda choice: choice.index or 0)


def key_remover(key: str | None) -> Callable[[str], str]:
    """Return a function that replaces a key by "<key>" in a text, however it is written there."""
    if key is None or len(key) < _SHORTEST_SECRET:
        return str
    return partial(_key_pattern(key).sub, "<key>")


def _key_pattern(key: str) -> re.Pattern[str]:
    """Return a pattern of a key in any case: plain, hexadecimal or Base64, with the escapes of JSON, URLs and HTML."""
    raw = key.encode()
    spellings = [key, raw.hex()]
    # In Base64, a key looks different after 0, 1 or 2 other bytes, and a few of its characters depend on its neighbours.
    for shift in range(3):
        independent = slice(-(-8 * shift // 6), 8 * (shift + len(raw)) // 6)
        encoded = base64.b64encode(bytes(shift) + raw).decode()[independent]
        spellings += [encoded, encoded.replace("+", "-").replace("/", "_")]
    patterns = []
    for text in spellings:
        head = "".join(map(_character_pattern, text[:_KEY_HEAD]))
        num_more = max(0, len(text) - _KEY_HEAD)
        patterns.append(f"{head}(?:{_ANY_CHARACTER}){{0,{num_more}}}")
    return re.compile("|".join(patterns), re.IGNORECASE)


def _character_pattern(character: str) -> str:
    code = ord(character)
    escaped = rf"\\{{1,8}}(?:u00|x){code:02x}|%(?:25){{0,8}}{code:02x}|&(?:amp;)?#(?:0{{0,8}}{code}|x0{{0,8}}{code:x});"
    return rf"(?:\\{{0,8}}{re.escape(character)}|{escaped})"
