"""Reading in several processes: the same outcome as in one, errors in their place, and nobody left behind."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.waiting import PATIENCE

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Entry, Example
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.corpora.loading import rows
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.corpora.loading.rows import read_rows
from longsumbench.errors import DataError, EnvironmentProblem


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes after the first rows, and hand them a few at a time."""
    monkeypatch.setattr(rows, "_SERIAL_BYTES", 300)
    monkeypatch.setattr(rows, "_BYTES_SENT_TOGETHER", 600)


def row(number: int) -> dict[str, Any]:
    text = f"Text {number} says this. It says more, e.g. that.\n\nAnd a paragraph."
    return {"id": f"x{number}", "document": text, "summary": f"Sum {number}."}


def lines(numbers: range, **odd: str) -> str:
    """Rows as JSON lines; a row whose number is given is that line instead."""
    return "".join(odd.get(f"_{number}", json.dumps(row(number))) + "\n" for number in numbers)


def read(path: Path, folder: Path, workers: int, **settings: Any) -> Texts:
    return load_texts(
        DatasetSettings(name="jsonl", path=str(path), workers=workers, **settings),
        ArtifactCache(folder),
    )


def outcome(path: Path, folder: Path, workers: int, **settings: Any) -> tuple[Any, ...]:
    """All that reading comes to: the texts and what is said of them, or the error."""
    try:
        texts = read(path, folder / str(workers), workers, **settings)
    except DataError as error:
        return (str(error), error.path, error.line)
    words = [[split.source_words, split.reference_words] for split in texts.splits.values()]
    return texts.fingerprint, texts.layout, dict(texts.metadata), words, texts.multi_document


BROKEN = {"_15": "{", "_25": json.dumps({"id": "x9", "summary": "S."}), "_28": json.dumps(row(3))}


@pytest.mark.parametrize(
    ("odd", "settings"),
    [
        ({}, {}),
        (BROKEN, {}),
        (BROKEN, {"strict": False, "split_by_hash": True, "limit": 12}),
    ],
)
def test_one_and_several_processes_read_the_same(
    odd: dict[str, str], settings: dict[str, Any], tmp_path: Path
) -> None:
    """Examples, order, counts, fingerprint, what was left out and why, or the first error with its place."""
    path = tmp_path / "x.jsonl"
    path.write_text(lines(range(40), **odd))
    assert outcome(path, tmp_path, 3, **settings) == outcome(path, tmp_path, 1, **settings)


def example(number: int) -> Example:
    return jsonl_example(row(number))


SCRIPT = """
import sys
from pathlib import Path
from longsumbench.core import DatasetSettings
from longsumbench.corpora.loading import rows
from longsumbench.corpora.loading.load import load_texts
from longsumbench.cache.artifacts import ArtifactCache

rows._SERIAL_BYTES = 300
print("begun")
texts = load_texts(DatasetSettings(name="jsonl", path=sys.argv[1], workers=2), ArtifactCache(Path(sys.argv[2])))
print(len(texts.splits["test"]))
"""


def test_a_script_is_not_run_again_by_processes_that_read(tmp_path: Path) -> None:
    """A script may read outside `if __name__ == "__main__"`, and be typed in: it runs once, and reads all."""
    path = tmp_path / "x.jsonl"
    path.write_text(lines(range(40)))
    done = subprocess.run(
        [sys.executable, "-", str(path), str(tmp_path / "stages")],
        input=SCRIPT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("begun\n40\n", 0), done.stderr


def test_what_a_script_defines_is_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows whose reader is from the script itself, which no other process runs, start none."""
    monkeypatch.setattr(dies, "__module__", "__main__")
    monkeypatch.setattr(
        rows, "ProcessPoolExecutor", lambda *arguments, **options: pytest.fail("started")
    )
    every = (Entry("test", partial(dies, number)) for number in range(15))
    assert len(list(read_rows(every, 2))) == 15


def dies(number: int) -> tuple[Example, ...]:
    if number >= 10 and multiprocessing.parent_process():
        os._exit(9)
    return (example(number),)


def test_a_process_that_is_killed_is_told() -> None:
    """Where the system ends a process that reads, that is said, with what to do."""
    every = (Entry("test", partial(dies, number)) for number in range(40))
    with pytest.raises(EnvironmentProblem, match=r"dataset\.workers=1"):
        list(read_rows(every, 2))


ENDLESS = """
from functools import partial
from itertools import count
from longsumbench.corpora.loading import rows
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.core.corpus import Entry

def row(number):
    return {"id": str(number), "document": "A text. " * 20, "summary": "S."}

rows._SERIAL_BYTES = 0
entries = (Entry("test", partial(jsonl_example, row(number)), line=number) for number in count())
for entry, _ in rows.read_rows(entries, 2):
    if entry.line == 3_000:
        print("reading", flush=True)
"""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(sent: signal.Signals, tmp_path: Path) -> None:
    """After Ctrl-C, which reaches all of them, and after a kill, which reaches the first alone, none is left."""
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, **pipes, start_new_session=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        try:
            assert running.stdout.readline() == "reading\n"
            children = psutil.Process(running.pid).children(recursive=True)
            if sent == signal.SIGINT:
                os.killpg(running.pid, sent)
            else:
                running.kill()
            running.wait(PATIENCE)
        finally:
            running.kill()
        said = running.stderr.read()
    assert len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive
    assert said.count("Traceback") == (1 if sent == signal.SIGINT else 0)
