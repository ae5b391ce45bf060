"""A server of a language model on loopback, in the form of OpenAI's, with faults; and an engine that asks it."""

import json
import socket
import sqlite3
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from longsumbench.core import Answer, Decoding, Request, build_settings
from longsumbench.models.prompt.api_engine import ApiEngine
from longsumbench.models.prompt.config import PromptConfig
from support.serving import QuietHandler, serving

Message = Mapping[str, str]
PASSING_FAULTS = ("busy", "error", "reset", "cut", "broken")  # a client asks again
_REPLIES = {  # of those faults that are replies
    "busy": (429, '{"error": {"message": "too many requests"}}'),
    "error": (500, '{"error": {"message": "out of memory"}}'),
    "broken": (200, '{"choices": [{"message": {"content": "half of'),
}
KEY_VARIABLE = "A_KEY_FOR_TESTS"


def last_words(messages: Sequence[Message]) -> str:
    """Answer with the end of the last message."""
    return " ".join(messages[-1]["content"].split()[-12:])


@dataclass
class ApiServer:
    """What a server answers, and what it was sent.

    Attributes:
        base_url: its address, as in `model.base_url`.
        answer: messages → the text of the answer.
        fault: number of a request, from 0 → its fault: one of `PASSING_FAULTS`, (status, body), an iterable of bytes,
            which are sent instead of a reply with its headers, or None.
        reply: what replaces parts of the JSON of a good answer.
        models: what it says of its models; None: nothing.
        held: number of a request → True if its answer waits until `released` is set.
        bodies: the JSON of all requests.
        paths: what they asked for, with the query.
        headers: all headers of each.
        answered: the last message → how often it got a good answer.
        most_at_once: the highest number of requests that it had at the same time.
    """

    base_url: str = ""
    answer: Callable[[Sequence[Message]], str] = last_words
    fault: Callable[[int], Any] = lambda number: None
    reply: Callable[[dict[str, Any]], dict[str, Any]] = lambda body: {}
    models: dict[str, Any] | None = None
    held: Callable[[int], bool] = lambda number: False
    released: threading.Event = field(default_factory=threading.Event)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    _now: int = 0
    _numbers: Iterator[int] = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, body: dict[str, Any]) -> int:
        """Note a request and return its number."""
        with self._lock:
            self.bodies.append(body)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            return next(self._numbers)

    def leave(self, question: str | None) -> None:
        """Note the end of a request, and what got a good answer."""
        with self._lock:
            self._now -= 1
            self.answered.update([question] if question is not None else [])

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON of a good answer; a token is a word."""
        text = self.answer(body["messages"])
        prompt_tokens = sum(len(message["content"].split()) for message in body["messages"])
        message = {"role": "assistant", "content": text}
        return {
            "id": "1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": len(text.split())},
            **self.reply(body),
        }


class _Handler(QuietHandler):
    state: ApiServer

    def do_GET(self) -> None:
        known = self.state.models is not None and self.path.endswith("/models")
        self._send(200 if known else 404, json.dumps(self.state.models))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = self.state.take(body)
        self.state.paths.append(self.path)
        self.state.headers.append({name.lower(): value for name, value in self.headers.items()})
        question = None
        try:
            if self.state.held(number):
                self.state.released.wait()
            fault = (
                self.state.fault(number)
                if self.path.partition("?")[0].endswith("/v1/chat/completions")
                else (404, "Not Found")
            )
            if fault is None:
                self._send(200, json.dumps(self.state.completion(body)))
                question = body["messages"][-1]["content"]
            else:
                self._fail(fault)
        finally:
            self.state.leave(question)

    def _fail(self, fault: Any) -> None:
        if isinstance(fault, str) and fault in _REPLIES:
            fault = _REPLIES[fault]
        if isinstance(fault, tuple):
            self._send(*fault)
        elif fault == "cut":
            self._send(200, '{"choices": ', missing=100)
        elif not isinstance(fault, str):
            self.close_connection = True
            for sent in fault:
                self.wfile.write(sent)
                self.wfile.flush()
        else:
            assert fault == "reset", fault
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if fault in ("cut", "reset"):
            self.close_connection = True
            self.connection.close()

    def _send(self, status: int, text: str, missing: int = 0) -> None:
        content = text.encode()
        kind = "text/html" if text.startswith("<") else "application/json"
        length = str(len(content) + missing)
        self.send(status, content, {"Content-Type": kind, "Content-Length": length})
        self.wfile.flush()

    def handle(self) -> None:
        with suppress(OSError, ValueError):  # the client is gone, or the connection was closed here
            super().handle()

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()


@contextmanager
def api_server(**settings: Any) -> Iterator[ApiServer]:
    """Serve on loopback, in a thread; yield what the server answers and was sent."""
    state = ApiServer(**settings)
    with serving(_Handler, state) as address:
        state.base_url = f"{address}/v1"
        try:
            yield state
        finally:
            state.released.set()


def open_api(base_url: str, **settings: Any) -> ApiEngine:
    """Return an engine that asks a server; no key is set unless a test sets it."""
    values = {
        "base_url": base_url,
        "checkpoint": "tiny",
        "key_variable": KEY_VARIABLE,
        "reading": "whole",
    }
    return ApiEngine(
        build_settings(PromptConfig, {"engine": "api", **values, **settings}, "model.")
    )


def question(number: int) -> Request:
    """Return a request whose good answer is "text <number>"."""
    messages = (
        {"role": "system", "content": "Summarize."},
        {"role": "user", "content": f"text {number}"},
    )
    return Request(messages, seed=number, max_tokens=20)


def ask(engine: ApiEngine, numbers: Iterable[int], **decoding: Any) -> list[Answer]:
    """Return the answers to some of these requests; raise the problem of the first one without an answer."""
    answers = list(engine.answer([question(number) for number in numbers], Decoding(**decoding)))
    if problems := [answer.problem for answer in answers if answer.problem]:
        raise problems[0]
    return answers


def stored_answers(path: Path) -> int:
    """Return the number of answers in a request cache, which may not be there yet."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as database:
        try:
            return int(database.execute("SELECT count(*) FROM answers").fetchone()[0])
        except sqlite3.OperationalError:  # the table is about to be made
            return 0
