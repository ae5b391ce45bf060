"""A language model for tests whose answers are scripted: an engine that a registry opens by its name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from longsumbench.core import Answer, Decoding, Message, Request, registry

Reply = Callable[[Request], str | Answer]


def answer(text: str, **facts: Any) -> Answer:
    """Return a complete answer, unless the facts say otherwise."""
    return replace(
        Answer(text, complete=True, refused=False, prompt_tokens=0, output_tokens=0), **facts
    )


class Script:
    """What models answer, and what they were asked.

    Attributes:
        replies: name of a model → a function of the request.
        asked: all requests, with the name of the model.
    """

    def __init__(self, replies: Mapping[str, Reply]) -> None:
        self.replies = replies
        self.asked: list[tuple[str, Request]] = []

    def prompts(self, name: str) -> list[str]:
        """Return the last messages that a model got."""
        return [request.messages[-1]["content"] for model, request in self.asked if model == name]


class ScriptedEngine:
    """Answers by the script that `use_script` set."""

    script = Script({})
    tokenizer = None
    context = None

    def __init__(self, config: Any) -> None:
        self.name = str(config.checkpoint)

    def count(self, messages: Sequence[Message]) -> int:
        """It has no tokenizer."""
        raise AssertionError

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Answer one request after the other."""
        for request in requests:
            self.script.asked.append((self.name, request))
            reply = self.script.replies[self.name](request)
            yield answer(reply) if isinstance(reply, str) else reply

    def identity(self) -> dict[str, Any]:
        """Return nothing beyond the settings."""
        return {}

    def metadata(self) -> dict[str, Any]:
        """Return the name."""
        return {"engine": "scripted"}


def use_script(monkeypatch: pytest.MonkeyPatch, replies: Mapping[str, Reply]) -> Script:
    """Register the engine "scripted", whose models answer by these functions."""
    target = f"{ScriptedEngine.__module__}:ScriptedEngine"
    built_in = MappingProxyType({**registry.engines.built_in, "scripted": target})
    monkeypatch.setattr(registry, "engines", replace(registry.engines, built_in=built_in))
    monkeypatch.setattr(ScriptedEngine, "script", Script(replies))
    return ScriptedEngine.script
