"""SmolLM2 as a GGUF file: in this process, and behind llama.cpp's own server (`--weights FOLDER --api-server`)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.api_server import open_api
from support.llama_cpp import llama_cpp_server
from support.tiny_causal import open_causal

from longsumbench.core import Decoding, Request

pytestmark = pytest.mark.weights

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXTS = [
    "What is the capital of France?",
    "In 2024, 1,234,567 people (12.5 %) read 3rd-party e-mails; v2.0 costs $99.",
    "  indented\n\n\ttext:\n- café – naïve, 東京, 🙂, ﬁne\r\n",
    "def f(x):\n    return x**2  # a_snake_case name, CamelCase, don't, we'll",
    "A sentence that is long. " * 300,
]
REQUESTS_OF_TEXTS = [Request(({"role": "user", "content": text},), 0, 8) for text in TEXTS]


@pytest.fixture
def path(weights: Callable[[str], Path]) -> Path:
    return weights(FILE)


@pytest.fixture
def server(path: Path, tmp_path: Path, empty_cache: Path) -> Iterator[str]:
    """The address of llama.cpp's server; requests are cached for this test alone."""
    with llama_cpp_server(path, tmp_path / "server.log") as base_url:
        yield base_url


def test_the_model_answers(path: Path) -> None:
    """Its facts are those of the model's card, its answers end by its own token, and it knows France."""
    engine = open_causal(path)
    expected = {"checkpoint": FILE, "weights": "GGUF Q4_1", "parameters": 134_515_008}
    assert engine.metadata() | expected == engine.metadata()
    assert engine.context == 8192
    assert engine.ends == engine.tokenizer.convert_tokens_to_ids(["<|im_end|>"])
    request = Request(REQUESTS_OF_TEXTS[0].messages, 0, 32)
    (answer,) = engine.answer([request], Decoding(device="cpu"))
    assert "Paris" in answer.text
    assert answer.complete


@pytest.mark.api_server
def test_prompts_have_the_tokens_that_the_server_counts(server: str, path: Path) -> None:
    """For every text, also with digits, other scripts and code, and with the tokenizer of `model.tokenizer`."""
    api = open_api(server, tokenizer=str(path), input_length=4_000)
    answers = list(api.answer(REQUESTS_OF_TEXTS, Decoding()))
    counted_by_server = [answer.prompt_tokens for answer in answers]
    assert counted_by_server == [api.count(request.messages) for request in REQUESTS_OF_TEXTS]
    local = open_causal(path)
    assert counted_by_server == [local.count(request.messages) for request in REQUESTS_OF_TEXTS]
    assert all(answer.text for answer in answers)
