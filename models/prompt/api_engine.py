"""ApiEngine: a language model behind an OpenAI-compatible server: vLLM, llama.cpp, Ollama, a hosted one.

    {model, messages, max_tokens, temperature, …}  --POST <base_url>/chat/completions-->  {choices, usage}

The request cache has an answer as soon as it arrives. Faults that pass (HTTP 429 and 5xx, timeouts, broken connections,
broken JSON) are retried. A request that the server cannot answer has an `Answer` that says why. The key is read from an
environment variable; it is sent to the server and nowhere else.
"""

import logging
import os
import random
import re
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing.pool import ThreadPool
from threading import Event
from typing import Annotated, Any

from msgspec import Meta

from longsumbench.cache.artifacts import user_cache
from longsumbench.cache.request_cache import REQUESTS, RequestCache
from longsumbench.core import Answer, Decoding, Message, Request
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError
from longsumbench.files import BadFile, digest, parse_json
from longsumbench.formatting import escape_line
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.modeling.tokenizer import load_tokenizer, tokenizer_identity
from longsumbench.models.prompt.chat import chat_ids
from longsumbench.models.prompt.config import PromptConfig

_log = logging.getLogger(__name__)

FIRST_WAIT = 1.0  # seconds until the first retry; every further one waits twice as long
_LONGEST_RETRY_WAIT = 60.0  # seconds
_LONGEST_CONNECTING = 10.0  # seconds
_RETRIED = (408, 409, 425, 429)  # and all from 500 on
_OF_REQUEST = (400, 413, 422)  # the server refuses this request, and may answer others
_FAILED = ("error", "abort")  # values of `finish_reason` of an answer that the server could not end
_WHOLE_PROMPT = 0.8  # a prompt of which the server counts a smaller share was cut by it
_UNREPORTED = 2  # failures of a request without a line
_LONGEST_QUOTE = 300  # characters of what a server said
_SHORTEST_SECRET = 12  # characters; a shorter key ("EMPTY", "ollama") is none, and answers may have that word
_TOO_LONG = re.compile(r"context.{0,20}(length|size|window)|prompt is too long", re.IGNORECASE)
_LOCAL = (  # settings of `decode` that the API does not have
    *("num_beams", "min_length", "no_repeat_ngram", "encoder_no_repeat_ngram", "repetition_penalty", "forced_eos"),
    "precision",
)
_FILTERED = '{"choices": [{"message": {}, "finish_reason": "content_filter"}]}'  # an answer in place of an error


@dataclass(frozen=True)
class _ReplyMessage:
    content: str | list[dict[str, Any]] | None = None  # the text, or its parts
    refusal: str | None = None
    reasoning_content: str | None = None  # thinking that the server has separated
    reasoning: str | None = None  # another name for it


@dataclass(frozen=True)
class _Choice:
    message: _ReplyMessage
    finish_reason: str | None = None


@dataclass(frozen=True)
class _Usage:
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True)
class _Reply:
    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: _Usage | None = None


class _Fault(Exception):
    """A fault that may pass. The server asks for `wait` seconds, or `of_request`: it answers this request wrongly."""

    def __init__(self, problem: str, wait: float | None = None, of_request: bool = False) -> None:
        super().__init__(problem)
        self.wait, self.of_request = wait, of_request


class ApiEngine:
    """Asks a server, `model.parallel_requests` at once; see `LanguageModel` for the methods.

    Raises:
        UsageError: a setting of the server or its tokenizer is missing or invalid.
        EnvironmentProblem: a package is missing, or the request cache cannot be used.
    """

    context = None

    def __init__(self, config: PromptConfig) -> None:
        if config.base_url is None:
            raise UsageError("model.base_url is missing: give the server's address (http://localhost:8000/v1)")
        if not re.fullmatch(r"https?://[^/@?]+(/[^?]*)?", config.base_url):  # the message shows no password
            raise UsageError("model.base_url is not an address without a password or key, as http://localhost:8000/v1")
        if config.checkpoint is None:
            raise UsageError("model.checkpoint is missing: give the model's name at the server")
        self._config, self._key = config, _read_key(config.key_variable)
        self.tokenizer = load_tokenizer(config.tokenizer, of_system=False) if config.tokenizer else None
        self._http = _import_httpx()
        self._client = _open_client(self._http, config, self._key)
        weakref.finalize(self, self._client.close)
        self._cache = RequestCache(user_cache().root / REQUESTS)
        self._limit = "max_tokens"  # its name in a request
        self._reached = False  # True once the server has answered
        self._reported = set[str]()

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of a prompt with the chat template."""
        return len(chat_ids(self.tokenizer, messages, self._config))

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Yield the answers in the order of the requests; equal requests are sent once.

        Raises:
            UsageError: the server has no such model, or the API no such setting.
            EnvironmentProblem: the server cannot be reached, refuses the key, or fails again and again.
        """
        _check_server_settings(decoding)
        bodies = [_request_body(self._config, request, decoding) for request in requests]
        version = {"api_version": self._config.api_version} if self._config.api_version else {}
        keys = [digest({"base_url": self._config.base_url, **version, **body}) for body in bodies]
        unique, received = dict(zip(keys, bodies, strict=True)), dict[str, _Reply | SuiteError]()
        stopping = Event()
        with ThreadPool(max(1, min(self._config.parallel_requests, len(unique)))) as pool:
            try:
                replies = pool.imap(partial(self._reply, stopping=stopping), unique.items())
                for request, key in zip(requests, keys, strict=True):
                    if key not in received:
                        received[key] = next(replies)
                    yield self._read(request, received[key])
            finally:
                stopping.set()

    def identity(self) -> dict[str, Any]:
        """Return the hash of the tokenizer, if there is one; a server does not identify its weights."""
        return {"tokenizer": tokenizer_identity(self.tokenizer)} if self.tokenizer else {}

    def facts(self) -> dict[str, Any]:
        """Return the model's name at the server."""
        return {"checkpoint": self._config.checkpoint, "engine": "api"}

    def _reply(self, request: tuple[str, dict[str, Any]], stopping: Event) -> _Reply | SuiteError:
        """Return the reply to a request (key, body) from the cache or from the server, or why there is none."""
        key, body = request
        reply = self._cache.get(key)
        if reply is None:
            if isinstance(answer := self._ask(body, stopping), SuiteError):
                return answer
            self._cache.put(key, body["model"], reply := answer)
        return parse_json(reply, _Reply)

    def _ask(self, body: dict[str, Any], stopping: Event) -> str | SuiteError:
        """Send a request until it succeeds, `model.retries` times more at most; see `_post`."""
        for attempt in count(1):
            try:
                return self._post(body)
            except _Fault as fault:
                if attempt > self._config.retries or stopping.is_set():
                    problem = _lasting_error(self._config, f"failed {attempt} times ({fault})")
                    if fault.of_request:
                        return problem
                    raise problem from fault
                backed_off = FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311 - no secret
                wait = min(backed_off if fault.wait is None else fault.wait, _LONGEST_RETRY_WAIT)
                if attempt == _UNREPORTED + 1:
                    _log.info(f"{self._config.base_url}: failed {attempt} times ({fault}); goes on asking")
                stopping.wait(wait)
        raise AssertionError("unreachable")

    def _post(self, body: dict[str, Any]) -> str | SuiteError:
        """Send a request once; return the server's JSON, or why it refuses this request."""
        sent = {self._limit if name == "max_tokens" else name: value for name, value in body.items()}
        try:
            response = self._client.post("chat/completions", json=sent)
        except self._http.RequestError as error:
            connecting = isinstance(error, self._http.ConnectError | self._http.ConnectTimeout)
            if connecting and not self._reached:  # it is not there at all
                raise _lasting_error(self._config, f"cannot be reached ({error})") from error
            raise _Fault(describe_error(error)) from error
        self._reached, status, text = True, response.status_code, str(response.text)
        if self._key and len(self._key) >= _SHORTEST_SECRET:
            text = text.replace(self._key, "<key>")
        if status in _RETRIED or status >= 500:
            raise _Fault(f"HTTP {status}: {_quote(text)}", _wait_asked_for(response.headers))
        if status == 400 and "max_completion_tokens" in text and "max_tokens" in sent:
            self._limit = "max_completion_tokens"  # newer models of OpenAI refuse the old name, others the new one
            return self._post(body)
        if status == 400 and "content_filter" in text:
            return _FILTERED
        if status != 200:
            refusal = _refusal(self._config, self._key, status, _quote(text))
            if status in _OF_REQUEST:
                return refusal
            raise refusal
        _check_reply(self._config, text)
        return text

    def _read(self, request: Request, reply: _Reply | SuiteError) -> Answer:
        if isinstance(reply, SuiteError):
            return Answer("", True, False, 0, 0, problem=reply)
        choice, usage = reply.choices[0], reply.usage or _Usage()
        message, content = choice.message, choice.message.content or ""
        text = content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
        if thought := message.reasoning_content or message.reasoning:
            text = f"{thought}{self._config.thinking_end}{text}"
        prompt_tokens, output_tokens = usage.prompt_tokens or 0, usage.completion_tokens or 0
        if self.tokenizer:
            sent = self.count(request.messages)
            prompt_tokens = prompt_tokens or sent
            output_tokens = output_tokens or len(self.tokenizer(text, add_special_tokens=False)["input_ids"])
            if prompt_tokens < _WHOLE_PROMPT * sent:  # as Ollama counts if it cuts a prompt
                problem = f"counted {prompt_tokens:,} tokens in a prompt of {sent:,}"
                advice = "if it cuts prompts, raise its context length or choose a smaller model.input_length"
                self._warn_once("cut", f"{problem}: {advice}")
        elif None in (usage.prompt_tokens, usage.completion_tokens):
            problem = "gives no token counts (usage), so token counts and price stay 0"
            self._warn_once("uncounted", f"{problem}: add model.tokenizer to count them")
        is_refused = choice.finish_reason == "content_filter" or bool(message.refusal)
        return Answer(
            text="" if is_refused else text,
            complete=choice.finish_reason != "length",
            refused=is_refused,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
        )

    def _warn_once(self, kind: str, problem: str) -> None:
        if kind not in self._reported:
            self._reported.add(kind)
            _log.warning(f"model.base_url={self._config.base_url} {problem}")


def _request_body(config: PromptConfig, request: Request, decoding: Decoding) -> dict[str, Any]:
    """Return the JSON of a request: everything that decides the answer, except the address."""
    body: dict[str, Any] = {
        "model": config.checkpoint,
        "messages": [dict(message) for message in request.messages],
        "max_tokens": request.max_tokens,
        "temperature": decoding.temperature,
        "stream": False,
    }
    if decoding.temperature:
        body |= {"top_p": decoding.top_p, "seed": request.seed}
    if config.thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": config.thinking}
    return body | (config.extra_body or {})


def _check_reply(config: PromptConfig, text: str) -> None:
    """Check the JSON of a reply."""
    try:
        reply = parse_json(text, _Reply)
    except BadFile as error:
        if text.lstrip().startswith("<"):
            problem = f"model.base_url={config.base_url} answers with a web page instead of JSON"
            raise EnvironmentProblem(f"{problem}: correct the address, which usually ends in /v1") from error
        problem = f"its answer is not that of a chat model ({error}): {_quote(text)}"
        raise _Fault(problem, of_request=True) from error
    if (reason := reply.choices[0].finish_reason) in _FAILED:
        raise _Fault(f"finish_reason={reason}: {_quote(text)}", of_request=True)


def _lasting_error(config: PromptConfig, problem: str) -> SuiteError:
    advice = "check the server and the address, then run the same command again; finished answers are kept"
    return EnvironmentProblem(f"model.base_url={config.base_url} {problem}: {advice}")


def _refusal(config: PromptConfig, key: str | None, status: int, message: str) -> SuiteError:
    """Return the error for a request that the server does not accept."""
    setting = f"model.base_url={config.base_url}"
    if status in (401, 403):
        name = f"the environment variable {config.key_variable}"
        problem = f"refuses the key in {name}" if key else f"wants a key: put it into {name}"
        return EnvironmentProblem(f"{setting} {problem} (HTTP {status}); model.key_variable names another variable")
    if status == 404:
        advice = "correct model.checkpoint, or the address, which usually ends in /v1"
        return UsageError(f"{setting} has no model.checkpoint={config.checkpoint} (HTTP 404: {message}): {advice}")
    if _TOO_LONG.search(message):
        advice = "choose a smaller model.input_length or model.decode_length"
        return UsageError(f"{setting}: a prompt is too long for the model (HTTP {status}: {message}): {advice}")
    return UsageError(f"{setting} does not accept a request (HTTP {status}: {message}): correct the settings")


def _quote(text: str) -> str:
    """Return what a server said, on one line."""
    if text.lstrip().startswith("<"):
        return "a web page"
    return escape_line(" ".join(text.split()))[:_LONGEST_QUOTE] or "no text"


def _read_key(variable: str) -> str | None:
    """Return the key in an environment variable; None if there is none."""
    key = os.environ.get(variable, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise UsageError(f"the key in the environment variable {variable} has spaces or characters that are not ASCII")
    return key or None


def _import_httpx() -> Any:
    """Import the HTTP client's package."""
    try:
        import httpx2
    except ImportError as error:
        problem = f"model.engine=api needs the package httpx2 ({error})"
        raise EnvironmentProblem(f"{problem}: pip install -e '.[api]' in the clone") from error
    return httpx2


def _open_client(http: Any, config: PromptConfig, key: str | None) -> Any:
    """Return an HTTP client with as many connections as requests at once."""
    limits = http.Limits(max_connections=config.parallel_requests, max_keepalive_connections=config.parallel_requests)
    headers = {config.key_header: f"Bearer {key}" if config.key_header == "Authorization" else key} if key else {}
    params = {"api-version": config.api_version} if config.api_version else {}
    timeout = http.Timeout(config.timeout_seconds, connect=min(_LONGEST_CONNECTING, config.timeout_seconds))
    try:
        client = http.Client(base_url=config.base_url, headers=headers, params=params, timeout=timeout, limits=limits)
        client.base_url.raw_host.decode("ascii").encode("idna")  # as the connection does: labels have 1 to 63 bytes
        return client
    except (http.InvalidURL, UnicodeError) as error:
        raise UsageError(f"model.base_url={config.base_url} is not an address ({error}): correct it") from error


def _check_server_settings(decoding: Decoding) -> None:
    """Check that the API has the settings."""
    usual = Decoding()
    for name in _LOCAL:
        value, default = getattr(decoding, name), getattr(usual, name)
        if value != default:
            advice = f"choose decode.{name}={default}, or model.engine=transformers"
            raise UsageError(f"decode.{name}={value} is no setting of an OpenAI-compatible server: {advice}")


def _wait_asked_for(headers: Any) -> float | None:
    """Return the seconds in the header Retry-After; None if it is missing or a date."""
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None
