"""Small inputs that once gave wrong numbers in silence: what is right, and what the suite does now.

    python benchmarks/cases.py [../shared/cases]

A line for each case; exits with 1 if one is wrong. The page README.md of the folder says where each case is from.
"""

import argparse
import csv
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import user_cases
from case_support import BAD_DATA, Outcome, command
from tabulate import tabulate

import longsumbench
from longsumbench.core import count_words
from longsumbench.errors import SuiteError
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.results import Results

USERS = "2026-11-28"  # what users met; its checks are in user_cases.py
CASES = Path(__file__).parents[2] / "shared" / "cases"
REFUSED = (
    "backslash",
    "cp1252",
    "duphead",
    "nul",
    "ragged",
    "unclosed",
)  # tables with lost or ambiguous values
CHINESE_LENGTH = 30


def check_tables(folder: Path) -> Iterator[Outcome]:
    """Check that tables are read as Python's csv module reads them, or refused."""
    for path in sorted((folder / "csv-more").iterdir()):
        case = f"csv-more/{path.name}"
        words = [
            "run",
            "model=lead",
            "model.length=20",
            "dataset=jsonl",
            f"dataset.path={path}",
            "baselines=false",
        ]
        code = command(*words, f"dataset.name={path.stem}", f"results_dir=tables/{path.name}")
        if path.stem in REFUSED:
            yield Outcome(case, f"exit {BAD_DATA}", f"exit {code}")
            continue
        summaries = [
            summary.text
            for run in Path("tables", path.name).glob("runs/*/*/*/predictions.jsonl")
            for summary in read_summaries(run)
        ]
        yield Outcome(case, expected_texts(path), [" ".join(text.split()) for text in summaries])


def expected_texts(path: Path) -> list[str]:
    """Return the texts of a table, in their order; all have fewer than 20 words."""
    content = path.read_bytes()
    text = content.decode("utf-16" if content.startswith(b"\xff\xfe") else "utf-8-sig")
    lines = [line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line]
    delimiter = next(mark for mark in "\t;," if mark in lines[0])
    header, *rows = csv.reader(lines, delimiter=delimiter)
    place = [name.strip().lower() for name in header].index("document")
    return [row[place].strip() for row in rows]


def check_scripts(folder: Path) -> Iterator[Outcome]:
    """Check that words of any script are scored and counted."""
    words = ["dataset=jsonl", "baselines=false", "results_dir=scripts"]
    russian = [
        *words,
        f"dataset.path={folder}/oracle-unicode/ru.jsonl",
        "dataset.name=ru",
        "score.tokenizer=unicode",
    ]
    command("run", "-m", "model=lead,oracle,ranker", "model.length=15", *russian)
    command("run", "model=oracle", *russian)
    scores = {
        run.key.model: run.evaluation.scores["rougeLsum"].f
        for run in Results(Path("scripts")).records("ru")
    }
    yield Outcome("oracle-unicode: oracle", 100.0, scores["oracle"])
    yield Outcome("oracle-unicode: ranker is below it", True, scores["ranker"] < scores["oracle"])
    for model in ("lead", "lexrank", "random"):
        chinese = [
            *words,
            f"dataset.path={folder}/chinese",
            "dataset.name=zh",
            f"model.length={CHINESE_LENGTH}",
        ]
        command("run", f"model={model}", *chinese)
        (path,) = Path("scripts").glob(f"runs/zh/{model}/*/predictions.jsonl")
        lengths = {count_words([summary.text]) for summary in read_summaries(path)}
        yield Outcome(f"chinese: letters of {model}", {CHINESE_LENGTH}, lengths)


def check_surrogates(folder: Path) -> Iterator[Outcome]:
    """Check that half a character is refused, and nothing is written."""
    texts = folder / "lone-surrogate"
    dataset = ["--dataset", "jsonl", f"dataset.path={texts / 'ok.jsonl'}", "results_dir=half"]
    for name in ("out.jsonl", "oid.jsonl"):
        code = command("import", str(texts / name), "--model", "theirs", *dataset)
        yield Outcome(
            f"lone-surrogate/{name}", (BAD_DATA, False), (code, Path("half", "runs").exists())
        )
    for name in ("id.jsonl", "title.jsonl", "test.jsonl"):
        words = [
            "model=lead",
            "model.length=5",
            "dataset=jsonl",
            f"dataset.path={texts / name}",
            "results_dir=half",
        ]
        yield Outcome(
            f"lone-surrogate/{name}",
            (BAD_DATA, False),
            (command("run", *words), Path("half/runs").exists()),
        )


def check_weights(folder: Path) -> Iterator[Outcome]:
    """Check that weights without a place, and adapters that do not fit, are refused."""
    broken, whole = folder / "weights" / "layers-fewer", Path("whole")
    shutil.copytree(broken, whole)
    config = json.loads((whole / "config.json").read_text(encoding="utf-8"))
    whole.chmod(0o755)
    (whole / "config.json").chmod(0o644)
    (whole / "config.json").write_text(
        json.dumps({**config, "decoder_layers": 2}), encoding="utf-8"
    )
    texts = Path("texts.jsonl")
    texts.write_text(
        '{"id": "a", "document": "A cat sat. It slept.", "summary": "A cat."}\n', encoding="utf-8"
    )
    words = [
        "run",
        "model=seq2seq",
        "dataset=jsonl",
        f"dataset.path={texts}",
        "baselines=false",
        "results_dir=weights",
    ]
    words += ["train.max_steps=0", "decode.max_length=5", "decode.min_length=1", "device=cpu"]
    yield Outcome("weights/layers-fewer", BAD_DATA, command(*words, f"model.checkpoint={broken}"))
    yield Outcome(
        "weights: the same with its layers", 0, command(*words, f"model.checkpoint={whole}")
    )
    for name, code in (("good", 0), ("other-path", BAD_DATA)):
        adapter = f"model.adapter={folder / 'adapter' / name}"
        yield Outcome(
            f"adapter/{name}", code, command(*words, f"model.checkpoint={whole}", adapter)
        )


def check_answers(folder: Path) -> Iterator[Outcome]:
    """Check what is scored of a server's answers; if the only one is none, the run ends."""
    sentence = "The committee met and agreed on the plan."
    texts = Path("question.jsonl")
    texts.write_text(
        '{"id": "a", "document": "They met. They agreed.", "summary": "They met."}\n',
        encoding="utf-8",
    )
    for line in (folder / "server" / "answers.jsonl").read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        kind, expected = answer["kind"], answer["expected"]
        right = (
            sentence
            if expected.startswith(sentence)
            else answer["message"]["content"]
            if kind == "json"
            else ""
        )
        with serving(answer) as address:
            words = [
                f"model.base_url={address}",
                "model.engine=api",
                "model.checkpoint=any",
                "model.retries=0",
            ]
            words += ["model.length=20", "model.reading=whole"]
            words += [
                "dataset=jsonl",
                f"dataset.path={texts}",
                "baselines=false",
                "decode.failed=empty",
            ]
            code = command("run", "model=prompt", *words, f"results_dir=answers/{kind}")
        if "no answer" in expected:
            yield Outcome(f"server: {kind}", f"exit {BAD_DATA}", f"exit {code}")
            continue
        paths = [*Path("answers", kind).glob("runs/*/*/*/predictions.jsonl")]
        summaries = [summary.text for path in paths for summary in read_summaries(path)]
        yield Outcome(f"server: {kind}", [right], summaries)


@contextmanager
def serving(answer: dict[str, Any]) -> Iterator[str]:
    """Serve one answer on this machine; yield the address."""
    choice = {"index": 0, "message": answer["message"], "finish_reason": answer["finish_reason"]}
    body = json.dumps(
        {"choices": [choice], "model": "any", "usage": {"completion_tokens": 900}}
    ).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default=CASES, help="the folder of the cases"
    )
    folder = parser.parse_args().folder.resolve()
    checks = (check_tables, check_scripts, check_surrogates, check_weights, check_answers)
    with tempfile.TemporaryDirectory() as work, chdir(work):
        outcomes = [outcome for check in checks for outcome in check(folder)]
        for check in user_cases.CHECKS:
            try:
                for outcome in check(folder / USERS):
                    outcomes.append(outcome)
            except SuiteError as error:
                outcomes.append(Outcome(check.__name__, "no error", f"{error}"))
    rows = [
        [outcome.case, outcome.right, outcome.here, "" if outcome.is_right else "WRONG"]
        for outcome in outcomes
    ]
    print(tabulate(rows, ("case", "right", "here", ""), maxcolwidths=[40, 50, 50, None]))
    wrong = sum(not outcome.is_right for outcome in outcomes)
    print(f"{wrong} of {len(outcomes)} cases are wrong (longsumbench {longsumbench.__version__})")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
