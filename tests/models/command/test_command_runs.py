"""Runs of `model=command` and of functions: kills, sweeps, other commands, other processes."""

import signal
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from support.api_server import stored_answers
from support.commands import Command
from support.processes import is_alive, run_python, start_command
from support.toys import toy_words, write_jsonl
from support.waiting import wait_until

import longsumbench
from longsumbench.cli.main import main
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.runs.overrides import format_overrides
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
def test_a_killed_run_is_continued(ending: signal.Signals, tmp_path: Path) -> None:
    """Each program is done once, also one that was killed with the run; scores are those of a run that went through."""
    log, gate, tool = tmp_path / "log", tmp_path / "gate", tmp_path / "tool.py"
    tool.write_text(TOOL)
    command = f"model.command={sys.executable} {tool}"
    words = command_words(tmp_path, "model.input=json", "model.parallel=3", command)
    process = start_command(*words)
    wait_until(lambda: is_stuck(log, tmp_path / "results"), process)
    process.send_signal(ending)
    process.communicate()
    wait_until(lambda: not is_alive(int((tmp_path / "waiting").read_text())))
    gate.touch()
    assert main(words) == 0
    assert sorted(log.read_text().split()) == [f"toy-{number}" for number in range(30, 38)]
    assert main([*words, "overwrite=true"]) == 0
    assert len(log.read_text().split()) == 16
    (record,) = records(tmp_path / "results")
    assert main([*words, f"results_dir={tmp_path / 'other'}"]) == 0
    (whole,) = records(tmp_path / "other")
    assert (record.run_id, record.evaluation) == (whole.run_id, whole.evaluation)
    assert record.outputs_digest == whole.outputs_digest
    assert record.ledger.counts["seconds"] > 0


COMMANDS = {
    "cat {file}": ["cat {file}"],
    "awk '{print $1}' ${x} {file}": ["awk '{print $1}' ${x} {file}"],
    r"sed s/\\(a\\)/\\\\1/ {file}": [r"sed s/\\(a\\)/\\\\1/ {file}"],
    "head -n {words},tail {file}": ["head -n {words}", "tail {file}"],
    "'cut -d, -f1','tac'": ["cut -d, -f1", "tac"],
    "\"sh -c 'cut -d, -f1'\"": ["sh -c 'cut -d, -f1'"],
    "cat": ["cat"],
}


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_command_is_read_as_it_is_typed(typed: str) -> None:
    """Braces, blanks, dollars and quotes need no second pair of quotes; a comma separates commands of a sweep."""
    points = plan(["model=command", f"model.command={typed}"], sweep=True)
    assert [asdict(point.config.model)["command"] for point in points] == COMMANDS[typed]
    swept = {"model": "command", "model.command": COMMANDS[typed]}
    points = plan(format_overrides(swept, swept=True), sweep=True)
    assert [asdict(point.config.model)["command"] for point in points] == COMMANDS[typed]


def test_commands_are_swept_inspected_and_compared(tmp_path: Path, run_command: Command) -> None:
    """Two commands are two runs with their own rows, and other commands of the suite know them."""
    words = command_words(tmp_path, "model.command=head -n 1 {file},tail -c 9 {file}")
    output = run_command(0, *words[:1], "-m", *words[1:]).out
    assert "command=head -n 1 {file}" in output
    assert "command=tail -c 9 {file}" in output
    runs = [record.run_id for record in records(tmp_path / "results")]
    results = f"--results-dir={tmp_path / 'results'}"
    assert "command=" in run_command(0, "inspect", runs[0], "0", results).out
    run_command(0, "compare", *runs, results)
    (config,) = (tmp_path / "results").rglob(f"{runs[0]}/config.yaml")
    assert "already finished" in run_command(0, "run", "--config", config).err


def test_failed_programs_are_scored_as_chosen(tmp_path: Path, run_command: Command) -> None:
    """By default the run stops and names the example; empty summaries score 0, left out ones are in no mean."""
    tool = tmp_path / "tool.sh"
    tool.write_text("grep -v toy-33 || { echo no luck >&2; exit 1; }")
    words = command_words(tmp_path, "model.input=json", f"model.command=sh {tool}")
    last = run_command(4, *words).err.strip().splitlines()[-1]
    assert "no answer about 1 example, 'toy-33' (decode.failed=stop)" in last
    assert "'sh' ended with exit code 1: no luck" in last
    for choice in ("empty", "leave_out"):
        run_command(0, *words, f"decode.failed={choice}")
    by_choice = {one.config.decode.failed: one for one in records(tmp_path / "results")}
    assert [by_choice[choice].evaluation.n for choice in ("empty", "leave_out")] == [8, 7]
    assert by_choice["empty"].ledger.counts["failed"] == 1


def test_a_missing_program_ends_a_run_before_its_first_text(
    tmp_path: Path, run_command: Command
) -> None:
    """One line says so, also of a point of a sweep, before the others run."""
    words = command_words(tmp_path, "model.command=cat,no-such-program")
    assert "there is no program 'no-such-program'" in run_command(4, "run", "-m", *words[1:]).err
    assert records(tmp_path / "results") == []


def test_programs_summarize_files_and_are_recommended(tmp_path: Path, run_command: Command) -> None:
    """`summarize command` needs no training texts; `recommend --command` has a row for each program."""
    text = tmp_path / "text.txt"
    text.write_text("One two.\n\nThree.\n")
    settings = ("model.command=tail -n 1 {file}", f"results_dir={tmp_path}")
    assert run_command(0, "summarize", "command", settings[0], text).out == "Three.\n"
    texts = write_jsonl(tmp_path / "toy")
    programs = ("--command", "head -n 3 {file}", "--command", "sh -c 'cut -d, -f1'")
    rest = ("train.max_steps=1", f"results_dir={tmp_path / 'results'}", "score.resamples=100")
    output = run_command(0, "recommend", texts, *programs, *rest).out
    assert "command=\"sh -c 'cut -d, -f1'\"" in output


FUNCTION = """\
import sys
import longsumbench

def first(text, query):
    if "raise" in sys.argv:
        raise ValueError("no luck")
    return text.split(".")[0]

settings = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
print(longsumbench.run(model=first, **settings).run_id)
"""


def test_a_function_is_a_system_in_python(tmp_path: Path, run_command: Command) -> None:
    """It has a row under its name; a process without it can show the run, and says in one line that it cannot use it."""
    words = toy_words(tmp_path)
    run = run_python(FUNCTION, *words).strip()
    assert run_python(FUNCTION, *words, "raise").strip() == run
    (record,) = records(tmp_path / "results")
    assert record.variant.startswith("function=first@")
    results = f"--results-dir={tmp_path / 'results'}"
    assert "function=first@" in run_command(0, "leaderboard", "jsonl", results).out
    assert run_command(0, "inspect", run, "0", results).out
    with pytest.raises(UsageError, match=r"model\.function=first@\w+ is not in this process"):
        longsumbench.load_system(run, tmp_path / "results").summarize(["A text."])
    with pytest.raises(EnvironmentProblem, match="raised ZeroDivisionError"):
        longsumbench.run(
            model=lambda text: str(1 / 0), **dict(word.split("=", 1) for word in words)
        )
