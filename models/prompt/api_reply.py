"""What an OpenAI-compatible server says: the JSON of a reply (`Reply`), and of its models (`ModelList`)."""

import math
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import mktime_tz, parsedate_tz
from typing import Annotated, Any

from msgspec import Meta

from longsumbench.core.language_model import sum_choices

# Values of `finish_reason`, in lower case: of a complete answer.
_COMPLETE = (
    "stop",
    "stop_sequence",
    "eos",
    "eos_token",
    "end_turn",
    "complete",
    "completed",
    "tool_calls",
    "function_call",
)
# Of one that reached its limit.
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
_FLAGGED = re.compile(r"flagged|moderat|polic(?:y|ies)|safety|guardrail", re.IGNORECASE)
# A limit of requests per minute, or of a queue, names lengths, too. `"message":` is no message.
_TOO_LONG = re.compile(
    r".*tokens must be reduced"
    r"|(?!.*(?:rate.?limit|per.(?:second|min|hour|day)|quota|try again (?:in|later)|queue|overloaded)).*?"
    r"(?:context.{0,20}(?:length|size|window|limit)"
    r"|(?:prompt|input|message|request)s?\b(?!\\?[\"'])(?:(?!max_).){0,40}(?<!took )(?<!taking )too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|maximum.{0,20}(?:model length|number of.{0,20}tokens)|inputs\b.{0,30}tokens"
    r"|exceed.{0,20}context|tokens.{0,40}must be <|input length should|max_model_len|n_ctx)",
    re.IGNORECASE | re.DOTALL,
)
# The reply in place of an error about the prompt.
FILTERED_REPLY = '{"choices": [{"message": {}, "finish_reason": "content_filter"}]}'
# What a server says of a model that another start or port of it does not change.
_LASTING = ("root", "owned_by", "meta")


@dataclass(frozen=True)
class _ReplyMessage:
    # The text, or its parts.
    content: str | list[str | dict[str, Any] | None] | dict[str, Any] | None = None
    refusal: Any = None
    reasoning_content: Any = None  # thinking that the server has separated
    reasoning: Any = None  # another name for it


@dataclass(frozen=True)
class Choice:
    """One answer, and why it ended."""

    message: _ReplyMessage | None = None
    finish_reason: Any = None
    index: int | None = None
    logprobs: Any = None  # of the tokens; only if they were asked for
    error: Any = None  # of a provider behind the server

    @property
    def reason(self) -> str:
        """Why it ended, in lower case."""
        return str(self.finish_reason or "stop").lower()

    @property
    def is_cut(self) -> bool:
        """True if it reached its limit, or has a text with an unknown end."""
        return self.reason not in _COMPLETE and not self.is_refused

    @property
    def has_failed(self) -> bool:
        """True if the server could not end it."""
        return self.reason in _FAILED or bool(self.error)

    @property
    def is_refused(self) -> bool:
        """True if a filter or the model refused it, or it has an unknown end and no text."""
        if self.reason in _FILTERS or (self.message and self.message.refusal):
            return True
        return not self.text and self.reason not in _COMPLETE + _CUT

    def weigh(self, choices: Sequence[str]) -> tuple[float, ...]:
        """Return the probabilities of choices as the first token; empty if the server gives none."""
        try:
            likeliest = self.logprobs["content"][0]["top_logprobs"]
            tokens = [(str(each["token"]), math.exp(each["logprob"])) for each in likeliest]
        except (LookupError, OverflowError, TypeError):
            return ()
        return sum_choices(tokens, choices)

    @property
    def text(self) -> str:
        """The text, without separated thinking."""
        content = self.message and self.message.content
        text = ""
        for part in content if isinstance(content, list) else [content]:
            if not isinstance(part, dict):
                text += part or ""
            elif (part.get("type") or "text") in ("text", "output_text"):
                value = part.get("text")
                text += str((value.get("value") if isinstance(value, dict) else value) or "")
        return text

    @property
    def thinking(self) -> str:
        """The thinking that the server has separated."""
        message = self.message or _ReplyMessage()
        return str(message.reasoning_content or message.reasoning or "")


@dataclass(frozen=True)
class Reply:
    """The answers to one request."""

    choices: Annotated[list[Choice], Meta(min_length=1)]
    usage: Any = None  # the server's counts of tokens; some give none
    error: Any = None

    @property
    def choice(self) -> Choice:
        """The first answer, which need not be the first in the list."""
        return min(self.choices, key=lambda choice: choice.index or 0)

    def count_tokens(self, kind: str, part: str | None = None) -> int | None:
        """Return the server's count of "prompt_tokens" or "completion_tokens", or of a part of them, if it is one."""
        try:
            count = self.usage[f"{kind}_details"][part] if part else self.usage[kind]
            number = int(float(count))
        except (KeyError, OverflowError, TypeError, ValueError):
            return None
        return number if number >= 0 else None


def is_about_text(text: str) -> bool:
    """Return True if a refusal is about what one request says."""
    return _FLAGGED.search(text) is not None


def says_too_long(text: str) -> bool:
    """Return True if a reply is no answer, but the error for a prompt that is too long."""
    return '"choices"' not in text and _TOO_LONG.match(text) is not None


def wait_asked_for(headers: Any) -> float | None:
    """Return the seconds in the header Retry-After, or until its date; None without one, or if that is no time to wait."""
    value = headers.get("retry-after", "")
    with suppress(OverflowError, ValueError):
        parsed = parsedate_tz(value)
        seconds = mktime_tz(parsed) - time.time() if parsed else float(value)
        return seconds if seconds > 0 else None
    return None


@dataclass(frozen=True)
class ModelList:
    """The models of a server."""

    data: list[dict[str, Any]]

    def describe(self, name: str) -> dict[str, Any]:
        """Return what identifies a model, or the only one, which may have another name."""
        models = [model for model in self.data if model.get("id") == name] or self.data
        if len(models) != 1:
            return {}
        return {key: models[0][key] for key in _LASTING if models[0].get(key) is not None}

    def find(self, name: str | None) -> dict[str, Any]:
        """Return what a server says of the model with a name; nothing if it does not know it."""
        return next((model for model in self.data if model.get("id") == name), {})


@dataclass(frozen=True)
class Properties:
    """What a server of llama.cpp says of itself."""

    model_path: str | None = None
    default_generation_settings: dict[str, Any] = field(default_factory=dict)
