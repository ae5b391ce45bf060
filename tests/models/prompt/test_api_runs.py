"""`longsumbench run model=prompt model.engine=api` against a server: kills, keys, exit codes; and real servers."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.api_server import KEY_VARIABLE, PASSING_FAULTS, ApiServer, api_server, stored_answers
from support.processes import start_python
from support.tiny_causal import CHAT_TEMPLATE
from support.toys import WORDS, ToySplit, write_jsonl
from support.waiting import wait_until

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cache.request_cache import REQUESTS
from longsumbench.cli.main import main
from longsumbench.leaderboards.comparability import comparison_key
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.outputs.files import read_pairs
from longsumbench.outputs.inspection import inspect_example
from longsumbench.progress import Progress, watching_progress
from longsumbench.runs.results import Results

KEY = "sk-0a1b2c3d4e5f"
NO_WAITS = "from longsumbench.models.prompt import api_engine\napi_engine.FIRST_WAIT = 0.0"
COMMAND = (
    f"import sys\n{NO_WAITS}\nfrom longsumbench.cli.main import main\nsys.exit(main(sys.argv[1:]))"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache of this test alone; nothing waits before a retry."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("longsumbench.models.prompt.api_engine.FIRST_WAIT", 0.0)
    return tmp_path / "cache"


def run_words(folder: Path, base_url: str, *more: str, examples: int = 4) -> list[str]:
    """Return the words of a run in a folder, which has the texts and the results."""
    data = write_jsonl(folder / "texts", train=0, validation=0, test=examples)
    model = ["engine=api", f"base_url={base_url}", "checkpoint=tiny", "length=20", "truncate=none"]
    model = [f"model.{setting}" for setting in (*model, f"key_variable={KEY_VARIABLE}")]
    rest = [f"results_dir={folder / 'results'}", "baselines=false", "score.resamples=100"]
    return ["run", "model=prompt", *model, "dataset=jsonl", f"dataset.path={data}", *rest, *more]


def predictions(folder: Path) -> list[str]:
    (path,) = (folder / "results" / "runs").rglob("predictions.jsonl")
    return [
        json.loads(line)["prediction"] for line in path.read_text(encoding="utf-8").splitlines()
    ]


def test_two_hundred_examples_with_faults_and_a_kill(tmp_path: Path, cache: Path) -> None:
    """With a fault in a tenth of all requests and a SIGKILL, the server gives one answer for each example."""

    def fault(number: int) -> str | None:
        return PASSING_FAULTS[number // 10 % len(PASSING_FAULTS)] if number % 10 == 0 else None

    with api_server(fault=fault, held=lambda number: number >= 90) as server:
        words = run_words(tmp_path, server.base_url, examples=200)
        process = start_python(COMMAND, *words)
        wait_until(
            lambda: stored_answers(cache / REQUESTS) == 81, process
        )  # of the first 90, nine had a fault
        process.send_signal(signal.SIGKILL)
        process.communicate()
        server.held = lambda number: False
        assert main(words) == 0
        assert len(server.answered) == 200
        assert set(server.answered.values()) == {1}
        asked = len(server.bodies)
        assert main([*words, "overwrite=true"]) == 0
        assert len(server.bodies) == asked
    assert len(predictions(tmp_path)) == 200
    assert all(predictions(tmp_path))


UNANSWERABLE = {  # what a server says about one example → the exit code
    "refused": ((400, '{"error": "no"}'), 2),
    "no choice": ((200, '{"choices": []}'), 4),
    "no text": ((200, '{"choices": [{"message": {"content": 5}}]}'), 4),
}


def refuses_third(server: ApiServer, folder: Path, fault: object) -> list[str]:
    """Let a server have a fault for the third example; return the words of a run with a metric."""
    words = run_words(folder, server.base_url, "model.retries=1")
    rows = (folder / "texts" / "test.jsonl").read_text(encoding="utf-8").splitlines()
    text = json.loads(rows[2])["document"].split("\n")[0]
    server.fault = lambda number: (
        fault if text in server.bodies[number]["messages"][-1]["content"] else None
    )
    return words


def third_id(folder: Path) -> str:
    return str(
        json.loads((folder / "texts" / "test.jsonl").read_text(encoding="utf-8").splitlines()[2])[
            "id"
        ]
    )


@pytest.mark.parametrize("kind", UNANSWERABLE)
def test_an_example_without_an_answer_stops_the_run(
    kind: str, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line names the example, after all others were answered; the same command asks only for that one."""
    fault, code = UNANSWERABLE[kind]
    with api_server() as server:
        words = refuses_third(server, tmp_path, fault)
        assert main(words) == code
        last = capsys.readouterr().err.strip().splitlines()[-1]
        assert f"no answer about 1 example, '{third_id(tmp_path)}' (decode.failed=stop)" in last
        assert "decode.failed=empty" in last
        assert len(server.answered) == stored_answers(cache / REQUESTS) == 3
        server.fault, asked = lambda number: None, len(server.bodies)
        assert main(words) == 0
        assert len(server.bodies) == asked + 1


def test_examples_without_an_answer_are_scored_as_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As empty summaries they score 0; left out, they are in no mean, and the rows are not ranked together."""
    records = {}
    with api_server(answer=lambda messages: " ".join(WORDS)) as server:
        words = refuses_third(server, tmp_path, (400, "no"))
        for choice in ("empty", "leave_out"):
            assert main([*words, f"decode.failed={choice}"]) == 0
            said = f"no answer about 1 example, '{third_id(tmp_path)}' (decode.failed={choice})"
            assert said in capsys.readouterr().err
        server.fault = lambda number: None
        assert main(words) == 0
    for record in Results(tmp_path / "results").records("jsonl"):
        records[record.config.decode.failed] = record
    empty, left_out, whole = records["empty"], records["leave_out"], records["stop"]
    assert [one.ledger.counts["failed"] for one in (empty, left_out, whole)] == [1, 1, 0]
    assert [one.evaluation.n for one in (empty, left_out, whole)] == [4, 3, 4]
    assert (
        0
        < 4 * empty.evaluation.scores["rouge1"].f
        == pytest.approx(3 * left_out.evaluation.scores["rouge1"].f)
    )
    assert comparison_key(empty) == comparison_key(whole) != comparison_key(left_out)
    assert all(
        f"failed={choice}" in records[choice].variant.split(",")
        for choice in ("empty", "leave_out")
    )
    capsys.readouterr()
    assert main(["leaderboard", "jsonl", "--results-dir", str(tmp_path / "results")]) == 0
    table = capsys.readouterr().out
    assert f"Without an answer of the model, scored as empty: {empty.label}: 1." in table
    assert f"Without an answer of the model, left out: {left_out.label}: 1." in table
    pairs = read_pairs(Results(tmp_path / "results").run_folder(left_out)).pairs
    assert (len(pairs), third_id(tmp_path) in {pair.id for pair in pairs}) == (3, False)
    inspect_example(left_out.run_id, third_id(tmp_path), Results(tmp_path / "results"))


def test_a_run_without_any_answer_is_not_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong setting of the server gives no row of zeros; once it is corrected, the same command asks again."""
    with api_server(fault=lambda number: (400, "no")) as server:
        words = [*run_words(tmp_path, server.base_url), "decode.failed=empty"]
        assert main(words) == 3
        assert "no example has an answer: correct" in capsys.readouterr().err
        server.fault = lambda number: None
        assert main(words) == 0
    assert all(predictions(tmp_path))


def test_a_resumed_run_has_the_same_facts(tmp_path: Path) -> None:
    """The prompts in the record of a test split with queries do not depend on what was summarized before."""
    with api_server() as server:
        words = run_words(tmp_path, server.base_url)
        test = tmp_path / "texts" / "test.jsonl"
        rows = [
            {**json.loads(line), "query": "mihit?"}
            for line in test.read_text(encoding="utf-8").splitlines()
        ]
        del rows[0]["query"]
        test.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        assert main(words) == 0
        (path,) = (tmp_path / "results" / "runs").rglob("record.json")
        facts = json.loads(path.read_text(encoding="utf-8"))["system"]
        path.unlink()
        assert main(words) == 0
    assert facts["prompt"] == "document, query"
    assert json.loads(path.read_text(encoding="utf-8"))["system"] == facts


def judge_words(request: Sequence[Mapping[str, str]]) -> str:
    """Answer as a judge: one key point with markup, which the first sentence states."""
    if request[0]["content"].startswith("List the key points"):
        return json.dumps({"key_points": ["A <script>point</script>."]})
    return json.dumps({"matches": {"1": [1]}, "fluency": 5})


def test_a_run_is_judged_by_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says the cost and keeps scores and verdicts, which pages show as text; again, it asks nothing."""
    data = write_jsonl(tmp_path / "texts", train=0, validation=0, test=3)
    rest = [
        f"results_dir={tmp_path / 'results'}",
        "baselines=false",
        "score.resamples=100",
        "score.metrics=[judge]",
    ]
    rest += ["score.judge_models=[tiny]", f"score.judge_settings.key_variable={KEY_VARIABLE}"]
    words = ["run", "model=lead", "model.length=5", "dataset=jsonl", f"dataset.path={data}", *rest]
    with api_server(answer=judge_words) as server:
        words.append(
            f"score.judge_settings={{engine: api, base_url: '{server.base_url}', input_price: 1, output_price: 2}}"
        )
        assert main(words) == 0
        assert "judges: tiny, 6 requests, at most" in capsys.readouterr().err
        assert len(server.bodies) == 6
        assert all(body["temperature"] == 0 for body in server.bodies)
        results = Results(tmp_path / "results")
        (record,) = results.records("jsonl")
        assert (
            record.evaluation.measures["judge_recall"].mean,
            record.evaluation.measures["judge_fluency"].mean,
        ) == (
            100,
            5,
        )
        assert record.evaluation.measured_by["judge"].startswith("judge:2|models:tiny@")
        page = inspect_example(record.run_id, "0", results).page()
        assert "&lt;script&gt;point&lt;/script&gt;." in page
        assert "<script>point" not in page
        assert main([*words, "overwrite=true"]) == 0
        assert len(server.bodies) == 6


def test_every_mark_is_removed_and_an_unknown_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Summaries have no thought and no known mark; one line names the first unknown mark, which stays."""
    with api_server(
        answer=lambda messages: "<think>a</think>A plan.<|odd|><think>b</think><|eot_id|>"
    ) as server:
        assert main(run_words(tmp_path, server.base_url)) == 0
    assert set(predictions(tmp_path)) == {"A plan.<|odd|>"}
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "looks like a mark" in line]
    assert "'<|odd|>'" in line


@pytest.mark.parametrize("number", [3, 4])
def test_outputs_that_are_all_json_are_named(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON stays as it is, and a line says so if every output is JSON."""
    asked = count()

    def answer(messages: Sequence[Mapping[str, str]]) -> str:
        return '{"summary": "A plan."}' if next(asked) < number else "A plan."

    with api_server(answer=answer) as server:
        assert main(run_words(tmp_path, server.base_url)) == 0
    assert predictions(tmp_path).count('{"summary": "A plan."}') == number
    assert ("every output is JSON" in capsys.readouterr().err) == (number == 4)


def test_progress_counts_examples_inside_a_batch(tmp_path: Path) -> None:
    """Of a batch of four, the progress counts each example when its answer is there, and the tokens so far."""
    lines: list[str] = []

    def watch(step: Progress) -> None:
        lines.append(step.line())

    with api_server(answer=lambda messages: "A good plan.") as server, watching_progress(watch):
        assert main(run_words(tmp_path, server.base_url, "decode.batch_size=4")) == 0
    shown = [
        line.split(",")[0] + line.rpartition(",")[2]
        for line in lines
        if line.startswith("summarizing")
    ]
    assert shown == [f"summarizing: {done}/4 examples {3 * done} tokens" for done in range(1, 5)]


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
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
    for status in (401, 400, 500):
        with api_server(
            fault=lambda number, status=status: (status, f"{KEY}, {escaped}")
        ) as server:
            assert main(run_words(tmp_path, server.base_url, "model.retries=3")) != 0
    reply = f'{{"choices": [{{"message": {{"content": "The key {escaped} was sent: {KEY.upper()}."}}}}]}}'
    with api_server(fault=lambda number: (200, reply)) as server:
        assert main(run_words(tmp_path, server.base_url)) == 0
    assert set(server.keys) == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == REQUESTS for path in files)
    assert any(
        "The key <key> was sent: <key>." in path.read_text()
        for path in files
        if path.suffix == ".jsonl"
    )
    for text in (
        "".join(capfd.readouterr()),
        *(path.read_bytes().decode("latin-1") for path in files),
    ):
        assert KEY not in text.lower()
        assert escaped not in text


def write_llama(folder: Path) -> Path:
    """Write a Llama of random weights whose sizes vLLM supports on a CPU; return its folder."""
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    tokenizer = train_tokenizer(ToySplit.of("train", 12), 320)
    tokenizer.chat_template = CHAT_TEMPLATE
    ids = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")
    }
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    torch.manual_seed(1)
    network = LlamaForCausalLM(
        LlamaConfig(vocab_size=len(tokenizer), initializer_range=0.5, **sizes, **ids)
    )
    network.generation_config = GenerationConfig(**ids)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


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
    more = {"transformers": ["--device", "cpu"], "vllm": ["--dtype", "float32", "--enforce-eager"]}[
        name
    ]
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
    model = write_llama(tmp_path / "model")
    common = [
        "model.truncate=end",
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
