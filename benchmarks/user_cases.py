"""Checks of what users met (the folder 2026-11-28 of the cases); `cases.py` prints them.

Each check yields what is right and what the suite does now. README.md of the folder says why it is right.
"""

import io
import json
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
from case_support import BAD_DATA, Outcome, command, print_command, records_in, summaries_in

import longsumbench
from longsumbench.errors import SuiteError

_PLAIN = ["dataset=jsonl", "baselines=false", "device=cpu"]
_READINGS = (
    "beginning",
    "ending",
    "ends",
    "whole",
    "select",
    "segments",
    "pages",
    "stages",
    "refine",
)
_SENTENCE = "The committee met and agreed on the plan."
_LEAST_AGREEMENT = 0.95  # of outputs that a reader labelled


def check_programs(folder: Path) -> Iterator[Outcome]:
    """Check that terminals' control codes do not change what a program scores."""
    for script in ("plain", "ansi", "cr", "erase"):
        words = [f"dataset.path={folder}/command/test.jsonl", f"results_dir=programs/{script}"]
        printed = print_command(
            "run", "model=command", f"model.command={folder}/command/{script}.sh", *_PLAIN, *words
        )
        scores = [
            round(run.evaluation.scores["rougeLsum"].f, 1) for run in records_in(words[1][12:])
        ]
        is_named = printed.code != 0 and "control" in printed.err
        yield Outcome(f"command/{script}.sh", [85.7], [85.7] if is_named else scores)


_SESSIONS = {
    "cc-branch": (["user", "assistant"] * 2, "dropped"),
    "cc-retry": (["user", "assistant", "user"], "API Error"),
    "cc-dup": (["user", "assistant", "user", "assistant", "user"], "nothing"),
    "cc-sub": (["user", "assistant"] * 2, "nothing"),
    "cc-titles": (["user", "assistant"] * 2, "Gateway"),
    "cc-index": (["user", "assistant"] * 2, "firstPrompt"),
    "codex": (["user", "assistant", "tool", "assistant"], "nothing"),
    "oa-function": (["user", "assistant", "tool", "assistant"], "nothing"),
}


def check_sessions(folder: Path) -> Iterator[Outcome]:
    """Check which turns of sessions are read, from folders as the tools leave them."""
    for name, (roles, absent) in _SESSIONS.items():
        try:
            split = longsumbench.load_dataset(
                "sessions", path=str(folder / "sessions" / name)
            ).splits["test"]
        except SuiteError as error:
            yield Outcome(f"sessions/{name}", roles, f"{error}")
            continue
        found_roles = [section.name for section in split[0].documents[0].sections]
        text = split[0].source_text()
        yield Outcome(f"sessions/{name}: turns", (1, roles), (len(split), found_roles))
        sentences = list(split[0].sentences())
        yield Outcome(
            f"sessions/{name}: left out",
            True,
            absent not in text and len({*sentences}) == len(sentences),
        )
        if name == "oa-function":
            yield Outcome(
                "sessions/oa-function: the call", True, "delete_port" in text and "9090" in text
            )


_SERVERS = {
    "over500": (["", True], "one is too long"),
    "over500b": (["", True], "one is too long"),
    "over400": (["", True], "one is too long"),
    "spii": (["", True], "a refusal"),
    "spiipart": (["The comm", False], "not complete"),
    "nullmessage": (["", True], "a refusal"),
    "usagefloat": ([_SENTENCE, True], "read"),
    "gptoss": ([_SENTENCE, True], "without its marks"),
}


def check_servers(folder: Path) -> Iterator[Outcome]:
    """Check what is scored of the answers of an imitated server."""
    with _serving(folder / "server" / "stub.py") as address:
        texts = f"dataset.path={folder}/server/test.jsonl"
        words = ["model=prompt", "model.engine=api", "model.checkpoint=any", "model.reading=whole"]
        words += ["model.length=20", "model.retries=0", "decode.failed=empty", texts, *_PLAIN]
        for kind, ((text, complete), meaning) in _SERVERS.items():
            command(
                "run", *words, f"model.base_url={address}/{kind}/v1", f"results_dir=servers/{kind}"
            )
            answers = [
                (summary.text, summary.complete) for summary in summaries_in(f"servers/{kind}")
            ]
            odd = [answer for answer in answers if answer != (_SENTENCE, True)]
            expected = [] if text == _SENTENCE else [(text, complete)]
            is_right = len(answers) == 3 and [answer[0] for answer in odd] == [
                answer[0] for answer in expected
            ]
            if kind == "spiipart":
                is_right = is_right and not odd[0][1]
            yield Outcome(f"server/{kind}: {meaning}", True, is_right)
        settings = f"{{engine: api, base_url: '{address}/notemp/v1'}}"
        judge = [
            "score.metrics=[judge]",
            "score.judge_models=[any]",
            f"score.judge_settings={settings}",
        ]
        printed = print_command(
            "run",
            "model=lead",
            "model.length=5",
            texts,
            *_PLAIN,
            *judge,
            "results_dir=servers/judge",
        )
        is_named = printed.code == 4 and "temperature" in printed.err and "400" in printed.err
        yield Outcome(
            "server/notemp: the judge's cause is named, or it works",
            True,
            is_named or _has_verdict(),
        )


def _has_verdict() -> bool:
    return any(run.evaluation.scores["judge_recall"].f >= 0 for run in records_in("servers/judge"))


@contextmanager
def _serving(stub: Path) -> Iterator[str]:
    """Start the imitated server on a free port of this machine; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, str(stub), f"{port}", "requests.log"], stderr=subprocess.DEVNULL
    ) as server:
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def check_facts(folder: Path) -> Iterator[Outcome]:
    """Check the verdicts on planted facts with those of a reader."""
    printed = _run_script(folder / "facts" / "facts.py")
    labels = printed.splitlines()
    num_right = sum(line.startswith("ok") for line in labels)
    printed = _run_script(folder / "facts" / "matcher.py")
    (count,) = re.findall(r"^(\d+) outputs", printed, re.M)
    num_unlike = len(re.findall(r" mine=\w+ +matcher=", printed))
    total = len(labels) + int(count)
    agreement = (num_right + int(count) - num_unlike) / total
    case = (
        f"facts: agreement on {total} outputs ({agreement:.1%}) is {_LEAST_AGREEMENT:.0%} or more"
    )
    yield Outcome(case, True, agreement >= _LEAST_AGREEMENT)


def _run_script(script: Path) -> str:
    printed = io.StringIO()
    with chdir(script.parent), redirect_stdout(printed):
        runpy.run_path(script.name, run_name="__main__")
    return printed.getvalue()


def check_templates(folder: Path) -> Iterator[Outcome]:
    """Check that an answer ends where the chat template ends a turn."""
    for name in ("st-both", "st-wrong"):
        words = ["model=prompt", f"model.checkpoint={folder}/rigged/{name}", "model.length=5"]
        words += ["model.decode_length=40", f"dataset.path={folder}/texts3.jsonl", *_PLAIN]
        command("run", *words, f"results_dir=templates/{name}")
        texts = {summary.text for summary in summaries_in(f"templates/{name}")}
        yield Outcome(f"rigged/{name}", {"The committee met."}, texts)


def check_odd_texts(folder: Path) -> Iterator[Outcome]:
    """Check the lines about texts with marks in them, null summaries and hidden files."""
    for name, mark in (("literal-newline", "\\n"), ("html", "HTML")):
        path = f"dataset.path={folder}/data/{name}.jsonl"
        printed = print_command(
            "run", "model=lead", "model.length=5", path, *_PLAIN, f"results_dir=odd/{name}"
        )
        lines = [line for line in printed.err.splitlines() if mark in line]
        yield Outcome(f"data/{name}: a warning", (0, 1), (printed.code, len(lines)))
    path = f"dataset.path={folder}/data/nullsummary.jsonl"
    printed = print_command(
        "run", "model=lead", "model.length=5", path, *_PLAIN, "results_dir=odd/null"
    )
    is_named = printed.code == 0 or "null" in printed.err
    yield Outcome("data/nullsummary: read, or named null", True, is_named)
    texts = longsumbench.load_dataset("jsonl", path=str(folder / "data" / "macos-folder"))
    yield Outcome(
        "data/macos-folder", ["a0", "a1"], [example.id for example in texts.splits["test"]]
    )


def check_layout(folder: Path) -> Iterator[Outcome]:
    """Check that every reading, and a program, is sent texts as they were written."""
    path = folder / "verbatim.jsonl"
    documents = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        documents[row["id"]] = row["document"]
    words = [f"dataset.path={path}", "decode.keep_inputs=all", "model.length=20", *_PLAIN]
    checkpoint = [
        "model=prompt",
        f"model.checkpoint={folder}/rigged/st-both",
        "model.decode_length=5",
    ]
    for reading in _READINGS:
        reading_words = [f"model.reading={reading}", f"results_dir=layout/{reading}"]
        if reading in ("select", "segments"):
            reading_words.append("model.selector=lexrank")
        code = command("run", *checkpoint, *words, *reading_words)
        yield Outcome(
            f"verbatim: {reading}", (0, []), (code, _altered(f"layout/{reading}", documents))
        )
    programs = ["run", "model=command", "model.command=cat", *words, "results_dir=layout/cat"]
    code = command(*[word for word in programs if not word.startswith("model.length")])
    yield Outcome("verbatim: a program", (0, []), (code, _altered("layout/cat", documents)))


def _altered(results: str, documents: dict[str, str]) -> list[str]:
    """Return the ids of the documents that no input of a run has as they are."""
    inputs: dict[str, str] = {}
    for file in Path(results).glob("runs/*/*/*/inputs.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            inputs[row["id"]] = inputs.get(row["id"], "") + "".join(_texts_in(row))
    return [name for name, text in documents.items() if text.strip() not in inputs.get(name, "")]


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(item)


_ADAPTERS = {  # adapter → system, weights
    "head-tied": ("prompt", "qwen-tied"),
    "plain": ("prompt", "qwen-tied"),
    "bart-old-lm_head": ("seq2seq", "bart-old"),
    "prompt-tuning": ("prompt", "qwen-tied"),
}


def check_adapters(folder: Path) -> Iterator[Outcome]:
    """Check that adapters of tied weights act as peft says, or are refused."""
    tied = folder / "adapter-tied"
    for adapter, (system, checkpoint) in _ADAPTERS.items():
        words = [f"model={system}", *_adapter_words(folder, system)]
        model_words = [f"model.checkpoint={tied / checkpoint}", f"model.adapter={tied / adapter}"]
        printed = print_command("run", *words, *model_words, f"results_dir=adapters/{adapter}")
        if printed.code:
            is_refused = "fetch" not in printed.err and printed.code in (2, BAD_DATA)
            case = f"adapter-tied/{adapter}: refused by name"
            yield Outcome(case, True, is_refused and adapter != "plain")
            continue
        merged = _merge_by_peft(tied / checkpoint, tied / adapter, system)
        command("run", *words, f"model.checkpoint={merged}", f"results_dir=peft/{adapter}")
        texts = [
            [each.text for each in summaries_in(f"{results}/{adapter}")]
            for results in ("peft", "adapters")
        ]
        yield Outcome(f"adapter-tied/{adapter}: as peft writes", *texts)


def _adapter_words(folder: Path, system: str) -> list[str]:
    words = [f"dataset.path={folder}/texts3.jsonl", "train.max_steps=0", *_PLAIN]
    if system == "prompt":
        return [*words, "model.length=5", "model.decode_length=20", "model.chat_template=none"]
    return [*words, "decode.max_length=20", "decode.min_length=1"]


def _merge_by_peft(checkpoint: Path, adapter: Path, system: str) -> Path:
    """Write the checkpoint with the adapter as peft merges it, its input and output layers untied; return the folder."""
    import peft
    import transformers
    from safetensors.torch import save_file
    from torch import nn

    kinds = {
        "prompt": transformers.AutoModelForCausalLM,
        "seq2seq": transformers.AutoModelForSeq2SeqLM,
    }
    network = kinds[system].from_pretrained(checkpoint)
    network.config.tie_word_embeddings = False
    network.lm_head.weight = nn.Parameter(network.lm_head.weight.detach().clone())
    merged = peft.PeftModel.from_pretrained(network, adapter).merge_and_unload()
    folder = Path("merged", adapter.name)
    merged.config.save_pretrained(folder)
    weights = {name: weight.clone().contiguous() for name, weight in merged.state_dict().items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    for path in (*checkpoint.glob("tokenizer*"), *checkpoint.glob("generation_config.json")):
        shutil.copy(path, folder)
    return folder


def check_null_texts(folder: Path) -> Iterator[Outcome]:
    """Check that an optional text can be null, and that the word None is refused."""
    checkpoint = f"model.checkpoint={folder}/adapter-tied/bart-old"
    words = ["model=seq2seq", checkpoint, *_adapter_words(folder, "seq2seq")]
    for value, code in (("null", 0), ("None", 2)):
        printed = command("run", *words, f"model.prefix={value}", f"results_dir=prefix/{value}")
        yield Outcome(f"model.prefix={value}", code, printed)


def check_functions(folder: Path) -> Iterator[Outcome]:
    """Check that different functions have different runs, and which arguments they get."""
    options: dict[str, Any] = {"dataset": {"name": "aclsum", "limit": 5}, "baselines": False}
    runs = []
    # Both on one line, as users write them
    for function in [lambda text: text[:600], lambda text: text[-600:]]:  # fmt: skip
        runs.append(longsumbench.run(model=function, results_dir="functions", **options))
    scores = {round(run.evaluation.scores["rougeLsum"].f, 3) for run in runs}
    yield Outcome(
        "functions: two on one line", (2, 2), (len({run.run_id for run in runs}), len(scores))
    )

    def lead(text: str, sentences: int = 5) -> str:
        return ". ".join(text.split(". ")[:sentences])

    def lead_five(text: str) -> str:
        return ". ".join(text.split(". ")[:5])

    words = []
    for function in (lead, lead_five):
        run = longsumbench.run(model=function, results_dir="functions", **options)
        assert run.evaluation.outputs is not None
        words.append(run.evaluation.outputs.words)
    yield Outcome("functions: a default stays", words[1], words[0])
    tool = Path("tool.py")
    code = "import sys\nopen(__file__, 'a').write('# edited\\n')\nprint(sys.stdin.read()[:200])\n"
    tool.write_text(code, encoding="utf-8")
    edited = ["model=command", f"model.command={sys.executable} {tool}", "dataset=aclsum"]
    printed = print_command(
        "run", *edited, "decode.limit=3", "baselines=false", "results_dir=edited"
    )
    yield Outcome(
        "functions: a program that is edited",
        (True, 0),
        (printed.code != 0, len([*records_in("edited")])),
    )


def check_verify(folder: Path) -> Iterator[Outcome]:
    """Check that a record without its floor and counts of outputs is not verified."""
    path = f"dataset.path={folder}/texts3.jsonl"
    command("run", "model=lead", "model.length=20", path, *_PLAIN, "results_dir=verified")
    yield Outcome("verify: a run as it was", 0, command("verify", "verified"))
    (record,) = Path("verified").glob("runs/*/*/*/record.json")
    whole = json.loads(record.read_text(encoding="utf-8"))
    for field, value in (("outputs", None), ("floor", {"rougeLsum": 1.0})):
        changed = {**whole, "evaluation": {**whole["evaluation"], field: value}}
        record.write_text(json.dumps(changed), encoding="utf-8")
        yield Outcome(f"verify: {field} changed", True, command("verify", "verified") != 0)


def check_scores(folder: Path) -> Iterator[Outcome]:
    """Check what `score` makes of pandas, of one example, and a folder of texts of its other files."""
    first: Any = pd.Series({"a": "the cat sat on the mat", "b": "stocks fell on monday"})
    second = first[::-1]
    yield Outcome(
        "series.py: Series by their ids", 100.0, _f1_of(lambda: longsumbench.score(first, second))
    )
    frame: Any = pd.DataFrame({"prediction": first})
    yield Outcome(
        "series.py: a frame is refused",
        "UsageError",
        _f1_of(lambda: longsumbench.score(frame, frame)),
    )
    Path("one.jsonl").write_text(
        '{"id": "a", "prediction": "the cat sat", "references": ["a cat sat down"]}\n',
        encoding="utf-8",
    )
    printed = print_command("score", "one.jsonl")
    yield Outcome(
        "n1.sh: one example has no interval", (0, False), (printed.code, "±0" in printed.out)
    )
    for place, text in (
        ("texts/r1.txt", "One. Two."),
        ("texts/notes.md", "# A heading"),
        ("references/r1.txt", "One."),
        ("references/notes.txt", "A heading."),
        ("texts/letter.docx", "x"),
    ):
        path = Path("mine", place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    printed = print_command("stats", "dataset=jsonl", "dataset.path=mine")
    is_counted = "docx" in printed.out + printed.err
    yield Outcome("texts-folder.sh: other files are counted", (0, True), (printed.code, is_counted))
    texts = longsumbench.load_dataset("jsonl", path="mine").splits["test"]
    yield Outcome(
        "texts-folder.sh: .md is read", ["notes", "r1"], sorted(example.id for example in texts)
    )


def _f1_of(call: Callable[[], Any]) -> object:
    """Return the F1 of ROUGE-Lsum that a call computes, or the name of its error."""
    try:
        f1 = call().f1
    except SuiteError as error:
        return type(error).__name__
    return round(f1["rougeLsum"], 1)


CHECKS = (
    check_programs,
    check_sessions,
    check_servers,
    check_facts,
    check_templates,
    check_odd_texts,
    check_layout,
    check_adapters,
    check_null_texts,
    check_functions,
    check_verify,
    check_scores,
)
