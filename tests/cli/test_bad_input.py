"""Bad input ends in one clear line (what, where, what to do) and the right exit code, with nothing lost."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command
from support.json_files import write_rows
from support.processes import start_command
from support.toys import tiny_overrides, told_in, write_jsonl
from support.waiting import wait_until

from longsumbench.cli.main import main
from longsumbench.runs.record import RunRecord

Fails = Callable[..., str]
GOOD = {"id": "good", "document": "One two three. Four five six.", "summary": "One two."}


@pytest.fixture
def fails(tmp_path: Path, run_command: Command, recwarn: pytest.WarningsRecorder) -> Fails:
    """A command line that must end with a code and one line, which is returned."""

    def check(code: int, *overrides: str) -> str:
        words = ["model=lead", "dataset=jsonl", f"results_dir={tmp_path / 'results'}"]
        error = told_in(run_command(code, "run", *words, *overrides).err)
        assert len(error) == 1, error
        assert error[0].startswith("longsumbench: ")
        assert "Traceback" not in error[0]
        assert [
            one.message for one in recwarn if issubclass(one.category, UserWarning)
        ] == []  # users would see them
        return error[0]

    return check


def works(folder: Path, tmp_path: Path, *overrides: str) -> Path:
    """Run on a dataset; return the folder of the only run."""
    results = tmp_path / "results"
    words = ["dataset=jsonl", f"dataset.path={folder}", f"results_dir={results}"]
    assert main(["run", *words, "baselines=false", "score.resamples=100", *overrides]) == 0
    (record,) = results.glob("runs/jsonl/*/*/record.json")
    return record.parent


def test_a_bad_row_is_named_by_file_and_line(toy: Path, fails: Fails) -> None:
    """What cannot be read ends with exit code 3 and a line that names file, line and problem."""
    (toy / "test.jsonl").write_text(f"{json.dumps(GOOD)}\n[1, 2]\n")
    problem = "test.jsonl:2: not a JSON object on one line: it is a list"
    assert f"{toy}/{problem}" in fails(3, f"dataset.path={toy}")


@pytest.mark.parametrize("words", ["", "decode.limit=1"])
def test_texts_without_references_are_not_summarized(
    words: str, tmp_path: Path, fails: Fails
) -> None:
    """Nothing could be scored, so nothing is written; with a limit, references of further examples are no help."""
    rows = [{**GOOD, "summary": None}, {**GOOD, "id": "b", "summary": "One." * bool(words)}]
    path = write_rows(tmp_path / "texts.jsonl", rows)
    error = fails(3, f"dataset.path={path}", "model.length=5", *words.split())
    which = "the first 1 example of " if words else ""
    assert f"no reference in {which}the test split of jsonl: nothing to score" in error
    assert "dataset.plant=8" in error
    assert not list(tmp_path.glob("results/**/predictions.jsonl"))


@pytest.mark.parametrize("name", ["p.jsonl", "p.txt"])
def test_a_pipe_is_refused(name: str, toy: Path, tmp_path: Path, run_command: Command) -> None:
    """No command waits for a pipe that nobody writes to: one line says that it is not a regular file."""
    pipe = tmp_path / name
    os.mkfifo(pipe)
    texts = f"--dataset=jsonl dataset.path={toy} results_dir={tmp_path / 'results'}"
    for command in (
        f"score {pipe} {pipe}",
        f"import {pipe} --model=theirs {texts}",
        f"summarize lead {pipe}",
    ):
        assert "not a regular file" in run_command(3, *command.split()).err.splitlines()[-1]


@pytest.mark.parametrize("model", ["lead", "trunc"])
def test_odd_documents_simply_work(model: str, toy: Path, tmp_path: Path) -> None:
    """A huge sentence, a huge document and odd characters are summarized like any other."""
    huge_sentence = "w" * 500_000 + ". One two three."
    huge_document = "Some words stand here now. " * 20_000
    documents = [huge_sentence, huge_document, "One\u2028two\x00three.\u0085Four."]
    rows = ({**GOOD, "id": f"{n}", "document": text} for n, text in enumerate(documents))
    write_rows(toy / "test.jsonl", rows)
    settings = tiny_overrides(toy, steps=1) if model == "trunc" else ["model=lead"]
    folder = works(toy, tmp_path, *settings)
    predictions = (folder / "predictions.jsonl").read_text().strip()
    assert [json.loads(line)["id"] for line in predictions.split("\n")] == ["0", "1", "2"]


def test_a_full_disk_loses_nothing(tmp_path: Path, fails: Fails) -> None:
    """ENOSPC ends with exit code 4; the same command afterwards ends as if nothing had happened."""
    import torch

    folder = write_jsonl(tmp_path / "toy", train=31)  # a training that no other test has
    overrides = [*tiny_overrides(folder), "model=trunc", "seed=7", "baselines=false"]
    usual = torch.save

    def limited(content: Any, file: Any) -> None:
        if content["state"]["step"] == 4:  # the second checkpoint
            raise OSError(errno.ENOSPC, "No space left on device")
        usual(content, file)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(torch, "save", limited)
        assert "the disk is full" in fails(4, *overrides)
    interrupted = works(folder, tmp_path, *overrides)
    undisturbed = works(folder, tmp_path / "again", *overrides)
    for name in ("predictions.jsonl", "scores.csv"):
        assert (interrupted / name).read_bytes() == (undisturbed / name).read_bytes()
    assert RunRecord.read(interrupted).fit.steps == 6


def test_no_network_is_told_before_a_network_is_imported(tmp_path: Path) -> None:
    """For a system that trains, too: a fresh process has imported no torch when it ends."""
    code = (
        "import sys\nfrom longsumbench.cli.main import main\ncode = main(sys.argv[1:])\n"
        "print('torch' in sys.modules)\nsys.exit(code)"
    )
    words = f"run model=trunc dataset=arxiv results_dir={tmp_path / 'r'}"
    command = [sys.executable, "-c", code, *words.split()]
    with socket.socket() as free:  # a port where nobody listens
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
        own = {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **own}, check=False
        )
    assert (done.returncode, done.stdout) == (4, "False\n"), done.stderr
    assert "dataset 'arxiv' (ccdv/arxiv-summarization) is not on this machine" in done.stderr


def test_a_bug_is_one_line_and_its_traceback_is_in_a_log(
    toy: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody expected ends with exit code 70; the log that the line names holds the traceback."""
    monkeypatch.setattr(
        "longsumbench.runs.pipeline.summarize_split", lambda *_, **__: dict[str, str]()["no\nsuch"]
    )
    expected = fails(70, f"dataset.path={toy}")
    match = re.search(
        r"unexpected error in longsumbench: KeyError: 'no\\nsuch'; its traceback is in (\S+\.log)",
        expected,
    )
    assert match is not None
    assert "please report it, with that file, to the project" in expected
    log = Path(match[1]).read_text()
    assert log.startswith("Traceback")
    assert "pipeline.py" in log


@pytest.mark.parametrize("place", [0, 1, 3])
def test_verbose_and_quiet(place: int, run_command: Command) -> None:
    """`-v` shows the traceback before the usual line; both flags may be before or after the command."""
    words = ["list", "settings", "nosuch"]
    shown = {}
    for flag in ("-v", "-q"):
        shown[flag] = run_command(2, *words[:place], flag, *words[place:]).err.splitlines()
    assert shown["-v"][0].startswith("Traceback")
    assert shown["-v"][-1:] == shown["-q"]
    assert shown["-q"][0].startswith("longsumbench: unknown model 'nosuch'")


@pytest.mark.parametrize(
    ("during", "sent"), [("training", signal.SIGINT), ("summarizing", signal.SIGTERM)]
)
def test_an_interrupt_is_continued(
    during: str, sent: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C and SIGTERM end with exit code 130 and one line; the same command completes."""
    folder = write_jsonl(tmp_path / "toy", train=21, test=24)
    results, steps = tmp_path / "results", 300 if during == "training" else 2
    words = [
        *tiny_overrides(folder, steps=steps),
        "decode.batch_size=1",
        "train.eval_steps=20",
        "baselines=false",
    ]
    command = ["run", *words, f"results_dir={results}"]
    monkeypatch.setenv("LONGSUMBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    process = start_command(*command)
    seen = {
        "training": lambda: any((tmp_path / "cache").glob("checkpoint/*/trainer/checkpoint-*")),
        "summarizing": lambda: any(
            path.stat().st_size for path in results.glob("runs/*/*/*/predictions.jsonl")
        ),
    }[during]
    wait_until(seen, process)
    process.send_signal(sent)
    _, error = process.communicate()
    assert process.returncode == 130, error
    saving = ["interrupted: saves a checkpoint after this step; interrupt again to end at once"]
    ended = ["longsumbench: interrupted; finished work is kept, the same command continues it"]
    assert told_in(error) == [*(saving if during == "training" else []), *ended]
    assert not list(results.glob("runs/*/*/*/record.json"))
    assert main(command) == 0
    (record,) = results.glob("runs/*/*/*/record.json")
    assert RunRecord.read(record.parent).evaluation.n == 24


def test_a_torn_record_is_made_again(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same run makes it again, and says so."""
    folder = works(toy, tmp_path, "model=lead")
    path, whole = folder / "record.json", RunRecord.read(folder)
    path.write_text('{\n "run_id": "0123')
    assert works(toy, tmp_path, "model=lead") == folder
    repeated = f"the record of this run cannot be read; the run is repeated: {path}"
    assert repeated in capsys.readouterr().err
    again = RunRecord.read(folder)
    assert (again.run_id, again.evaluation) == (whole.run_id, whole.evaluation)
