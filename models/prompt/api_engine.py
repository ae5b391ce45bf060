"""ApiEngine: a language model on an OpenAI-compatible server: vLLM, llama.cpp, Ollama, a hosted one.

    {model, messages, max_tokens, temperature, …}  --POST <base_url>/chat/completions-->  {choices, usage}

The request cache has an answer as soon as it arrives. Faults that pass (HTTP 429 and 5xx, timeouts, broken connections,
broken JSON) are retried. A request that the server cannot answer has an `Answer` that says why. The key is read from an
environment variable; it is sent to the server and nowhere else.

All requests share an event loop in a separate thread. So one deadline covers a whole answer, headers included: the
client's own timeouts start again with each byte. To follow a request, start at `ApiEngine.answer`: `_reply` looks into
the cache, `_ask` retries, `_post` sends once, `_fetch` has the deadline.
"""

import asyncio
import json
import logging
import os
import random
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from longsumbench.cache.artifacts import user_cache
from longsumbench.cache.request_cache import REQUESTS, RequestCache
from longsumbench.core import Answer, Decoding, Message, Request
from longsumbench.core.answer_text import split_answer
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError
from longsumbench.files import BadFile, digest, parse_json
from longsumbench.formatting import escape_line, hide_key, redact, remove_keys
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.modeling.tokenizer import load_tokenizer, tokenizer_identity
from longsumbench.models.prompt.api_reply import (
    FILTERED_REPLY,
    ModelList,
    Properties,
    Reply,
    is_about_text,
    says_too_long,
    wait_asked_for,
)
from longsumbench.models.prompt.chat import chat_ids, starts_thinking
from longsumbench.models.prompt.config import PromptConfig

_log = logging.getLogger(__name__)
_Described = TypeVar("_Described")

FIRST_WAIT = 1.0  # seconds until the first retry; every further one waits twice as long
_LONGEST_RETRY_WAIT = 60.0  # seconds
_LONGEST_CONNECTING = 10.0  # seconds
_FIRST_REPORTED = 3  # the failure of a request that is logged
_RETRIED = (408, 409, 425, 429)  # and all from 500 on
# The server refuses this request, and may answer others.
_OF_REQUEST = (400, 413, 422)
_LARGEST_REPLY = 2**23  # bytes
# A prompt of which the server counts a smaller share was cut by it.
_WHOLE_PROMPT = 0.8
_LONGEST_QUOTE = 300  # characters of what a server said
_WEB_PAGE = re.compile(r"\s*<(?!key>)")
# Settings of `decode` that the API does not have.
_LOCAL = (
    "num_beams",
    "min_length",
    "no_repeat_ngram",
    "encoder_no_repeat_ngram",
    "repetition_penalty",
    "forced_eos",
    "precision",
)
# Without a password or a key, also an encoded one.
_ADDRESS = re.compile(r"https?://([\w.-]+|\[[\w:.]+\])(:\d+)?(/[\w./~:-]*)?", re.IGNORECASE)
_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_OF_CONNECTIONS = re.compile(r"(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)", re.IGNORECASE)


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
    gives_tokens = False

    def __init__(self, config: PromptConfig) -> None:
        _check_address(config)
        key = _read_key(config.key_variable) or ""
        hide_key(key)
        self._config = config
        self._address = f"model.base_url={config.base_url}"
        self._has_key = bool(key)
        self.tokenizer = None
        if config.tokenizer:
            self.tokenizer = load_tokenizer(config.tokenizer, of_system=False)
        self._http = _import_httpx()
        self._client = _open_client(self._http, config, key)
        self._loop = asyncio.new_event_loop()
        Thread(target=_run_loop, args=[self._loop, self._client], daemon=True).start()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
        self._free = asyncio.Semaphore(config.parallel_requests)
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
        # Of a server that says nothing, another address may be another model.
        described = self._described or {"base_url": self._config.base_url}
        server = {"server": described, "api_version": self._config.api_version}
        keys = []
        replies = {}
        for request in requests:
            body = _request_body(self._config, request, decoding)
            key = digest({**server, **body})
            keys.append(key)
            if key not in replies:
                replies[key] = asyncio.run_coroutine_threadsafe(self._reply(key, body), self._loop)
        try:
            for request, key in zip(requests, keys, strict=True):
                yield self._read(request, replies[key].result())
        finally:
            for reply in replies.values():
                reply.cancel()

    def identity(self) -> dict[str, Any]:
        """Return what the server says of the model, and the hash of the tokenizer, if there is one."""
        identity: dict[str, Any] = {"server": self._described}
        if self.tokenizer:
            identity["tokenizer"] = tokenizer_identity(self.tokenizer)
        return identity

    def metadata(self) -> dict[str, Any]:
        """Return the model's name at the server."""
        return {"checkpoint": self._config.checkpoint, "engine": "api"}

    @classmethod
    def find_settings(cls, base_url: str, overrides: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings of a server's model: as typed, else as the server says, with its context as `context`.

        llama.cpp says its file and its context; vLLM the name on the hub and its context.

        Raises:
            UsageError: the server does not say something that is not typed; the message asks for all of it.
            EnvironmentProblem: the server cannot be reached.
        """
        engine = cls(
            PromptConfig(engine="api", base_url=base_url, checkpoint="any", reading="whole")
        )
        models, properties = ModelList([]), Properties()
        with suppress(_Fault, BadFile, TimeoutError):
            models = engine._ask_about("models", ModelList)
        with suppress(_Fault, SuiteError, BadFile, TimeoutError):
            root = str(engine._http.URL(base_url).join("/props"))
            properties = engine._ask_about(root, Properties)
        names = [str(model.get("id")) for model in models.data]
        name = overrides.get("model.checkpoint", names[0] if len(names) == 1 else None)
        model = models.find(name)
        files = [properties.model_path, model.get("root"), name]
        tokenizer = overrides.get("model.tokenizer", next(filter(_may_have_tokenizer, files), None))
        missing = []
        if name is None:
            served = ", ".join(names) or "unknown models"
            missing.append(f"model.checkpoint=NAME (it serves {served})")
        if tokenizer is None:
            missing.append("model.tokenizer=FOLDER (also a GGUF file, or a name on the hub)")
        if missing:
            raise UsageError(
                f"{base_url} does not say everything: add to the command {' and '.join(missing)}"
            )
        lengths = (properties.default_generation_settings.get("n_ctx"), model.get("max_model_len"))
        return {
            "model.engine": "api",
            "model.base_url": base_url,
            **overrides,
            "model.checkpoint": name,
            "model.tokenizer": tokenizer,
            "context": next((length for length in lengths if isinstance(length, int)), None),
        }

    def _ask_about(self, path: str, kind: type[_Described]) -> _Described:
        """Return what the server says of itself at a path."""
        asked = asyncio.run_coroutine_threadsafe(self._fetch("GET", path), self._loop)
        _, text = asked.result(_LONGEST_CONNECTING)
        return parse_json(text, kind)

    @cached_property
    def _described(self) -> dict[str, Any]:
        """What the server says of the model, or said last if it cannot be asked now."""
        name = str(self._config.checkpoint)
        key = digest(["models", self._config.base_url, name])
        try:
            described = self._ask_about("models", ModelList).describe(name)
        except (_Fault, SuiteError, BadFile, TimeoutError):
            return parse_json(self._cache.get(key) or "{}", dict[str, Any])
        self._cache.put(key, name, json.dumps(described))
        return described

    async def _reply(self, key: str, body: dict[str, Any]) -> Reply | SuiteError:
        """Return the reply to a request from the cache or from the server, or why there is none."""
        async with self._free:
            stored = self._cache.get(key)
            if stored is not None:
                # With another model.thinking_end, a stored reply may have no text.
                with suppress(_Fault):
                    return self._parse_reply(remove_keys(stored))
            text = await self._ask(body)
            if isinstance(text, SuiteError):
                return text
            self._cache.put(key, body["model"], text)
            return self._parse_reply(text)

    async def _ask(self, body: dict[str, Any]) -> str | SuiteError:
        """Send a request until it succeeds, `model.retries` times more at most; see `_post`."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._post(body)
            except _Fault as fault:
                if attempt > self._config.retries:
                    problem = self._lasting_error(f"failed {attempt} times ({fault})")
                    if fault.of_request:
                        return problem
                    raise problem from fault
                if attempt == _FIRST_REPORTED:
                    _log.info(
                        f"{self._config.base_url}: failed {attempt} times ({fault}); goes on asking"
                    )
                wait = fault.wait
                if wait is None:
                    wait = FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311 - no secret
                await asyncio.sleep(min(wait, _LONGEST_RETRY_WAIT))

    async def _post(self, body: dict[str, Any]) -> str | SuiteError:
        """Send a request once; return the server's JSON, or why it refuses this request."""
        sent = dict(body)
        sent[self._limit] = sent.pop("max_tokens")
        response, text = await self._fetch("POST", "chat/completions", sent)
        status = response.status_code
        if status == 400 and "max_completion_tokens" in text and "max_tokens" in sent:
            # Newer models of OpenAI refuse the old name, others the new one.
            self._limit = "max_completion_tokens"
            return await self._post(body)
        if status == 400 and "content_filter" in text:
            return FILTERED_REPLY
        if says_too_long(text):
            return UsageError(
                f"{self._address}: a prompt is too long for the model (HTTP {status}: {_quote(text)}): choose a smaller"
                " model.input_length or model.decode_length"
            )
        if status in _RETRIED or status >= 500:
            raise _Fault(f"HTTP {status}: {_quote(text)}", wait_asked_for(response.headers))
        if status != 200:
            refusal = self._refusal(status, _quote(text))
            if status in _OF_REQUEST or (status == 403 and is_about_text(text)):
                return refusal
            raise refusal
        self._parse_reply(text)
        return text

    async def _fetch(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[Any, str]:
        """Send a request; return the response and its text, without the key.

        Raises:
            _Fault: the text is too long, or not whole within `model.timeout_seconds`; or the connection fails.
            EnvironmentProblem: the server is not there.
        """
        content = bytearray()
        try:
            async with (
                asyncio.timeout(self._config.timeout_seconds),
                self._client.stream(method, path, json=body) as response,
            ):
                async for part in response.aiter_bytes():
                    content += part
                    if len(content) > _LARGEST_REPLY:
                        raise _Fault(f"its answer has more than {_LARGEST_REPLY:,} bytes")
        except TimeoutError as error:
            limit = f"{self._config.timeout_seconds:g} seconds"
            raise _Fault(f"no whole answer within {limit}") from error
        except (
            self._http.RequestError,
            self._http.InvalidURL,
            ValueError,
            ExceptionGroup,
        ) as error:
            connecting = isinstance(error, self._http.ConnectError | self._http.ConnectTimeout)
            if connecting and not self._reached:  # it is not there at all
                raise self._lasting_error(f"cannot be reached ({describe_error(error)})") from error
            raise _Fault(describe_error(error)) from error
        self._reached = True
        try:
            text = content.decode(response.charset_encoding or "utf-8", "replace")
        except (LookupError, ValueError):  # an unknown charset, or one of bytes
            text = content.decode("utf-8", "replace")
        return response, remove_keys(text.lstrip("\ufeff"))

    def _parse_reply(self, text: str) -> Reply:
        """Parse the JSON of a reply, and check that it has an answer."""
        try:
            reply = parse_json(text, Reply)
        except BadFile as error:
            if _WEB_PAGE.match(text):
                raise EnvironmentProblem(
                    f"{self._address} answers with a web page instead of JSON: correct the address, which usually ends"
                    " in /v1"
                ) from error
            problem = f"its answer is not that of a chat model ({error}): {_quote(text)}"
            raise _Fault(problem, of_request=True) from error
        choice = reply.choice
        if choice.has_failed or reply.error:
            raise _Fault(f"finish_reason={choice.reason}: {_quote(text)}", of_request=True)
        thinks_first = not choice.thinking and starts_thinking(self.tokenizer, self._config)
        answer = split_answer(
            choice.text, self._config.thinking_end, thinks_first, bool(choice.thinking)
        )
        if not (answer.text or choice.is_refused or choice.is_cut):
            kind = "thinking alone" if choice.thinking or choice.text.strip() else "no text"
            raise _Fault(
                f"finish_reason={choice.reason}, but {kind}: {_quote(text)}", of_request=True
            )
        return reply

    def _read(self, request: Request, reply: Reply | SuiteError) -> Answer:
        if isinstance(reply, SuiteError):
            return Answer("", True, False, 0, 0, problem=reply)
        choice = reply.choice
        prompt_tokens, output_tokens, unread_tokens = self._count_tokens(request, reply)
        thinking_tokens = reply.count_tokens("completion_tokens", "reasoning_tokens") or 0
        # Some servers say "stop" at the limit, which hidden thinking may not count for
        answer_tokens = (reply.count_tokens("completion_tokens") or 0) - thinking_tokens
        at_limit = len(reply.choices) == 1 and answer_tokens >= request.max_tokens
        return Answer(
            text="" if choice.is_refused else remove_keys(choice.text),
            complete=not (choice.is_cut or at_limit),
            refused=choice.is_refused,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            unread_tokens=unread_tokens,
            thinking=choice.thinking,
            thinking_tokens=thinking_tokens,
            probabilities=choice.weigh(request.choices),
        )

    def _count_tokens(self, request: Request, reply: Reply) -> tuple[int, int, int]:
        """Return the tokens of prompt and answer, by the server or else the tokenizer, and those that it did not read."""
        unread_tokens, prompt_count = 0, reply.count_tokens("prompt_tokens")
        output_count = reply.count_tokens("completion_tokens")
        prompt_tokens, output_tokens = prompt_count or 0, output_count or 0
        if self.tokenizer:
            num_sent = self.count(request.messages)
            prompt_tokens = prompt_tokens or num_sent
            written = reply.choice.thinking + reply.choice.text
            output_ids = self.tokenizer(written, add_special_tokens=False)["input_ids"]
            output_tokens = output_tokens or len(output_ids)
            if prompt_tokens < _WHOLE_PROMPT * num_sent:  # as Ollama counts if it cuts a prompt
                unread_tokens = num_sent - prompt_tokens
                self._warn_once(
                    "cut",
                    f"counted {prompt_tokens:,} tokens in a prompt of {num_sent:,}: if it cuts prompts, raise its"
                    " context length or choose a smaller model.input_length",
                )
        elif None in (prompt_count, output_count):
            self._warn_once(
                "uncounted",
                "gives no token counts (usage), so token counts and price stay 0: add model.tokenizer to count them",
            )
        return prompt_tokens, output_tokens, unread_tokens

    def _warn_once(self, kind: str, problem: str) -> None:
        if kind not in self._reported:
            self._reported.add(kind)
            _log.warning(f"{self._address} {problem}")

    def _lasting_error(self, problem: str) -> SuiteError:
        advice = "check the server and the address, then run the same command again; finished answers are kept"
        return EnvironmentProblem(f"{self._address} {problem}: {advice}")

    def _refusal(self, status: int, message: str) -> SuiteError:
        """Return the error for a request that the server does not accept."""
        described = f"(HTTP {status}: {message})"
        if status in (401, 403):
            name = f"the environment variable {self._config.key_variable}"
            problem = f"wants a key: put it into {name}"
            if self._has_key:
                problem = f"refuses the key in {name}"
            if status == 403:
                problem += ", or this request"
            return EnvironmentProblem(
                f"{self._address} {problem} {described}; model.key_variable names another variable"
            )
        if 300 <= status < 400:
            problem = f" redirects requests (HTTP {status}): give the address to which it redirects"
        elif status == 404:
            problem = (
                f" has no model.checkpoint={self._config.checkpoint} {described}: correct model.checkpoint, or the"
                " address, which usually ends in /v1"
            )
        else:
            problem = f" does not accept a request {described}: correct the settings"
        return UsageError(f"{self._address}{problem}")


def _check_address(config: PromptConfig) -> None:
    """Check that the settings name a server and a model."""
    if config.base_url is None:
        raise UsageError(
            "model.base_url is missing: give the server's address (http://localhost:8000/v1)"
        )
    if not _ADDRESS.fullmatch(config.base_url):
        raise UsageError(
            "model.base_url is not an address without a password or key, as http://localhost:8000/v1"
        )
    if config.checkpoint is None:
        raise UsageError("model.checkpoint is missing: give the model's name at the server")


def _may_have_tokenizer(name: Any) -> bool:
    """Return whether a name is a file or folder of this machine, or like one of the hub."""
    text = str(name or "")
    return Path(text).exists() if text.startswith("/") else bool(_HUB_NAME.fullmatch(text))


def _read_key(variable: str) -> str | None:
    """Return the key in an environment variable; None if there is none.

    Raises:
        UsageError: no header can have the key.
    """
    key = os.environ.get(variable, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise UsageError(
            f"the key in the environment variable {variable} has spaces or characters that are not ASCII"
        )
    return key or None


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
    if request.choices:
        body |= {"logprobs": True, "top_logprobs": 20}  # the most that servers give
    if config.thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": config.thinking}
    return body | (config.extra_body or {})


def _quote(text: str) -> str:
    """Return what a server said, on one line."""
    if _WEB_PAGE.match(text):
        return "a web page"
    return escape_line(redact(" ".join(text.split())))[:_LONGEST_QUOTE] or "no text"


def _import_httpx() -> Any:
    """Import the HTTP client's package."""
    try:
        import httpx2
    except ImportError as error:
        problem = f"model.engine=api needs the package httpx2 ({error})"
        raise EnvironmentProblem(f"{problem}: pip install -e '.[api]' in the clone") from error
    return httpx2


def _open_client(http: Any, config: PromptConfig, key: str | None) -> Any:
    """Return an HTTP client with as many connections as there are requests at once."""
    try:
        base_url = http.URL(config.base_url)
        # As the connection does: labels have 1 to 63 bytes.
        base_url.raw_host.decode("ascii").encode("idna")
        if not 0 < (base_url.port or 80) < 2**16:
            raise http.InvalidURL(f"Invalid port: {base_url.port}")
    except (http.InvalidURL, UnicodeError) as error:
        raise UsageError(
            f"model.base_url={config.base_url} is not an address ({error}): correct it"
        ) from error
    headers = {}
    if key:
        headers[config.key_header] = (
            f"Bearer {key}" if config.key_header == "Authorization" else key
        )
    params = {"api-version": config.api_version} if config.api_version else {}
    timeout = http.Timeout(None, connect=_LONGEST_CONNECTING)  # `_fetch` has a deadline
    try:
        return http.AsyncClient(
            base_url=base_url, headers=headers, params=params, timeout=timeout, limits=http.Limits()
        )
    except (http.InvalidURL, ImportError, OSError, ValueError):
        names = ", ".join(filter(_OF_CONNECTIONS.fullmatch, os.environ))
        # The client's error may have a part of a proxy's password.
        raise EnvironmentProblem(
            f"{names} in the environment cannot be used: correct or unset it (a password: with / as %2F, # as %23; a"
            " SOCKS proxy: pip install socksio)"
        ) from None


def _run_loop(loop: asyncio.AbstractEventLoop, client: Any) -> None:
    """Run an event loop until it is stopped; then end its requests and close the connections."""
    loop.run_forever()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(client.aclose())


def _check_server_settings(decoding: Decoding) -> None:
    """Check that the API has the settings."""
    values, usual = vars(decoding), vars(Decoding())
    for name in _LOCAL:
        if values[name] != usual[name]:
            advice = f"choose decode.{name}={usual[name]}, or model.engine=transformers"
            raise UsageError(
                f"decode.{name}={values[name]} is no setting of an OpenAI-compatible server: {advice}"
            )
