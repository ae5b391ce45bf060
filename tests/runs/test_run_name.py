"""The name that a user gives a run: tables show it, and it decides nothing."""

from pathlib import Path

from support.commands import Command
from support.toys import write_jsonl

from longsumbench.cli.main import main
from longsumbench.runs.results import Results


def test_a_name_is_shown_and_decides_nothing(here: Path, run_command: Command) -> None:
    """A finished run that is named, or renamed, keeps its id and its outputs; its baselines have no name."""
    write_jsonl(here / "toy")
    words = ["run", "model=lead", "dataset=jsonl", "dataset.path=toy", "model.length=9"]
    names, runs = [], set()
    for name in ([], ["name=short one"], ["name=nine"], []):
        assert main([*words, *name]) == 0
        run, *_ = Results(Path("results")).records("jsonl")
        names.append(run.config.name)
        runs.add((run.run_id, run.finished))
    assert (names, len(runs)) == ([None, "short one", "nine", "nine"], 1)
    printed = run_command(0, "leaderboard", "jsonl", "--columns", "rougeLsum").out
    assert ("nine, length=9" in printed, printed.count("nine")) == (True, 1)
