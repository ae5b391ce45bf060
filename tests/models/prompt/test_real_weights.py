"""SmolLM2 as a GGUF file: in this process, and behind llama.cpp's own server (`--weights FOLDER --api-server`)."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.api_server import KEY_VARIABLE, open_api, stored_answers
from support.llama_cpp import llama_cpp_server, requests_in
from support.processes import start_python
from support.toys import write_jsonl
from support.waiting import wait_until

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cache.request_cache import REQUESTS
from longsumbench.cli.main import main
from longsumbench.core import Decoding, Request, build_settings
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.transformers_engine import TransformersEngine

pytestmark = pytest.mark.weights

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
COMMAND = "import sys\nfrom longsumbench.cli.main import main\nsys.exit(main(sys.argv[1:]))"
TEXTS = [
    "What is the capital of France?",
    "In 2024, 1,234,567 people (12.5 %) read 3rd-party e-mails; v2.0 costs $99.",
    "  indented\n\n\ttext:\n- café – naïve, 東京, 🙂, ﬁne\r\n",
    "def f(x):\n    return x**2  # a_snake_case name, CamelCase, don't, we'll",
    "A sentence that is long. " * 300,
]
REQUESTS_OF_TEXTS = [Request(({"role": "user", "content": text},), 0, 8) for text in TEXTS]


@pytest.fixture(scope="module")
def engines() -> dict[Path, TransformersEngine]:
    """Engines by their files: loading takes seconds."""
    return {}


@pytest.fixture
def path(weights: Callable[[str], Path]) -> Path:
    return weights(FILE)


@pytest.fixture
def engine(path: Path, engines: dict[Path, TransformersEngine]) -> TransformersEngine:
    if path not in engines:
        settings = build_settings(PromptConfig, {"checkpoint": str(path)}, "model.")
        engines[path] = TransformersEngine(settings)
    return engines[path]


@pytest.fixture
def server(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of llama.cpp's server; requests are cached for this test alone."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    with llama_cpp_server(path, tmp_path / "server.log") as base_url:
        yield base_url


def test_the_model_answers(engine: TransformersEngine) -> None:
    """Its facts are those of the model's card, its answers end by its own token, and it knows France."""
    expected = {"checkpoint": FILE, "weights": "GGUF Q4_1", "parameters": 134_515_008}
    assert engine.facts() | expected == engine.facts()
    assert engine.context == 8192
    assert engine.ends == engine.tokenizer.convert_tokens_to_ids(["<|im_end|>"])
    request = Request(REQUESTS_OF_TEXTS[0].messages, 0, 32)
    (answer,) = engine.answer([request], Decoding(device="cpu"))
    assert "Paris" in answer.text
    assert answer.complete


@pytest.mark.api_server
def test_prompts_have_the_tokens_that_the_server_counts(
    server: str, path: Path, engine: TransformersEngine
) -> None:
    """For every text, also with digits, other scripts and code, and with the tokenizer of `model.tokenizer`."""
    api = open_api(server, tokenizer=str(path), input_length=4_000)
    answers = list(api.answer(REQUESTS_OF_TEXTS, Decoding()))
    counted_by_server = [answer.prompt_tokens for answer in answers]
    assert counted_by_server == [api.count(request.messages) for request in REQUESTS_OF_TEXTS]
    assert counted_by_server == [engine.count(request.messages) for request in REQUESTS_OF_TEXTS]
    assert all(answer.text for answer in answers)


@pytest.mark.api_server
def test_a_run_that_was_killed_asks_nothing_twice(server: str, path: Path, tmp_path: Path) -> None:
    """Of five examples, the run that goes on asks only for those without a stored answer."""
    data = write_jsonl(tmp_path / "texts", train=0, validation=0, test=5)
    model = ["engine=api", f"base_url={server}", "checkpoint=smollm2", f"tokenizer={path}"]
    model += ["length=20", "input_length=400", "decode_length=32", "parallel_requests=1"]
    words = ["run", "model=prompt", "dataset=jsonl", f"dataset.path={data}", "baselines=false"]
    words += [f"model.{setting}" for setting in (*model, f"key_variable={KEY_VARIABLE}")]
    words += [f"results_dir={tmp_path / 'results'}", "score.resamples=100"]
    answers, log = tmp_path / "cache" / REQUESTS, tmp_path / "server.log"
    process = start_python(COMMAND, *words)
    wait_until(lambda: stored_answers(answers) >= 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(1)  # until the server has read what was sent
    missing, begun = 5 - stored_answers(answers), requests_in(log)
    assert missing
    assert main(words) == 0
    assert requests_in(log) - begun == missing
    assert stored_answers(answers) == 5
    assert main([*words, "overwrite=true"]) == 0
    assert requests_in(log) - begun == missing
