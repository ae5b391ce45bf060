"""A language model behind a server: faults, limits, refusals, keys, and the request cache."""

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from support.api_server import (
    KEY_VARIABLE,
    PASSING_FAULTS,
    api_server,
    ask,
    open_api,
    question,
    stored_answers,
)
from support.tiny_causal import causal_folder, write_causal
from support.toys import refuses
from support.waiting import wait_until

from longsumbench.cache.request_cache import REQUESTS
from longsumbench.core import Answer, Decoding
from longsumbench.errors import EnvironmentProblem, SuiteError, UsageError
from longsumbench.models.prompt.api_reply import wait_asked_for

KEY = "sk-0a1b2c3d4e5f"


@pytest.fixture(autouse=True)
def request_cache(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the request cache of this test alone; nothing waits before a retry."""
    monkeypatch.setattr("longsumbench.models.prompt.api_engine.FIRST_WAIT", 0.0)
    return empty_cache / REQUESTS


def texts(answers: Iterable[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def expected(numbers: Iterable[int]) -> list[str]:
    return [f"text {number}" for number in numbers]


def answer_of(**server: Any) -> Answer:
    """Return what a server of such settings answers to one request."""
    with api_server(**server) as state:
        (answer,) = ask(open_api(state.base_url), [0])
    return answer


def error_of(base_url: str, **settings: Any) -> SuiteError:
    """Return the error with which a request ends; it is one line without the key."""
    with pytest.raises(SuiteError) as caught:
        ask(open_api(base_url, **settings), [0])
    assert "\n" not in str(caught.value)
    assert KEY not in str(caught.value)
    return caught.value


def failing(status: int, body: str) -> SuiteError:
    with api_server(fault=lambda number: (status, body)) as server:
        error = error_of(server.base_url)
        assert len(server.bodies) == 1, "asked again"
    return error


def test_answers_come_in_order_with_their_usage() -> None:
    """Answers are in the order of the requests and have the server's counts; `parallel_requests` are open at once."""
    with api_server(held=lambda number: True) as server, ThreadPoolExecutor() as pool:
        pending = pool.submit(ask, open_api(server.base_url, parallel_requests=5), range(30))
        wait_until(lambda: server.most_at_once == 5)
        server.released.set()
        answers = pending.result()
    assert texts(answers) == expected(range(30))
    assert answers[0] == Answer(
        "text 0", complete=True, refused=False, prompt_tokens=3, output_tokens=2
    )
    assert server.most_at_once == 5


def test_equal_requests_are_sent_once() -> None:
    """Equal requests get the same answer, each at its place, and the server gets one of them."""
    numbers = [3, 1, 3, 3, 2, 1]
    with api_server() as server:
        assert texts(ask(open_api(server.base_url, parallel_requests=6), numbers)) == expected(
            numbers
        )
    assert len(server.bodies) == 3


def test_what_decides_the_answer_is_sent_and_cached() -> None:
    """The same request is answered from the cache; another setting is another request."""
    with api_server() as server:
        engine = open_api(server.base_url)
        for decoding in (
            {},
            {},
            {"temperature": 0.7},
            {"temperature": 0.7},
            {"temperature": 0.7, "top_p": 0.9},
        ):
            ask(engine, [3], **decoding)
        ask(open_api(server.base_url, checkpoint="other"), [3])
        ask(open_api(server.base_url, thinking=False), [3])
    common = {
        "model": "tiny",
        "messages": list(question(3).messages),
        "max_tokens": 20,
        "stream": False,
    }
    assert server.bodies == [
        {**common, "temperature": 0.0},
        {**common, "temperature": 0.7, "top_p": 1.0, "seed": 3},
        {**common, "temperature": 0.7, "top_p": 0.9, "seed": 3},
        {**common, "temperature": 0.0, "model": "other"},
        {**common, "temperature": 0.0, "chat_template_kwargs": {"enable_thinking": False}},
    ]


def test_the_key_and_the_version_of_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    """`key_header` carries the key alone, and `api_version` is in the query; another version is another request."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with api_server() as server:
        for version in ("2024-10-21", "2025-01-01", "2024-10-21"):
            ask(open_api(server.base_url, key_header="api-key", api_version=version), [0])
        assert server.paths == [
            f"/v1/chat/completions?api-version={day}" for day in ("2024-10-21", "2025-01-01")
        ]
        assert [headers.get("api-key") for headers in server.headers] == [KEY, KEY]
        assert not any("authorization" in headers for headers in server.headers)


def test_further_fields_are_sent_and_decide_the_answer() -> None:
    """`extra_body` is sent with every request and decides the answer; fields of other settings are refused."""
    fields = {"reasoning_effort": "low", "provider": {"order": ["a", "b"]}}
    with api_server() as server:
        for _ in range(2):
            ask(open_api(server.base_url, extra_body=fields), [0])
        ask(open_api(server.base_url), [0])
    assert [body.items() >= fields.items() for body in server.bodies] == [True, False]
    with refuses("sets 'chat_template_kwargs', which other settings"):
        open_api(server.base_url, extra_body={"chat_template_kwargs": {}}, thinking=False)


PARTS = [
    {"type": "thinking", "text": "Let me"},
    {"type": "reasoning_text", "text": "think."},
    {"text": "Tw"},
    {"type": "text", "text": {"value": "o.", "annotations": []}},
    {"text": None},
]
REFUSAL, CUT = Answer("", True, True, 3, 2), Answer("The comm", False, False, 3, 2)


@pytest.mark.parametrize(
    ("message", "reason", "answer"),
    [
        ({"content": "The comm"}, "length", CUT),
        ({"content": None}, "content_filter", REFUSAL),
        ({"content": None, "refusal": "I cannot"}, None, REFUSAL),
        (
            {"content": "Two.", "reasoning_content": "Let me see"},
            "stop",
            Answer("Two.", True, False, 3, 2, thinking="Let me see"),
        ),
        ({"content": PARTS}, None, Answer("Two.", True, False, 3, 2)),
        ({"content": "The comm"}, "SPII", CUT),
        ({"content": "The comm"}, 7, CUT),
        ({"content": []}, "SPII", REFUSAL),
        ({"content": []}, 7, REFUSAL),
        (None, "content_filter", REFUSAL),
    ],
)
def test_length_stops_refusals_and_thinking_are_distinguished(
    message: Any, reason: Any, answer: Answer
) -> None:
    """An answer says if it stopped at its limit or was refused; separated thinking and parts of a text are joined.

    After an unknown end, a text is not complete, and no text is a refusal.
    """
    choice = {"message": message} | ({"finish_reason": reason} if reason else {})
    assert answer_of(reply=lambda body: {"choices": [choice]}) == answer


@pytest.mark.parametrize(
    ("usage", "complete"),
    [
        ({"completion_tokens": 19}, True),
        ({"completion_tokens": 20}, False),
        ({"completion_tokens": None}, True),
        # A server may not limit hidden thinking
        ({"completion_tokens": 900, "completion_tokens_details": {"reasoning_tokens": 890}}, True),
    ],
)
def test_an_answer_as_long_as_its_limit_is_cut(usage: Any, complete: bool) -> None:
    """Some servers say "stop" there, too."""
    answer = answer_of(reply=lambda body: {"usage": usage})
    assert (answer.text, answer.complete) == ("text 0", complete)


def test_tokens_are_counted_where_the_server_does_not() -> None:
    """Without usage, the model's tokenizer counts the prompt, with its chat template, and the answer."""
    with api_server(reply=lambda body: {"usage": None}) as server:
        engine = open_api(server.base_url, tokenizer=str(causal_folder()))
        answer = ask(engine, [0])[0]
    assert answer.prompt_tokens == engine.count(question(0).messages) > 20
    tokenizer: Any = engine.tokenizer
    assert answer.output_tokens == len(tokenizer("text 0", add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 12.0, "completion_tokens": "9"}, (12, 9, 0)),
        ("none", (0, 0, 0)),
        # The server may count thinking that it does not show
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}}, (0, 9, 5)),
        ({"completion_tokens": 9, "completion_tokens_details": "many"}, (0, 9, 0)),
    ],
)
def test_counts_of_any_form_cost_no_answer(usage: Any, counts: tuple[int, ...]) -> None:
    """Whole numbers count in each notation; what is no count is unknown."""
    answer = answer_of(reply=lambda body: {"usage": usage})
    assert (answer.text, answer.thinking) == ("text 0", "")
    assert (answer.prompt_tokens, answer.output_tokens, answer.thinking_tokens) == counts


def test_a_server_that_cuts_prompts_is_reported(log_lines: list[str]) -> None:
    """If the server counts far fewer tokens than were sent, one line says so, once."""
    with api_server() as server:  # its tokens are words
        engine = open_api(server.base_url, tokenizer=str(causal_folder()))
        answers = ask(engine, range(5))
    (line,) = log_lines
    assert "counted 3 tokens in a prompt of" in line
    sent = [engine.count(question(number).messages) for number in range(5)]
    assert [each.prompt_tokens + each.unread_tokens for each in answers] == sent


def test_a_server_without_counts_is_reported(log_lines: list[str]) -> None:
    """If neither the server nor a tokenizer counts tokens, one line says so, once."""
    with api_server(reply=lambda body: {"usage": None}) as server:
        answers = ask(open_api(server.base_url), range(5))
    assert {(one.prompt_tokens, one.output_tokens) for one in answers} == {(0, 0)}
    (line,) = log_lines
    assert "token counts and price stay 0" in line


NO_ANSWERS: dict[
    str, dict[str, Any]
] = {  # `choices` of replies whose end says that they are complete
    "null": {"message": {"content": None}},
    "thinking in its own field": {
        "message": {"content": None, "reasoning_content": "The committee met."}
    },
    "an end by the server": {"message": {"content": "half"}, "finish_reason": "abort"},
    "an error of its provider": {
        "message": {"content": "half"},
        "finish_reason": None,
        "error": {"code": 502},
    },
}


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_a_complete_answer_without_text_is_none(kind: str, request_cache: Path) -> None:
    """It is asked for again, never stored, and then there is no answer to this request alone."""
    reply = {
        "choices": [{"finish_reason": "stop", **NO_ANSWERS[kind]}],
        "usage": {"completion_tokens": 900},
    }
    with api_server(
        reply=lambda body: reply if body["messages"][-1]["content"] == "text 1" else {}
    ) as server:
        engine = open_api(server.base_url, retries=2)
        answers = list(engine.answer([question(number) for number in range(3)], Decoding()))
    assert texts(answers) == ["text 0", "", "text 2"]
    assert [type(answer.problem) for answer in answers] == [
        type(None),
        EnvironmentProblem,
        type(None),
    ]
    assert "failed 3 times (finish_reason=" in str(answers[1].problem)
    assert len(server.bodies) == 5
    assert stored_answers(request_cache) == 2


LIKELIEST = [{"token": " Yes", "logprob": -1.0}, {"token": "no", "logprob": -2.0}]


@pytest.mark.parametrize(
    ("logprobs", "expected"),
    [
        ({"content": [{"top_logprobs": LIKELIEST}]}, (1 / (1 + math.exp(-1)), 1 / (1 + math.e))),
        ({"content": [{"top_logprobs": [{"token": "The", "logprob": -0.1}]}]}, ()),
        ({"content": []}, ()),
        (None, ()),
    ],
)
def test_choices_are_weighed_by_what_the_server_gives(
    logprobs: Any, expected: tuple[float, ...]
) -> None:
    """One token is asked for, with its likeliest alternatives; a server may have no choice among them, or give none."""
    message = {"role": "assistant", "content": "Yes"}
    choice = {"message": message, "finish_reason": "length", "logprobs": logprobs}
    with api_server(reply=lambda body: {"choices": [choice]}) as server:
        request = replace(question(0), max_tokens=1, choices=("yes", "no"))
        (weighed,) = open_api(server.base_url).answer([request], Decoding())
    (body,) = server.bodies
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 1)
    assert weighed.probabilities == pytest.approx(expected)


def test_the_first_choice_is_that_of_the_lowest_index() -> None:
    """Of several choices in any order, the one with the lowest index is the answer, and not cut by the tokens of all."""
    choices = [{"index": index, "message": {"content": f"choice {index}"}} for index in (2, 0, 1)]
    reply = {"choices": choices, "usage": {"completion_tokens": 30}}
    answer = answer_of(reply=lambda body: reply)
    assert (answer.text, answer.complete) == ("choice 0", True)


def test_a_filtered_prompt_is_a_refusal() -> None:
    """A server that refuses a prompt by its content filter, with HTTP 400, does not end the run."""
    answer = answer_of(fault=lambda number: (400, '{"error": {"code": "content_filter"}}'))
    assert (answer.text, answer.refused) == ("", True)


def test_the_other_name_of_the_length_limit() -> None:
    """A server that wants max_completion_tokens gets it."""
    refused = (400, '{"error": {"message": "Use max_completion_tokens instead of max_tokens"}}')
    with api_server() as server:
        server.fault = lambda number: refused if "max_tokens" in server.bodies[number] else None
        assert texts(ask(open_api(server.base_url, retries=0), range(4))) == expected(range(4))
    assert server.bodies[-1]["max_completion_tokens"] == 20


def test_a_key_in_several_parts_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a text that make the key together do not bring it back."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    parts = [{"text": f"Your key: {KEY[:7]}"}, {"text": f"{KEY[7:]}, as sent."}]
    answer = answer_of(reply=lambda body: {"choices": [{"message": {"content": parts}}]})
    assert answer.text == "Your key: <key>, as sent."


def test_an_impossible_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that no HTTP header can have is refused without showing it."""
    monkeypatch.setenv(KEY_VARIABLE, "line\nbreak")
    with refuses(KEY_VARIABLE) as caught:
        open_api("http://127.0.0.1:9/v1")
    assert "break" not in str(caught.value)


def test_errors_of_the_server_name_what_to_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lasting error is one line that names the setting or the variable, and its exit code."""
    assert f"wants a key: put it into the environment variable {KEY_VARIABLE}" in str(
        failing(401, "who?")
    )
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert f"refuses the key in the environment variable {KEY_VARIABLE}" in str(failing(401, "no"))
    spent = str(failing(403, '{"error": {"message": "Key limit exceeded"}}'))
    assert "or this request (HTTP 403:" in spent
    assert "Key limit exceeded" in spent
    assert "model.checkpoint=tiny" in str(failing(404, '{"error": {"message": "no such model"}}'))
    assert "HTTP 422: unknown field" in str(failing(422, "unknown field"))
    page = failing(200, "<html>Welcome</html>")
    assert "a web page" in str(page)
    assert [failing(401, "").exit_code, page.exit_code] == [4, 4]


TOO_LONG = {
    "This model's maximum context length is 10 tokens": 400,
    "the context window is full. Please reduce the input size": 500,
    "Requested token count exceeds the model's maximum context length of 4096 tokens.": 404,
    "Request too large, tokens per min: Limit 300. The input or output tokens must be reduced.": 429,
    "`inputs` must have less than 1024 tokens. Given: 3000": 422,
    "Your request is too large": 413,
    "The messages are too long": 400,
}


@pytest.mark.parametrize("words", TOO_LONG)
def test_a_prompt_that_is_too_long_is_known_by_its_words(words: str) -> None:
    """Whatever its status, it is not asked again, and the line says what to change; other answers are good."""
    error = failing(TOO_LONG[words], json.dumps({"error": {"message": words}}))
    assert isinstance(error, UsageError)
    assert re.search(r"a prompt is too long.*model\.input_length", str(error))
    assert "same command" not in str(error)


@pytest.mark.parametrize(
    "words",
    [
        "Rate limit reached: reduce the prompt length or the maximum tokens",
        "The model is overloaded: maximum length of the queue of input tokens",
        "The request took too long to process. Please try again.",
        "prompt processing is taking too long",
    ],
)
def test_a_limit_of_a_busy_server_passes(words: str) -> None:
    """It names lengths, too, and is asked again."""
    busy = (503, json.dumps({"error": {"message": words}}))
    assert answer_of(fault=lambda number: None if number else busy).text == "text 0"


def test_a_limit_that_is_too_large_is_no_long_prompt() -> None:
    """The server's own word for it is "message", which is no message."""
    problem = "max_tokens is too large: 2"
    for words in (problem, f"Invalid request: {problem}", f"{{'message': '{problem}'}}"):
        error = failing(400, json.dumps({"error": {"message": words}}))
        assert "a prompt is too long" not in str(error)
        assert problem in str(error)


def test_a_refused_request_is_not_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses what one text says with HTTP 403 answers the others; a spent key ends the run."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    requests = [question(number) for number in range(3)]
    for words, answered in (
        ("Your input was flagged", [True, False, True]),
        ("Key limit exceeded", None),
    ):
        refused = {1: (403, words)}
        with api_server(fault=refused.get) as server:
            engine = open_api(server.base_url, parallel_requests=1)
            if answered:
                answers = engine.answer(requests, Decoding())
                assert [answer.problem is None for answer in answers] == answered
                continue
            with pytest.raises(EnvironmentProblem, match=words):
                list(engine.answer(requests, Decoding()))


def test_the_server_sets_the_wait() -> None:
    """Retry-After is a number of seconds or a date; what names no time to wait leaves the suite's own, which grows."""
    later = formatdate(time.time() + 3_000, usegmt=True)
    assert wait_asked_for({"retry-after": later}) == pytest.approx(3_000, rel=0.1)
    for value, seconds in (("30", 30), (formatdate(0), None), ("-3", None), ("9 May 99999", None)):
        assert wait_asked_for({"retry-after": value}) == seconds
    for value in ("0", "nan", ""):
        assert wait_asked_for({"retry-after": value}) is None
    assert wait_asked_for({}) is None


@pytest.mark.parametrize("charset", ["klingon", "utf-16"])
def test_the_charset_of_an_answer(charset: str) -> None:
    """A known charset is used; with another one, the answer is read as UTF-8, as JSON is."""
    body = '{"choices": [{"message": {"content": "a résumé"}}]}'.encode(
        charset if charset == "utf-16" else "utf-8"
    )
    sent = [HEAD % f"; charset={charset}".encode(), b"\r\n", body]
    assert answer_of(fault=lambda number: sent).text == "a résumé"


MODELS = {"data": [{"id": "tiny", "root": "me/tiny", "created": 1}, {"id": "other", "root": "b"}]}


def test_another_address_is_the_same_model(request_cache: Path) -> None:
    """What a server says of the model identifies it, not its address or the time; said last, it stays known."""
    identities = []
    for models in (MODELS, {"data": [{"id": "tiny", "root": "me/tiny"}]}, {"data": [{"root": 5}]}):
        with api_server(models=models) as server:
            engine = open_api(server.base_url)
            ask(engine, [0])
            identities.append(engine.identity())
        assert open_api(server.base_url).identity() == identities[-1]
    assert identities[0] == identities[1] == {"server": {"root": "me/tiny"}}
    assert identities[2] != identities[0]
    assert stored_answers(request_cache) == 3 + 2  # of the models, and of the question


def test_a_server_that_is_not_there_is_named_at_once() -> None:
    """Where no server answers, one line says so at once, without retries."""
    with api_server() as server:
        address = server.base_url
    error = error_of(address, retries=1_000)
    assert isinstance(error, EnvironmentProblem)
    assert f"model.base_url={address} cannot be reached" in str(error)


WITHOUT_TEXT = [(200, '{"choices": []}'), (200, '{"choices": [{"message": {"content": 5}}]}')]


@pytest.mark.parametrize("fault", [*PASSING_FAULTS, *WITHOUT_TEXT])
def test_a_server_that_always_fails_is_asked_as_often_as_retries_say(fault: object) -> None:
    """After `retries`, one line says what the server did last."""
    with api_server(fault=lambda number: fault) as server:
        error = error_of(server.base_url, retries=2)
    assert len(server.bodies) == 3
    assert isinstance(error, EnvironmentProblem)
    assert "failed 3 times" in str(error)


@pytest.mark.parametrize(
    "address",
    [
        None,
        "localhost:8000/v1",
        "http://a:secret@b/v1",
        "http://a:secret＠b/v1",
        "http://b/v1?key=secret",
        "http://[::x/v1",
    ],
)
def test_an_address_that_cannot_be_used_is_refused(address: str | None) -> None:
    """One that is missing, has no scheme, a password, a key or no valid host; the message shows no password."""
    with refuses(r"model\.base_url") as caught:
        open_api(address)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_a_tokenizer_without_a_chat_template(tmp_path: Path) -> None:
    """The error names the tokenizer, not the model, and what else can be chosen."""
    folder = write_causal(tmp_path / "base", template=None)
    engine = open_api("http://127.0.0.1:9/v1", tokenizer=str(folder))
    with refuses(f"^the tokenizer of model.tokenizer={folder} has no chat .*: choose another"):
        engine.count(question(0).messages)


def test_settings_that_servers_lack_are_refused() -> None:
    """A decoding setting that the API does not have is refused instead of ignored."""
    with refuses(r"decode\.num_beams=4"):
        ask(open_api("http://127.0.0.1:9/v1"), [0], num_beams=4)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, one line names the extra."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with refuses(r"pip install -e '\.\[api\]' in the clone", EnvironmentProblem):
        open_api("http://127.0.0.1:9/v1")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json%s\r\n"


def drip(content: bytes) -> Iterator[bytes]:
    """Yield one byte after the other, each in less time than a request may take."""
    for place in range(len(content)):
        time.sleep(0.02)
        yield content[place : place + 1]


ENDLESS: dict[str, Callable[[], Iterable[bytes]]] = {
    "a header that drips": lambda: chain([HEAD % b"", b"X-Odd: "], drip(b"a" * 10_000)),
    "a body": lambda: chain([HEAD % b"", b"\r\n"], repeat(b" " * 2**16)),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_an_end_is_a_fault(kind: str) -> None:
    """A whole answer has one deadline and a bound on its size, whatever is slow or large; then the next one is good."""
    with api_server(fault=lambda number: ENDLESS[kind]()) as server:
        error = error_of(server.base_url, retries=1, timeout_seconds=0.5)
        assert "failed 2 times" in str(error)
        assert isinstance(error, EnvironmentProblem)
        server.fault = lambda number: None
        assert texts(ask(open_api(server.base_url), [1])) == ["text 1"]


def test_a_redirect_is_not_followed() -> None:
    """The key goes to no other address: one line says that the server redirects."""
    sent = [b"HTTP/1.1 307 Moved\r\nLocation: http://[::x/\r\nContent-Length: 0\r\n\r\n"]
    with api_server(fault=lambda number: sent) as server:
        error = error_of(server.base_url)
        assert len(server.bodies) == 1
    assert isinstance(error, UsageError)
    assert "redirects requests (HTTP 307)" in str(error)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
        ("ALL_PROXY", "secret://me:secret@127.0.0.1:1"),
        ("SSL_CERT_FILE", __file__),
    ],
)
def test_an_environment_that_cannot_be_used_is_named(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any request, one line names the variable, and shows no password."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, value)
    with refuses(
        rf"\b{variable}\b.* in the environment cannot be used", EnvironmentProblem
    ) as caught:
        open_api("http://127.0.0.1:9/v1")
    assert "sec" not in str(caught.value)
