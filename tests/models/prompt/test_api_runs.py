"""`longsumbench run model=prompt model.engine=api` against a server: kills, keys, exit codes; and real servers."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.api_server import KEY_VARIABLE, PASSING_FAULTS, api_server, stored_answers
from support.commands import Command
from support.json_files import read_rows
from support.processes import start_python
from support.tiny_causal import write_causal
from support.toys import write_jsonl
from support.waiting import wait_until

from longsumbench.cache.request_cache import REQUESTS
from longsumbench.cli.main import main
from longsumbench.progress import Progress, watching_progress

KEY = "sk-0a1b2c3d4e5f"
NO_WAITS = "from longsumbench.models.prompt import api_engine\napi_engine.FIRST_WAIT = 0.0"
COMMAND = (
    f"import sys\n{NO_WAITS}\nfrom longsumbench.cli.main import main\nsys.exit(main(sys.argv[1:]))"
)


@pytest.fixture(autouse=True)
def cache(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache of this test alone; nothing waits before a retry."""
    monkeypatch.setattr("longsumbench.models.prompt.api_engine.FIRST_WAIT", 0.0)
    return empty_cache


def run_words(folder: Path, base_url: str, *more: str, examples: int = 4) -> list[str]:
    """Return the words of a run in a folder, which has the texts and the results."""
    data = write_jsonl(folder / "texts", train=0, validation=0, test=examples)
    model = ["engine=api", f"base_url={base_url}", "checkpoint=tiny", "length=20", "reading=whole"]
    model = [f"model.{setting}" for setting in (*model, f"key_variable={KEY_VARIABLE}")]
    rest = [f"results_dir={folder / 'results'}", "baselines=false", "score.resamples=100"]
    return ["run", "model=prompt", *model, "dataset=jsonl", f"dataset.path={data}", *rest, *more]


def predictions(folder: Path) -> list[str]:
    (path,) = (folder / "results" / "runs").rglob("predictions.jsonl")
    return [row["prediction"] for row in read_rows(path)]


def test_faults_and_a_kill_cost_no_answer(tmp_path: Path, cache: Path) -> None:
    """With a fault in a fifth of all requests and a SIGKILL, the server gives one answer for each example."""

    def fault(number: int) -> str | None:
        return PASSING_FAULTS[number // 5 % len(PASSING_FAULTS)] if number % 5 == 0 else None

    with api_server(fault=fault, held=lambda number: number >= 15) as server:
        words = run_words(tmp_path, server.base_url, examples=30)
        process = start_python(COMMAND, *words)
        wait_until(
            lambda: stored_answers(cache / REQUESTS) == 12, process
        )  # of the first 15, three had a fault
        process.send_signal(signal.SIGKILL)
        process.communicate()
        server.held = lambda number: False
        assert main(words) == 0
        assert len(server.answered) == 30
        assert set(server.answered.values()) == {1}
        asked = len(server.bodies)
        assert main([*words, "overwrite=true"]) == 0
        assert len(server.bodies) == asked
    assert len(predictions(tmp_path)) == 30
    assert all(predictions(tmp_path))


def test_a_run_without_any_answer_is_not_scored(tmp_path: Path, run_command: Command) -> None:
    """A wrong setting of the server gives no row of zeros; once it is corrected, the same command asks again."""
    with api_server(fault=lambda number: (400, "no")) as server:
        words = [*run_words(tmp_path, server.base_url), "decode.failed=empty"]
        assert "no example has an answer: correct" in run_command(3, *words).err
        server.fault = lambda number: None
        assert main(words) == 0
    assert all(predictions(tmp_path))


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        ("empty", "1 example without an answer (0 points) and 1 request refused"),
        ("leave_out", "1 example without an answer (left out) and 1 request refused"),
    ],
)
def test_missing_answers_are_said_below_the_table(
    failed: str, said: str, tmp_path: Path, run_command: Command
) -> None:
    """Zeros lower a mean, so the screen of the run and its table say how many of its texts have no answer."""
    replies = {1: (400, "no"), 2: (400, '{"error": {"code": "content_filter"}}')}
    with api_server(fault=replies.get) as server:
        words = [*run_words(tmp_path, server.base_url), f"decode.failed={failed}"]
        assert said in " ".join(run_command(0, *words).out.split())
    (table,) = tmp_path.glob("**/leaderboard/*.md")
    assert f"({said})." in table.read_text(encoding="utf-8")


def test_progress_counts_examples_inside_a_batch(tmp_path: Path) -> None:
    """Of a batch of four, the progress says each request of the round, then counts each example and its tokens."""
    lines: list[str] = []

    def watch(step: Progress) -> None:
        lines.append(step.line())

    with api_server(answer=lambda messages: "A good plan.") as server, watching_progress(watch):
        assert main(run_words(tmp_path, server.base_url, "decode.batch_size=4")) == 0
    lines = [line for line in lines if line.startswith("summarizing")]
    rounds = [line.partition(", ")[2] for line in lines if "round" in line]
    assert [line.rpartition("round")[2].split(",")[:2] for line in rounds] == [
        [" 1", f" request {number} of 4"] for number in range(1, 5)
    ]
    shown = [line.split(",")[0] + line.rpartition(",")[2] for line in lines if "round" not in line]
    assert shown == [f"summarizing: {done}/4 texts {3 * done} tokens" for done in range(1, 5)]


def test_an_interrupt_does_not_wait_for_the_server(tmp_path: Path) -> None:
    """SIGTERM ends a run at once, while answers are outstanding."""
    with api_server(held=lambda number: True) as server:
        process = start_python(COMMAND, *run_words(tmp_path, server.base_url))
        wait_until(lambda: len(server.bodies) == 4, process)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert process.returncode == 130
        assert not server.answered


def test_no_file_and_no_output_has_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server gets the key; results, cache and terminal never have it, also after errors that repeat it."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    for status in (401, 500):
        with api_server(fault=lambda number, status=status: (status, f"no: {KEY}")) as server:
            assert main(run_words(tmp_path, server.base_url, "model.retries=1")) != 0
    reply = f'{{"choices": [{{"message": {{"content": "The key {KEY} was sent."}}}}]}}'
    with api_server(fault=lambda number: (200, reply)) as server:
        assert main(run_words(tmp_path, server.base_url)) == 0
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    written = [
        path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()
    ]
    assert any("The key <key> was sent." in text for text in written)
    for text in (*capfd.readouterr(), *written):
        assert KEY not in text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def real_server(name: str, folder: Path, log: Path) -> Iterator[str]:
    """Run the server of transformers or vLLM with a model, and yield its address."""
    program = shutil.which(
        name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if program is None:
        pytest.skip(f"no {name} is installed")
    port = free_port()
    more = ["--device", "cpu"]
    if name == "vllm":
        more = ["--dtype", "float32", "--enforce-eager"]
    command = [program, "serve", str(folder), "--host", "127.0.0.1", "--port", str(port), *more]
    options: dict[str, Any] = {
        "start_new_session": True,
        "text": True,
        "env": {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"},
    }
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, **options)
    try:
        wait_until(lambda: is_healthy(port), process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.api_server
@pytest.mark.parametrize("name", ["transformers", "vllm"])
def test_a_real_server_writes_what_transformers_writes(name: str, tmp_path: Path) -> None:
    """The summaries of a model behind a server are those of the same model in this process."""
    model = write_causal(tmp_path / "model", "llama for vllm")
    common = [
        "model.reading=beginning",
        "model.input_length=400",
        "model.decode_length=24",
        f"model.checkpoint={model}",
    ]
    with real_server(name, model, tmp_path / "server.log") as base_url:
        assert main(run_words(tmp_path / "api", base_url, *common, f"model.tokenizer={model}")) == 0
    local = ["model.engine=transformers", "model.base_url=null"]
    assert main(run_words(tmp_path / "local", base_url, *common, *local)) == 0
    texts = [
        [text.rstrip("\N{REPLACEMENT CHARACTER}") for text in predictions(tmp_path / name)]
        for name in ("api", "local")
    ]
    assert texts[0] == texts[1]  # vLLM leaves out half a character at the end
