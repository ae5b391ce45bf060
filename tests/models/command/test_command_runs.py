"""Runs of `model=command` and of functions: kills, sweeps, other commands, other processes."""

import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.api_server import stored_answers
from support.commands import Command
from support.json_files import write_rows
from support.processes import is_alive, run_python, start_command
from support.toys import refuses, toy_words
from support.waiting import wait_until

import longsumbench
from longsumbench.cache.artifacts import user_cache
from longsumbench.cli.main import main
from longsumbench.corpora.loading.load import load_texts
from longsumbench.errors import EnvironmentProblem
from longsumbench.leaderboards.comparability import comparison_key
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.pipeline import build_run_key
from longsumbench.runs.plan import plan
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

# Writes a summary and then its example's id into a log; of one example only when a gate is open.
TOOL = """\
import json, os, sys, time
from pathlib import Path
example, here = json.load(sys.stdin), Path(__file__).parent
log, gate = here / "log", here / "gate"
if example["id"] == "toy-33":
    (here / "waiting").write_text(str(os.getpid()))
    while not gate.exists():
        time.sleep(0.01)
print(example["documents"][0]["sections"][0]["paragraphs"][0][0])
with log.open("a") as file:
    file.write(example["id"] + "\\n")
"""


def records(folder: Path) -> list[RunRecord]:
    """Return the records of all runs in a folder of results."""
    results = Results(folder)
    return [record for name in results.datasets() for record in results.records(name)]


def command_words(folder: Path, *more: str) -> list[str]:
    """Return the words of a run of a command in a folder."""
    return ["run", "model=command", *toy_words(folder), *more]


def is_stuck(log: Path, folder: Path) -> bool:
    """Return True if all but one program are done, and their outputs are stored."""
    files = [*folder.rglob("outputs.sqlite")]
    done = log.exists() and len(log.read_text().splitlines()) == 7
    return done and bool(files) and stored_answers(files[0]) == 7


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_is_continued(
    ending: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each program is done once, also if it was killed with the run, and leaves no text; scores are those of a whole run."""
    texts = tmp_path / "texts"
    texts.mkdir()
    monkeypatch.setenv("TMPDIR", str(texts))
    log, gate, tool = tmp_path / "log", tmp_path / "gate", tmp_path / "tool.py"
    tool.write_text(TOOL)
    command = f"model.command={sys.executable} {tool}"
    words = command_words(tmp_path, "model.input=json", "model.parallel=3", command)
    process = start_command(*words)
    wait_until(lambda: is_stuck(log, tmp_path / "results"), process)
    assert [*texts.glob("longsumbench-*")]
    process.send_signal(ending)
    process.communicate()
    wait_until(lambda: not [*texts.glob("longsumbench-*")])
    wait_until(lambda: not is_alive(int((tmp_path / "waiting").read_text())))
    gate.touch()
    assert main(words) == 0
    assert sorted(log.read_text().split()) == [f"toy-{number}" for number in range(30, 38)]
    (record,) = records(tmp_path / "results")
    assert main([*words, "overwrite=true"]) == 0
    assert len(log.read_text().split()) == 16
    (whole,) = records(tmp_path / "results")
    assert (record.run_id, record.evaluation) == (whole.run_id, whole.evaluation)
    assert record.outputs_digest == whole.outputs_digest
    assert record.ledger.counts["seconds"] > 0


COMMANDS = {
    "'tac','cut -d, -f1'": ["tac", "cut -d, -f1"],
    "awk '{print $1}' ${x} {file}": ["awk '{print $1}' ${x} {file}"],
    r"sed s/\\(a\\)/\\\\1/ {file}": [r"sed s/\\(a\\)/\\\\1/ {file}"],
    "head -n {words},tail {file}": ["head -n {words}", "tail {file}"],
    "\"sh -c 'cut -d, -f1'\"": ["sh -c 'cut -d, -f1'"],
}


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_command_is_read_as_it_is_typed(typed: str) -> None:
    """Braces, blanks, dollars and quotes need no second pair of quotes; a comma separates commands of a sweep."""
    points = plan(["model=command", f"model.command={typed}"], sweep=True)
    assert [asdict(point.config.model)["command"] for point in points] == COMMANDS[typed]
    swept = {"model": "command", "model.command": COMMANDS[typed]}
    points = plan(format_overrides(swept, swept=True), sweep=True)
    assert [asdict(point.config.model)["command"] for point in points] == COMMANDS[typed]


def test_failed_programs_are_scored_as_chosen(tmp_path: Path, run_command: Command) -> None:
    """By default the run stops and names the example. Empty summaries score 0; left out ones are not compared."""
    tool = tmp_path / "tool.sh"
    tool.write_text("grep -v toy-33 || { echo no luck >&2; exit 1; }")
    words = command_words(tmp_path, "model.input=json", f"model.command=sh {tool}")
    last = run_command(4, *words).err.strip().splitlines()[-1]
    assert "no answer about 1 example, 'toy-33' (decode.failed=stop)" in last
    keys = set()
    for choice, scored in (("empty", 8), ("leave_out", 7)):
        run_command(0, *words, f"decode.failed={choice}", f"results_dir={tmp_path / choice}")
        (record,) = records(tmp_path / choice)
        assert (record.evaluation.n, record.ledger.counts["failed"]) == (scored, 1)
        keys.add(comparison_key(record))
    assert len(keys) == 2


def test_a_program_that_is_edited_ends_its_run(tmp_path: Path, run_command: Command) -> None:
    """What it wrote before the change is kept for the earlier version, and nothing of what the later one wrote."""
    tool, log = tmp_path / "tool.sh", tmp_path / "log"
    earlier = f'echo x >>{log}; [ $(wc -l <{log}) = 3 ] && sed -i s/old/new/ "$0"; echo old'
    tool.write_text(earlier)
    words = command_words(tmp_path, f"model.command=sh {tool}", "decode.batch_size=1")
    error = run_command(3, *words).err
    assert f"'{tool}' (model.command) was changed while the run went on" in error
    assert records(tmp_path / "results") == []
    tool.write_text(earlier)
    run_command(0, *words)
    (lines,) = (tmp_path / "results").rglob("predictions.jsonl")
    assert lines.read_text().count('"prediction": "old"') == 8
    assert len(log.read_text().splitlines()) == 9


def first(text: str, query: str | None) -> str:
    """Return the first sentence; the query of a text without one is None."""
    assert query is None
    return text.split(".")[0]


def test_a_function_is_a_system_in_python(tmp_path: Path, run_command: Command) -> None:
    """It has a row under its name; a process without it can show the run, and says in one line that it cannot use it."""
    settings: dict[str, Any] = dict(word.split("=", 1) for word in toy_words(tmp_path))
    run = longsumbench.run(model=first, **settings).run_id
    results = f"--results-dir={tmp_path / 'results'}"
    assert "function first@" in run_command(0, "leaderboard", "jsonl", results).out
    assert run_command(0, "inspect", run, "0", results).out
    code = f"import longsumbench; longsumbench.load_system({run!r}, {str(tmp_path / 'results')!r})"
    with pytest.raises(AssertionError, match=r"model\.function=first@\w+ is not in this process"):
        run_python(code)
    with refuses("raised ZeroDivisionError", EnvironmentProblem):
        longsumbench.run(model=lambda text: str(1 / 0), **settings)


LEAD, CAT = ("model=lead",), ("model=command", "model.command=cat")


def test_another_layout_is_another_run(tmp_path: Path) -> None:
    """Texts that differ in line breaks only are the same for extracts, and not for what reads them as written."""
    keys = {}
    for name, text in (("lines", "One.\nTwo."), ("line", "One. Two.")):
        path = write_rows(
            tmp_path / f"{name}.jsonl", [{"id": "a", "document": text, "summary": "A."}]
        )
        for model in (LEAD, CAT):
            (point,) = plan([*model, "dataset=jsonl", f"dataset.path={path}"])
            texts = load_texts(point.config.dataset, user_cache())
            keys[model, name] = build_run_key(point.config, texts)
    assert len({key.fingerprint for key in keys.values()}) == 1
    assert keys[LEAD, "lines"].run_id == keys[LEAD, "line"].run_id
    assert keys[CAT, "lines"].run_id != keys[CAT, "line"].run_id
    # A text that is what its sentences give has the id that it always had.
    assert keys[CAT, "line"].layout == ""
